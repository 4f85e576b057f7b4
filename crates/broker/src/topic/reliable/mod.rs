//! A topic that delivers at least once: through the log, with acknowledgements.
//!
//! Law: a publish is answered by the log and by nobody else, and so is an ack.

mod dead_letter;
mod progress;
mod publish;
mod subscription;
#[cfg(test)]
mod tests;
mod watch;

use super::claim::{Claim, Outcome, Waiting};
use super::describe::SubscriptionDescription;
use super::dispatch::{Dispatch, Range, Refusal};
use super::message::{OpenedProducer, OpenedStream, Publish, PublishBatch, Reply, Subscribe};
use super::stream::{Signals, Wire};
use super::vitals::Sums;
use super::{LiveSettings, TopicIdentity};
use crate::context::Context;
use crate::metrics::TopicMetrics;
use danube_core::settings::{Limit, TopicSettings};
use danube_core::subscription::Event;
use danube_core::{
    ConsumerId, FailurePolicy, Fault, Offset, ProducerId, SubscriptionId, SubscriptionName,
    SubscriptionType, Tick, catalog,
};
use danube_store::{ReadBatch, ReadError, TopicLog};
use dead_letter::Letter;
use progress::ProgressJournal;
use publish::Publishes;
pub(super) use publish::Straight;
use std::collections::BTreeMap;
use std::sync::Arc;
use subscription::{ReliableSubscription, Turn};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What comes back to the topic. At most one fetch, one look at
/// the first message and a few reads of parked messages per subscription, one restatement, and one dead
/// letter per message in a window are on their way at a time, which bounds the channel.
enum Completion {
    Fetched {
        subscription: SubscriptionId,
        result: Box<Result<ReadBatch, ReadError>>,
    },
    /// Parked messages were read again, from this offset on.
    Refetched {
        subscription: SubscriptionId,
        from: Offset,
        result: Box<Result<ReadBatch, ReadError>>,
    },
    /// The first unfinished message was read, for its age.
    FirstRead {
        subscription: SubscriptionId,
        from: Offset,
        result: Box<Result<ReadBatch, ReadError>>,
    },
    DeadLettered {
        subscription: SubscriptionId,
        offset: Offset,
        result: Result<(), Fault>,
    },
    /// A progress record could not be journaled.
    ProgressLost,
    /// The restatement of all progress was journaled.
    ProgressRestated,
}

// Room for 32 of them is made with each topic.
const _: () = assert!(size_of::<Completion>() <= 64);

/// The way back to the topic for work that completes elsewhere.
#[derive(Clone)]
struct Completions {
    sender: UnboundedSender<Completion>,
    signals: Arc<Signals>,
}

impl Completions {
    fn send(&self, completion: Completion) {
        // Nobody is there any more when the topic stopped meanwhile.
        if self.sender.send(completion).is_ok() {
            self.signals.wake();
        }
    }
}

/// A topic that delivers at least once.
pub(super) struct ReliableTopic {
    context: Arc<Context>,
    topic: Arc<TopicIdentity>,
    log: TopicLog,
    metrics: Arc<TopicMetrics>,
    signals: Arc<Signals>,
    subscriptions: BTreeMap<SubscriptionName, ReliableSubscription>,
    names: BTreeMap<SubscriptionId, SubscriptionName>,
    completed: UnboundedReceiver<Completion>,
    completions: Completions,
    /// The end of the log as the subscriptions know it.
    tail: Offset,
    batch: Publishes,
    progress: ProgressJournal,
    /// Messages that a subscription hands out, per second; 0 is no limit.
    dispatch_rate: u32,
    /// Dead letters of this turn.
    letters: Vec<Letter>,
}

