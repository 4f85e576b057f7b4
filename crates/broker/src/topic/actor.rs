//! The actor that owns one topic partition.
//!
//! It works in turns. A turn takes what waits in the mailbox and what happened outside, runs every
//! decision to its end, and then sends off what it collected: one append for all its publishes,
//! one progress record for all its acks. That is what makes a busy topic cheap, and an idle one
//! costs nothing.
//!
//! Law: a turn never waits. Everything slow is started in it and wakes the actor when it is done.

use super::describe::{ConsumerDescription, TopicDescription};
use super::dispatch::{Dispatch, Refusal};
use super::entrance::{Entrance, Turned};
use super::fanout::FanoutTopic;
use super::message::{
    AccessMode, BatchFault, Message, OpenedStream, Publish, PublishBatch, StopReason, Stopped,
    Subscribe,
};
use super::reliable::ReliableTopic;
use super::stream::{Signals, Wire};
use super::vitals::{Measured, Vitals};
use super::{LiveSettings, TopicIdentity};
use crate::clock::Clock;
use crate::context::Context;
use crate::metrics::TopicMetrics;
use danube_core::change::{Change, DeleteSubscription};
use danube_core::name::{ConsumerName, ProducerName};
use danube_core::settings::{Limit, Setting};
use danube_core::{
    ConsumerId, Delivery, Fault, FaultKind, ProducerId, SubscriptionName, Tick, catalog,
};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// Requests that one turn takes from the mailbox.
const TURN_LEN_MAX: usize = 256;
/// How old the topic's gauges may be.
const MEASURE_DELAY_MS: u64 = 1_000;

/// A consumer that may open a stream.
struct Consumer {
    name: ConsumerName,
    subscription: SubscriptionName,
    key_filters: Vec<String>,
}

/// The owner of one topic partition's state.
pub(super) struct TopicActor {
    context: Arc<Context>,
    topic: Arc<TopicIdentity>,
    settings: Arc<LiveSettings>,
    entrance: Arc<Entrance>,
    dispatch: Box<dyn Dispatch>,
    consumers: HashMap<ConsumerId, Consumer>,
    metrics: Arc<TopicMetrics>,
    requests: Receiver<Message>,
    signals: Arc<Signals>,
    vitals: Arc<Vitals>,
    measured: Measured,
    /// When the gauges are brought up to date; `None` while they are.
    measure_at: Option<Tick>,
    stopped: bool,
}

impl TopicActor {
    pub(super) fn load(
        context: &Arc<Context>,
        topic: &Arc<TopicIdentity>,
        settings: &Arc<LiveSettings>,
        entrance: &Arc<Entrance>,
        (metrics, signals, vitals): (Arc<TopicMetrics>, Arc<Signals>, Arc<Vitals>),
        record: &catalog::Topic,
        requests: Receiver<Message>,
    ) -> TopicActor {
        let mut consumers = HashMap::new();
        for (name, subscription) in &record.subscriptions {
            for (consumer, known) in &subscription.consumers {
                let id = ConsumerId::derive(topic.id, name.as_str(), consumer.as_str());
                let consumer = Consumer {
                    name: consumer.clone(),
                    subscription: name.clone(),
                    key_filters: known.key_filters.clone(),
                };
                consumers.insert(id, consumer);
            }
        }
        let mut dispatch: Box<dyn Dispatch> = match topic.delivery {
            Delivery::Reliable => {
                Box::new(ReliableTopic::load(context, topic, settings, record, &metrics, &signals))
            }
            Delivery::NonReliable => {
                Box::new(FanoutTopic::load(context, topic, settings, record, &metrics, &signals))
            }
        };
        metrics.subscriptions(dispatch.subscription_count());
        let (tick, published) = (context.clock.now(), dispatch.range().next.0);
        let sums = dispatch.measure(tick);
        let mut measured = Measured::start(published, &sums);
        measured.write(&vitals, tick, MEASURE_DELAY_MS, published, 0, &sums);
        TopicActor {
            context: Arc::clone(context),
            topic: Arc::clone(topic),
            settings: Arc::clone(settings),
            entrance: Arc::clone(entrance),
            dispatch,
            consumers,
            metrics,
            requests,
            signals,
            vitals,
            measured,
            measure_at: None,
            stopped: false,
        }
    }

