//! A topic that keeps nothing: from memory to whoever listens now.
//!
//! Law: a publish never waits for a consumer, and nothing of it touches the log.

mod offsets;
mod subscription;

pub(crate) use offsets::VolatileOffsets;

use super::claim::{Claim, Outcome};
use super::describe::SubscriptionDescription;
use super::dispatch::{Dispatch, Range, Refusal};
use super::message::{
    BatchFault, OpenedProducer, OpenedStream, Publish, PublishBatch, Reply, Subscribe,
};
use super::stream::{Signals, Wire};
use super::vitals::Sums;
use super::{LiveSettings, TopicIdentity};
use crate::context::Context;
use crate::metrics::TopicMetrics;
use bytes::Bytes;
use danube_core::sequence::Opened;
use danube_core::settings::{Limit, TopicSettings};
use danube_core::{
    ConsumerId, FailurePolicy, Fault, Offset, ProducerId, SubscriptionName, SubscriptionType, Tick,
    catalog,
};
use danube_store::Appended;
use danube_wire::record::Record;
use danube_wire::stream::Delivered;
use std::collections::BTreeMap;
use std::sync::Arc;
use subscription::FanoutSubscription;

/// A topic that keeps nothing.
pub(super) struct FanoutTopic {
    context: Arc<Context>,
    topic: Arc<TopicIdentity>,
    offsets: VolatileOffsets,
    metrics: Arc<TopicMetrics>,
    signals: Arc<Signals>,
    subscriptions: BTreeMap<SubscriptionName, FanoutSubscription>,
    /// Messages that a subscription hands out, per second; 0 is no limit.
    dispatch_rate: u32,
}

impl FanoutTopic {
    pub(super) fn load(
        context: &Arc<Context>,
        topic: &Arc<TopicIdentity>,
        settings: &Arc<LiveSettings>,
        record: &catalog::Topic,
        metrics: &Arc<TopicMetrics>,
        signals: &Arc<Signals>,
    ) -> FanoutTopic {
        let now = context.clock.now();
        let dispatch_rate = settings.load().limit(Limit::MaxSubscriptionDispatchRate).value;
        let load = |(name, known): (&SubscriptionName, &catalog::Subscription)| {
            let mut loaded = FanoutSubscription::load(now, context, topic, name, known);
            loaded.set_rate(dispatch_rate);
            (name.clone(), loaded)
        };
        FanoutTopic {
            context: Arc::clone(context),
            topic: Arc::clone(topic),
            offsets: context.topics.volatile_offsets(context.incarnation, topic.id),
            metrics: Arc::clone(metrics),
            signals: Arc::clone(signals),
            subscriptions: record.subscriptions.iter().map(load).collect(),
            dispatch_rate,
        }
    }

    /// Gives `count` records their offsets and hands them to every subscription; the first offset.
    fn hand_out(
        &mut self,
        count: usize,
        records: impl Iterator<Item = Bytes>,
    ) -> Result<Offset, Fault> {
        let (now, first) = (self.context.clock.now(), self.offsets.next());
        let mut batch = Vec::with_capacity(count);
        for (index, bytes) in (0_u64..).zip(records) {
            let record = Record::parse(bytes).map_err(|error| {
                Fault::internal(format!(
                    "topic `{}`: cannot read a record of our own making: {error}",
                    self.topic.name
                ))
            })?;
            batch.push(Delivered { offset: first.plus(index), attempt: 1, record });
        }
        // Nobody who listens shall wait for the disk.
        self.context.store.callers_are_busy();
        // Only now, so that what cannot be read uses none.
        self.offsets.take(batch.len() as u64);
        for subscription in self.subscriptions.values_mut() {
            subscription.publish(now, &batch);
        }
        Ok(first)
    }
}

impl Dispatch for FanoutTopic {
    fn publish(&mut self, publish: Publish) {
        let answer = self.hand_out(1, std::iter::once(publish.record.clone()));
        if answer.is_ok() {
            let latency = self.context.clock.elapsed().saturating_sub(publish.arrived);
            self.metrics.published(1, publish.record.len(), latency);
        }
        // A producer that went away does not want the answer.
        let _ = publish.reply.send(answer);
    }

    /// What is not kept cannot be recognised either, so numbers begin anew at every opening.
    fn open_producer(&mut self, id: ProducerId, reply: Reply<OpenedProducer>) {
        let opened = Opened { epoch: 1, last_sequence: 0 };
        // A client that went away does not want the answer.
        let _ = reply.send(Ok(OpenedProducer { id, opened }));
    }

    fn publish_batch(&mut self, batch: PublishBatch) {
        let PublishBatch { batch, arrived, done, .. } = batch;
        let first = match self.hand_out(batch.len(), batch.records()) {
            Ok(first) => first,
            Err(fault) => return done(Err(BatchFault::Fault(fault))),
        };
        let latency = self.context.clock.elapsed().saturating_sub(arrived);
        self.metrics.published(batch.len(), batch.byte_len(), latency);
        // A batch is far below 2^32 records.
        done(Ok(Appended { first, count: batch.len() as u32 }));
    }

    fn range(&self) -> Range {
        Range { start: self.offsets.next(), next: self.offsets.next() }
    }