impl ReliableTopic {
    pub(super) fn load(
        context: &Arc<Context>,
        topic: &Arc<TopicIdentity>,
        settings: &Arc<LiveSettings>,
        record: &catalog::Topic,
        metrics: &Arc<TopicMetrics>,
        signals: &Arc<Signals>,
    ) -> ReliableTopic {
        let log = context.store.topic(topic.id, topic.epoch);
        log.set_retention(settings.load().retention());
        #[expect(clippy::disallowed_methods, reason = "bounded by the work that is on its way")]
        let (sender, completed) = unbounded_channel();
        let mut loaded = ReliableTopic {
            context: Arc::clone(context),
            topic: Arc::clone(topic),
            tail: log.bounds().next,
            log,
            metrics: Arc::clone(metrics),
            signals: Arc::clone(signals),
            subscriptions: BTreeMap::new(),
            names: BTreeMap::new(),
            completed,
            completions: Completions { sender, signals: Arc::clone(signals) },
            batch: Publishes::default(),
            progress: ProgressJournal::default(),
            dispatch_rate: 0,
            letters: Vec::new(),
        };
        for (name, known) in &record.subscriptions {
            loaded.insert(name, known);
            if known.kind == SubscriptionType::KeyShared {
                loaded.remember(name, known);
            }
        }
        loaded.tell_subscriptions();
        let settings = settings.load();
        if settings.limit(Limit::MaxSubscriptionDispatchRate).value > 0 {
            loaded.set_rate(context.clock.now(), &settings);
        }
        loaded
    }

    fn set_rate(&mut self, now: Tick, settings: &TopicSettings) {
        self.dispatch_rate = settings.limit(Limit::MaxSubscriptionDispatchRate).value;
        let rate = self.dispatch_rate;
        self.with_each(now, |known, turn| known.set_rate(turn, rate));
    }

    /// Tells the log whose unfinished messages it must keep.
    fn tell_subscriptions(&self) {
        // Before the end of the log is looked at again, so that nothing goes unheard between.
        self.signals.listen(!self.subscriptions.is_empty());
        let known = self.subscriptions.values();
        self.log.set_subscriptions(known.map(|known| (known.id, known.start)));
    }

    /// Attaches the consumers that were there before the last restart: their key filters count
    /// from the first delivery on, though they are yet to return.
    fn remember(&mut self, name: &SubscriptionName, record: &catalog::Subscription) {
        let (now, id) = (self.context.clock.now(), self.topic.id);
        self.with(now, name, |subscription, turn| {
            for (consumer, known) in &record.consumers {
                let consumer = ConsumerId::derive(id, name.as_str(), consumer.as_str());
                let filters = known.key_filters.clone();
                subscription.attach(turn, consumer, record.kind, filters);
            }
        });
    }

    fn insert(&mut self, name: &SubscriptionName, record: &catalog::Subscription) {
        let loaded =
            ReliableSubscription::load(&self.context, &self.topic, &self.log, name, record);
        self.names.insert(loaded.id, name.clone());
        self.subscriptions.insert(name.clone(), loaded);
    }