    /// Works until it is told to stop, or nobody is left who could ask anything.
    pub(super) async fn run(mut self) {
        let mut inbox = Vec::new();
        let signals = Arc::clone(&self.signals);
        while !self.stopped {
            let deadline = self.dispatch.next_deadline().into_iter().chain(self.measure_at).min();
            let deadline = deadline.map(|tick| self.context.clock.instant(tick));
            let timer = async {
                match deadline {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            };
            let by_timer = tokio::select! {
                taken = self.requests.recv_many(&mut inbox, TURN_LEN_MAX) => {
                    self.stopped = taken == 0;
                    false
                }
                () = signals.woken() => false,
                () = timer => true,
            };
            self.metrics.turn(by_timer);
            self.turn(&mut inbox);
            // An idle topic keeps no room for what does not come.
            if self.measure_at.is_none() {
                inbox = Vec::new();
            }
        }
    }

    fn turn(&mut self, inbox: &mut Vec<Message>) {
        let now = self.context.clock.now();
        for message in inbox.drain(..) {
            self.on_message(now, message);
        }
        for subscription in self.dispatch.advance(now) {
            self.expire(subscription);
        }
        self.dispatch.flush();
        self.measure(now);
    }

    /// Brings the gauges up to date, though not at every turn of a busy topic.
    fn measure(&mut self, now: Tick) {
        match self.measure_at {
            Some(at) if at <= now => {
                let sums = self.dispatch.measure(now);
                self.metrics.consumers(sums.consumers);
                let span_ms = MEASURE_DELAY_MS + now.0.saturating_sub(at.0);
                let (published, producers) =
                    (self.dispatch.range().next.0, self.entrance.producer_count());
                let Self { measured, vitals, .. } = self;
                measured.write(vitals, now, span_ms, published, producers, &sums);
                self.measure_at = None;
            }
            Some(_) => {}
            None => self.measure_at = Some(now.after_ms(MEASURE_DELAY_MS)),
        }
    }

    fn on_message(&mut self, now: Tick, message: Message) {
        match message {
            Message::CreateProducer { name, mode, reply } => {
                let _ = reply.send(self.attach_producer(now, name, mode));
            }
            Message::Publish(publish) => self.on_publish(now, *publish),
            Message::OpenProducer { name, mode, reply } => {
                match self.attach_producer(now, name, mode) {
                    Ok(id) => self.dispatch.open_producer(id, reply),
                    Err(fault) => drop(reply.send(Err(fault))),
                }
            }
            Message::PublishBatch(batch) => self.on_publish_batch(now, *batch),
            Message::Admit { wish, reply } => {
                let admitted = self.admit(now, &wish);
                let _ = reply.send(admitted.map(|_| self.dispatch.range().next));
            }
            Message::Attach { wish, record, reply } => {
                let _ = reply.send(self.attach(now, *wish, &record));
            }
            Message::Open { consumer, wire, reply } => {
                let _ = reply.send(self.open(now, consumer, wire));
            }
            Message::Settle { subscription, claims, reply } => {
                self.dispatch.settle(now, &subscription, claims, reply);
            }
            Message::ConsumerHealth { consumer, reply } => {
                let _ = reply.send(self.known(consumer).map(|_| ()));
            }
            Message::ProducerHealth { producer, reply } => {
                let lives = self.entrance.lives(now, producer);
                let _ = reply.send(lives.then_some(()).ok_or_else(|| {
                    Fault::not_found(format!(
                        "topic `{}` knows no producer {producer}",
                        self.topic.name
                    ))
                }));
            }
            Message::PolicyChanged { subscription, policy } => {
                self.dispatch.set_policy(now, &subscription, *policy);
            }
            Message::WindowChanged { subscription, max_unacked_messages } => {
                self.dispatch.set_window(now, &subscription, max_unacked_messages);
            }
            Message::SettingsChanged => self.settings_changed(now),
            Message::SubscriptionCreated { name, record } => {
                self.dispatch.create(now, &name, &record);
                self.metrics.subscriptions(self.dispatch.subscription_count());
            }
            Message::Seek { subscription, to, before, reply } => {
                if let Some(old) = self.dispatch.seek(now, &subscription, to, reply) {
                    // Whoever asked may have gone away.
                    let _ = before.send(old);
                }
            }
            Message::Unsubscribed { subscription } => self.unsubscribed(&subscription),
            Message::LogGrew => {}
            Message::Describe { reply } => {
                let _ = reply.send(Ok(self.describe(now)));
            }
            Message::Stop { reason, reply } => {
                let _ = reply.send(self.stop(reason));
            }
        }
    }

    fn settings_changed(&mut self, now: Tick) {
        let settings = self.settings.load_full();
        self.entrance.settings_changed();
        self.dispatch.set_settings(now, &settings);
    }

    fn attach_producer(
        &self,
        now: Tick,
        name: ProducerName,
        mode: AccessMode,
    ) -> Result<ProducerId, Fault> {
        let (attached, count) = self.entrance.attach(now, name, mode);
        self.metrics.producers(count);
        attached
    }

    fn on_publish(&mut self, now: Tick, publish: Publish) {
        match self.entrance.admit(now, publish.producer, &publish.producer_name, 1) {
            Ok(()) => self.dispatch.publish(publish),
            // Only this actor closes it, and takes no publish after that.
            Err(Turned::Away) => {}
            Err(Turned::Down(fault)) => {
                let _ = publish.reply.send(Err(fault));
            }
        }
    }

    fn on_publish_batch(&mut self, now: Tick, batch: PublishBatch) {
        let count = batch.batch.len() as u64;
        match self.entrance.admit(now, batch.producer, &batch.producer_name, count) {
            Ok(()) => self.dispatch.publish_batch(batch),
            // As above; and a batch that is dropped is answered.
            Err(Turned::Away) => {}
            Err(Turned::Down(fault)) => (batch.done)(Err(BatchFault::Fault(fault))),
        }
    }

    fn admit(&self, now: Tick, wish: &Subscribe) -> Result<ConsumerId, Fault> {
        let consumer =
            ConsumerId::derive(self.topic.id, wish.subscription.as_str(), wish.consumer.as_str());
        let Subscribe { subscription, kind, .. } = wish;
        let admitted = self.dispatch.admit(now, consumer, subscription, Some(*kind));
        admitted.map_err(|refusal| self.refused(subscription, refusal))?;
        self.check_limits(wish, consumer)?;
        Ok(consumer)
    }

    fn refused(&self, subscription: &SubscriptionName, refusal: Refusal) -> Fault {
        let topic = &self.topic.name;
        Fault::precondition(match refusal {
            Refusal::Held(holder) => {
                let holder = self.consumers.get(&holder);
                let holder = holder.map_or("another consumer", |holder| holder.name.as_str());
                format!(
                    "subscription `{subscription}` of `{topic}` is Exclusive and `{holder}` holds \
                     it; wait until that consumer is gone, or use another subscription"
                )
            }
            Refusal::InUse(kind) => format!(
                "subscription `{subscription}` of `{topic}` is {kind:?} and has consumers; it can \
                 take another type once they are gone"
            ),
        })
    }

    fn check_limits(&self, wish: &Subscribe, consumer: ConsumerId) -> Result<(), Fault> {
        let settings = self.settings.load();
        let check = |limit: Limit, count: usize| {
            let Setting { value: max, origin } = settings.limit(limit);
            if max == 0 || count < max as usize {
                return Ok(());
            }
            Err(Fault::exhausted(format!(
                "topic `{}` is at its {} of {max} ({}); remove one or raise the limit",
                self.topic.name,
                limit.as_str(),
                origin.as_str()
            )))
        };
        if !self.dispatch.has(&wish.subscription) {
            let count = self.dispatch.subscription_count();
            check(Limit::MaxSubscriptionsPerTopic, count)?;
        }
        if self.consumers.contains_key(&consumer) {
            return Ok(());
        }
        let on_same = self.consumers.values().filter(|c| c.subscription == wish.subscription);
        check(Limit::MaxConsumersPerSubscription, on_same.count())?;
        check(Limit::MaxConsumersPerTopic, self.consumers.len())
    }

    fn attach(
        &mut self,
        now: Tick,
        wish: Subscribe,
        record: &catalog::Subscription,
    ) -> Result<ConsumerId, Fault> {
        // Somebody else may have come in while the catalog was being asked.
        let id = self.admit(now, &wish)?;
        self.dispatch.attach(now, id, &wish, record);
        let Subscribe { subscription, consumer: name, key_filters, .. } = wish;
        self.consumers.insert(id, Consumer { name, subscription, key_filters });
        self.metrics.subscriptions(self.dispatch.subscription_count());
        Ok(id)
    }

    fn known(&self, consumer: ConsumerId) -> Result<&Consumer, Fault> {
        self.consumers.get(&consumer).ok_or_else(|| {
            Fault::not_found(format!("topic `{}` knows no consumer {consumer}", self.topic.name))
        })
    }

    /// Opens the stream of a consumer that is attached, or was before the last restart.
    fn open(&mut self, now: Tick, consumer: ConsumerId, wire: Wire) -> Result<OpenedStream, Fault> {
        let known = self.known(consumer)?;
        let (subscription, filters) = (known.subscription.clone(), known.key_filters.clone());
        let admitted = self.dispatch.admit(now, consumer, &subscription, None);
        admitted.map_err(|refusal| self.refused(&subscription, refusal))?;
        self.dispatch.open(now, consumer, &subscription, &filters, wire)
    }

    fn unsubscribed(&mut self, subscription: &SubscriptionName) {
        let fault = Fault::retry(format!(
            "subscription `{subscription}` of topic `{}` was removed",
            self.topic.name
        ));
        self.dispatch.remove(subscription, &fault);
        self.consumers.retain(|_, consumer| consumer.subscription != *subscription);
        self.metrics.subscriptions(self.dispatch.subscription_count());
    }

    /// Removes a subscription that nobody has used for too long, here and from the catalog.
    fn expire(&mut self, subscription: SubscriptionName) {
        self.unsubscribed(&subscription);
        let change = Change::DeleteSubscription(DeleteSubscription {
            topic: self.topic.name.clone(),
            subscription: subscription.clone(),
        });
        let (context, topic) = (Arc::clone(&self.context), self.topic.name.clone());
        tokio::spawn(async move {
            match context.meta.propose(change, Clock::wall()).await {
                Err(fault) if fault.kind != FaultKind::NotFound => {
                    tracing::warn!(%topic, %subscription, %fault, "cannot remove an idle subscription from the catalog");
                }
                _ => tracing::info!(%topic, %subscription, "removed an idle subscription"),
            }
        });
    }

    fn describe(&self, now: Tick) -> TopicDescription {
        let range = self.dispatch.range();
        let mut subscriptions = self.dispatch.describe(now);
        for subscription in &mut subscriptions {
            let own = self.consumers.iter().filter(|(_, c)| c.subscription == subscription.name);
            subscription.consumers = own
                .map(|(id, consumer)| {
                    let (connected, in_flight) = self.dispatch.consumer(&subscription.name, *id);
                    ConsumerDescription {
                        id: *id,
                        name: consumer.name.clone(),
                        connected,
                        in_flight,
                        key_filters: consumer.key_filters.clone(),
                    }
                })
                .collect();
            subscription.consumers.sort_by(|a, b| a.name.cmp(&b.name));
        }
        TopicDescription { start: range.start, next: range.next, subscriptions }
    }

    fn stop(&mut self, reason: StopReason) -> Stopped {
        self.stopped = true;
        let producers = self.entrance.close();
        let name = &self.topic.name;
        self.dispatch.stop(&Fault::retry(match reason {
            StopReason::Deleted => format!("topic `{name}` was deleted"),
            StopReason::Unloaded => format!("topic `{name}` was unloaded; look it up again"),
            StopReason::Shutdown => "the broker is stopping; connect again".to_owned(),
        }));
        Stopped { consumers: self.consumers.keys().copied().collect(), producers }
    }
}