    fn admit(
        &self,
        now: Tick,
        consumer: ConsumerId,
        subscription: &SubscriptionName,
        kind: Option<SubscriptionType>,
    ) -> Result<(), Refusal> {
        let known = self.subscriptions.get(subscription);
        known.map_or(Ok(()), |known| known.admit(now, consumer, kind.unwrap_or(known.kind)))
    }

    fn has(&self, subscription: &SubscriptionName) -> bool {
        self.subscriptions.contains_key(subscription)
    }

    fn set_settings(&mut self, _: Tick, settings: &TopicSettings) {
        self.dispatch_rate = settings.limit(Limit::MaxSubscriptionDispatchRate).value;
        for known in self.subscriptions.values_mut() {
            known.set_rate(self.dispatch_rate);
        }
    }

    /// The catalog makes none ahead for a topic that keeps nothing.
    fn create(&mut self, _: Tick, _: &SubscriptionName, _: &catalog::Subscription) {}

    fn attach(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        wish: &Subscribe,
        record: &catalog::Subscription,
    ) {
        let known = self.subscriptions.entry(wish.subscription.clone()).or_insert_with(|| {
            FanoutSubscription::load(now, &self.context, &self.topic, &wish.subscription, record)
        });
        known.set_rate(self.dispatch_rate);
        known.attach(now, &self.signals, consumer, wish.kind, wish.key_filters.clone());
    }

    fn open(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        subscription: &SubscriptionName,
        key_filters: &[String],
        _: Wire,
    ) -> Result<OpenedStream, Fault> {
        let cursor = self.offsets.next();
        let Some(known) = self.subscriptions.get_mut(subscription) else {
            return Err(self.topic.no_subscription(subscription));
        };
        known.attach(now, &self.signals, consumer, known.kind, key_filters.to_vec());
        let reader = known.open(now, &self.signals, consumer);
        Ok(OpenedStream { reader, envelope: Arc::clone(&known.envelope), cursor })
    }

    /// Accepted without effect: nothing is kept that could be settled.
    fn settle(
        &mut self,
        _: Tick,
        _: &SubscriptionName,
        claims: Vec<Claim>,
        reply: Reply<Vec<Outcome>>,
    ) {
        let _ = reply.send(Ok(vec![Outcome::default(); claims.len()]));
    }

    /// The catalog refuses a failure policy where nothing can fail.
    fn set_policy(&mut self, _: Tick, _: &SubscriptionName, _: FailurePolicy) {}

    /// The catalog refuses a window where nothing waits for an ack.
    fn set_window(&mut self, _: Tick, _: &SubscriptionName, _: u32) {}

    /// Nothing is kept that one could go back to.
    fn seek(
        &mut self,
        _: Tick,
        _: &SubscriptionName,
        _: Offset,
        reply: Reply<()>,
    ) -> Option<Offset> {
        let _ = reply.send(Err(Fault::precondition(format!(
            "topic `{}` is NonReliable: its messages are not kept, so no cursor can be put",
            self.topic.name
        ))));
        None
    }

    fn remove(&mut self, subscription: &SubscriptionName, fault: &Fault) {
        if let Some(mut known) = self.subscriptions.remove(subscription) {
            known.end_streams(fault);
        }
    }

    fn advance(&mut self, now: Tick) -> Vec<SubscriptionName> {
        // What drained concerns nobody: there are no timers and no room to give back.
        self.signals.take_drained();
        for key in self.signals.take_closed() {
            let mut each = self.subscriptions.values_mut();
            if let Some(known) = each.find(|known| known.id == key.subscription) {
                known.closed(now, key);
            }
        }
        self.subscriptions
            .values()
            .filter(|known| known.expires_at().is_some_and(|tick| tick <= now))
            .map(|known| known.name.clone())
            .collect()
    }

    /// Nothing is collected.
    fn flush(&mut self) {}

    fn next_deadline(&self) -> Option<Tick> {
        self.subscriptions.values().filter_map(FanoutSubscription::expires_at).min()
    }

    fn subscription_count(&self) -> usize {
        self.subscriptions.len()
    }

    fn connected(&self) -> u64 {
        self.subscriptions.values().map(FanoutSubscription::connected).sum()
    }

    fn measure(&mut self, _: Tick) -> Sums {
        self.subscriptions.values().for_each(FanoutSubscription::measure);
        let subscriptions = self.subscriptions.len() as u64;
        let lost = self.subscriptions.values().map(FanoutSubscription::lost).sum();
        let offered = self.offsets.next().0.saturating_mul(subscriptions);
        let (consumers, finished) = (self.connected(), offered.saturating_sub(lost));
        Sums { subscriptions, consumers, finished, ..Sums::default() }
    }

    fn describe(&self, _: Tick) -> Vec<SubscriptionDescription> {
        let next = self.offsets.next();
        self.subscriptions.values().map(|known| known.describe(next)).collect()
    }

    fn consumer(&self, subscription: &SubscriptionName, consumer: ConsumerId) -> (bool, u64) {
        let known = self.subscriptions.get(subscription);
        (known.is_some_and(|known| known.is_connected(consumer)), 0)
    }

    fn stop(&mut self, fault: &Fault) {
        self.subscriptions.values_mut().for_each(|known| known.end_streams(fault));
    }
}