    /// Runs `act` on the subscription of that name, with what a turn lends it.
    fn with<T>(
        &mut self,
        now: Tick,
        name: &SubscriptionName,
        act: impl FnOnce(&mut ReliableSubscription, &mut Turn<'_>) -> T,
    ) -> Option<T> {
        let known = self.subscriptions.get_mut(name)?;
        let turn = &mut Turn {
            now,
            topic: &self.topic,
            log: &self.log,
            signals: &self.signals,
            completions: &self.completions,
            steps: &mut self.progress.steps,
            letters: &mut self.letters,
        };
        Some(act(known, turn))
    }

    /// The same for a subscription known by its number, as completions and streams know it.
    fn with_id(
        &mut self,
        now: Tick,
        id: SubscriptionId,
        act: impl FnOnce(&mut ReliableSubscription, &mut Turn<'_>),
    ) {
        // It may have been removed since.
        if let Some(name) = self.names.get(&id).cloned() {
            self.with(now, &name, act);
        }
    }

    /// The same for all of them.
    fn with_each(
        &mut self,
        now: Tick,
        mut act: impl FnMut(&mut ReliableSubscription, &mut Turn<'_>),
    ) {
        let turn = &mut Turn {
            now,
            topic: &self.topic,
            log: &self.log,
            signals: &self.signals,
            completions: &self.completions,
            steps: &mut self.progress.steps,
            letters: &mut self.letters,
        };
        for known in self.subscriptions.values_mut() {
            act(known, turn);
        }
    }

    fn on_tail(&mut self, now: Tick) {
        let next = self.log.bounds().next;
        if next > self.tail {
            self.tail = next;
            self.with_each(now, |known, turn| {
                known.step(turn, Event::Tail { next });
            });
        }
    }

    fn on_completion(&mut self, now: Tick, completion: Completion) {
        match completion {
            Completion::Fetched { subscription, result } => {
                self.with_id(now, subscription, |known, turn| known.fetched(turn, *result));
            }
            Completion::Refetched { subscription, from, result } => {
                self.with_id(now, subscription, |known, turn| known.refetched(turn, from, *result));
            }
            Completion::DeadLettered { subscription, offset, result } => {
                self.with_id(now, subscription, |known, turn| {
                    known.dead_lettered(turn, offset, result);
                });
            }
            Completion::FirstRead { subscription, from, result } => {
                self.with_id(now, subscription, |known, _| known.first_read(from, *result));
            }
            Completion::ProgressLost => self.progress.lost(now, &self.topic),
            Completion::ProgressRestated => self.progress.restated(&self.topic),
        }
    }
}

impl Dispatch for ReliableTopic {
    fn publish(&mut self, publish: Publish) {
        self.batch.push(publish);
        if self.batch.is_full() {
            let (log, signals) = (&self.log, &self.signals);
            self.batch.flush(&self.topic, log, signals, &self.metrics, self.context.clock);
        }
    }

    fn open_producer(&mut self, id: ProducerId, reply: Reply<OpenedProducer>) {
        let topic = Arc::clone(&self.topic);
        self.log.open_producer(id, move |result| {
            let opened = result.map(|opened| OpenedProducer { id, opened });
            // A client that went away does not want the answer.
            let _ = reply.send(opened.map_err(|error| publish::append_fault(&topic, &error)));
        });
    }

    /// Never asked for: those of a reliable topic go straight to the log. What is dropped is answered.
    fn publish_batch(&mut self, batch: PublishBatch) {
        drop(batch);
    }

    fn range(&self) -> Range {
        let bounds = self.log.bounds();
        Range { start: bounds.start, next: bounds.next }
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

    fn set_settings(&mut self, now: Tick, settings: &TopicSettings) {
        self.log.set_retention(settings.retention());
        self.set_rate(now, settings);
    }

    fn create(&mut self, now: Tick, name: &SubscriptionName, record: &catalog::Subscription) {
        if !self.subscriptions.contains_key(name) {
            self.insert(name, record);
            self.tell_subscriptions();
            let rate = self.dispatch_rate;
            self.with(now, name, |known, turn| known.set_rate(turn, rate));
        }
    }

    fn has(&self, subscription: &SubscriptionName) -> bool {
        self.subscriptions.contains_key(subscription)
    }

    fn attach(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        wish: &Subscribe,
        record: &catalog::Subscription,
    ) {
        if !self.subscriptions.contains_key(&wish.subscription) {
            self.insert(&wish.subscription, record);
            self.tell_subscriptions();
            let rate = self.dispatch_rate;
            self.with(now, &wish.subscription, |known, turn| known.set_rate(turn, rate));
        }
        self.with(now, &wish.subscription, |known, turn| {
            known.attach(turn, consumer, wish.kind, wish.key_filters.clone());
        });
    }

    fn open(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        subscription: &SubscriptionName,
        key_filters: &[String],
        wire: Wire,
    ) -> Result<OpenedStream, Fault> {
        let opened = self.with(now, subscription, |known, turn| {
            known.attach(turn, consumer, known.kind, key_filters.to_vec());
            OpenedStream {
                reader: known.open(turn, consumer, wire),
                envelope: Arc::clone(&known.envelope),
                cursor: known.cursor(),
            }
        });
        opened.ok_or_else(|| self.topic.no_subscription(subscription))
    }

    fn settle(
        &mut self,
        now: Tick,
        subscription: &SubscriptionName,
        claims: Vec<Claim>,
        reply: Reply<Vec<Outcome>>,
    ) {
        let outcomes = self.with(now, subscription, |known, turn| {
            claims.iter().map(|claim| known.settle(turn, claim)).collect()
        });
        match outcomes {
            Some(outcomes) => self.progress.waiting.push(Waiting::Claimed(reply, outcomes)),
            None => {
                let _ = reply.send(Err(self.topic.no_subscription(subscription)));
            }
        }
    }

    fn set_policy(&mut self, now: Tick, subscription: &SubscriptionName, policy: FailurePolicy) {
        self.with(now, subscription, |known, turn| known.set_policy(turn, policy));
    }

    fn set_window(&mut self, now: Tick, subscription: &SubscriptionName, window_max: u32) {
        self.with(now, subscription, |known, turn| known.set_window(turn, window_max));
    }

    fn seek(
        &mut self,
        now: Tick,
        subscription: &SubscriptionName,
        to: Offset,
        reply: Reply<()>,
    ) -> Option<Offset> {
        let old = self.with(now, subscription, |known, turn| known.seek(turn, to));
        match old {
            Some(_) => self.progress.waiting.push(Waiting::Moved(reply)),
            None => {
                let _ = reply.send(Err(self.topic.no_subscription(subscription)));
            }
        }
        old
    }

    fn remove(&mut self, subscription: &SubscriptionName, fault: &Fault) {
        if let Some(mut known) = self.subscriptions.remove(subscription) {
            self.names.remove(&known.id);
            known.end_streams(fault);
            self.tell_subscriptions();
        }
    }

    fn advance(&mut self, now: Tick) -> Vec<SubscriptionName> {
        self.on_tail(now);
        for key in self.signals.take_drained() {
            self.with_id(now, key.subscription, |known, turn| known.drained(turn, key));
        }
        for key in self.signals.take_closed() {
            self.with_id(now, key.subscription, |known, turn| known.closed(turn, key));
        }
        self.with_each(now, |known, turn| known.on_deadline(turn));
        // Reads that memory can serve complete at once, also those that these ones cause.
        while let Ok(completion) = self.completed.try_recv() {
            self.on_completion(now, completion);
        }
        self.with_each(now, |known, turn| known.watch(turn));
        Vec::new()
    }

    fn flush(&mut self) {
        let (topic, log) = (&self.topic, &self.log);
        self.batch.flush(topic, log, &self.signals, &self.metrics, self.context.clock);
        let restate = || {
            let each = self.subscriptions.values();
            each.flat_map(ReliableSubscription::restate).collect()
        };
        self.progress.flush(self.context.clock.now(), topic, log, &self.completions, restate);
        for letter in self.letters.drain(..) {
            letter.send(&self.context, topic, log, &self.completions);
        }
    }

    fn next_deadline(&self) -> Option<Tick> {
        let own = self.subscriptions.values().filter_map(ReliableSubscription::next_deadline);
        own.chain(self.progress.next_deadline()).min()
    }

    fn subscription_count(&self) -> usize {
        self.subscriptions.len()
    }

    fn connected(&self) -> u64 {
        self.subscriptions.values().map(ReliableSubscription::connected).sum()
    }

    fn measure(&mut self, now: Tick) -> Sums {
        let mut sums = Sums::default();
        let tail = self.tail;
        self.with_each(now, |known, turn| {
            let stats = known.measure(turn);
            sums.subscriptions += 1;
            sums.consumers += stats.consumers;
            sums.backlog += stats.backlog;
            sums.in_flight += stats.queued + stats.in_flight;
            sums.waiting += stats.waiting_redelivery;
            sums.blocked += stats.blocked;
            sums.dead_lettering += stats.dead_lettering;
            sums.finished += tail.0.saturating_sub(stats.backlog);
        });
        if self.topic.name.is_dead_letter() {
            let bounds = self.log.bounds();
            let replayed = self.log.subscription(SubscriptionId::REPLAY, Offset(0));
            let waiting = replayed.backlog(bounds.next) - replayed.backlog(bounds.start);
            self.metrics.dead_letters(waiting);
        }
        sums
    }

    fn describe(&self, now: Tick) -> Vec<SubscriptionDescription> {
        self.subscriptions.values().map(|known| known.describe(now)).collect()
    }

    fn consumer(&self, subscription: &SubscriptionName, consumer: ConsumerId) -> (bool, u64) {
        let known = self.subscriptions.get(subscription);
        known.map_or((false, 0), |known| known.consumer(consumer))
    }

    fn stop(&mut self, fault: &Fault) {
        self.subscriptions.values_mut().for_each(|known| known.end_streams(fault));
    }
}
