//! One subscription of a `NonReliable` topic: in memory, to whoever listens now.
//!
//! Each consumer has a bounded queue; when it is full the oldest message in it is dropped and
//! counted, so a slow consumer of telemetry sees the present rather than the past, and never
//! holds up anybody else. Who receives a message is decided by the same pickers as for reliable
//! subscriptions.

use super::super::TopicIdentity;
use super::super::describe::SubscriptionDescription;
use super::super::dispatch::Refusal;
use super::super::stream::{ConsumerQueue, Ended, QueueReader, Signals, StreamKey, queued_len};
use crate::clock::Clock;
use crate::context::Context;
use crate::metrics::SubscriptionMetrics;
use danube_core::rate::RateLimit;
use danube_core::subscription::{Members, Pick};
use danube_core::{
    ConsumerId, Fault, Offset, SubscriptionId, SubscriptionName, SubscriptionType, Tick,
};
use danube_wire::delivery::Envelope;
use danube_wire::stream::Delivered;
use std::collections::HashMap;
use std::sync::Arc;

/// How long a subscription without consumers is kept.
pub(super) const IDLE_MAX_MS: u64 = 60_000;
/// How long a consumer may take from subscribing to opening its stream before it counts as gone.
const OPENING_MAX_MS: u64 = 10_000;

struct Consumer {
    queue: ConsumerQueue,
    opened: bool,
    attached_at: Tick,
}

impl Consumer {
    fn is_live(&self, now: Tick) -> bool {
        self.opened || now < self.attached_at.after_ms(OPENING_MAX_MS)
    }
}

/// One subscription of a `NonReliable` topic.
pub(super) struct FanoutSubscription {
    pub(super) id: SubscriptionId,
    pub(super) name: SubscriptionName,
    pub(super) kind: SubscriptionType,
    members: Members,
    consumers: HashMap<ConsumerId, Consumer>,
    idle_since: Tick,
    pub(super) envelope: Arc<Envelope>,
    generation: u64,
    rate: RateLimit,
    metrics: SubscriptionMetrics,
}

impl FanoutSubscription {
    pub(super) fn load(
        now: Tick,
        context: &Context,
        topic: &TopicIdentity,
        name: &SubscriptionName,
        record: &danube_core::catalog::Subscription,
    ) -> FanoutSubscription {
        FanoutSubscription {
            id: record.id,
            name: name.clone(),
            kind: record.kind,
            members: Members::default(),
            consumers: HashMap::new(),
            idle_since: now,
            envelope: Arc::new(Envelope::new(&topic.name, context.broker_url(), name)),
            generation: 0,
            rate: RateLimit::new(0),
            metrics: context.metrics.subscription(&topic.name, name),
        }
    }

    /// Whether `consumer` may attach now with subscription type `kind`.
    pub(super) fn admit(
        &self,
        now: Tick,
        consumer: ConsumerId,
        kind: SubscriptionType,
    ) -> Result<(), Refusal> {
        let mut others = self.consumers.iter().filter(|(id, _)| **id != consumer);
        match others.find(|(_, other)| other.is_live(now)) {
            Some(_) if kind != self.kind => Err(Refusal::InUse(self.kind)),
            Some((holder, _)) if kind == SubscriptionType::Exclusive => Err(Refusal::Held(*holder)),
            _ => Ok(()),
        }
    }

    /// Attaches a consumer; what is published before it opens its stream waits in its queue.
    pub(super) fn attach(
        &mut self,
        now: Tick,
        signals: &Arc<Signals>,
        consumer: ConsumerId,
        kind: SubscriptionType,
        key_filters: Vec<String>,
    ) {
        self.kind = kind;
        let gone: Vec<ConsumerId> = self
            .consumers
            .iter()
            .filter(|(id, other)| **id != consumer && !other.is_live(now))
            .map(|(id, _)| *id)
            .collect();
        for other in gone {
            self.remove(now, other);
        }
        self.members.attach(now, consumer, key_filters);
        self.members.open(consumer);
        if !self.consumers.contains_key(&consumer) {
            self.insert(now, signals, consumer);
        }
    }

    fn insert(&mut self, now: Tick, signals: &Arc<Signals>, consumer: ConsumerId) {
        self.generation += 1;
        let key = StreamKey { subscription: self.id, consumer, generation: self.generation };
        let queue = ConsumerQueue::new(key, Arc::clone(signals));
        self.consumers.insert(consumer, Consumer { queue, opened: false, attached_at: now });
    }

    /// Opens the consumer's stream; one it had before ends.
    pub(super) fn open(
        &mut self,
        now: Tick,
        signals: &Arc<Signals>,
        consumer: ConsumerId,
    ) -> QueueReader {
        if self.consumers.get(&consumer).is_none_or(|known| known.opened) {
            if let Some(replaced) = self.consumers.remove(&consumer) {
                replaced.queue.end(Ended::Replaced(Fault::retry(format!(
                    "subscription `{}`: the consumer opened another stream, which replaces this one",
                    self.name
                ))));
            }
            self.insert(now, signals, consumer);
        }
        let known = self.consumers.get_mut(&consumer).expect("inserted above");
        known.opened = true;
        known.queue.reader()
    }

    pub(super) fn closed(&mut self, now: Tick, key: StreamKey) {
        let current = self.consumers.get(&key.consumer);
        if current.is_some_and(|known| known.queue.generation() == key.generation) {
            self.remove(now, key.consumer);
        }
    }

    fn remove(&mut self, now: Tick, consumer: ConsumerId) {
        self.consumers.remove(&consumer);
        self.members.detach(consumer);
        if self.consumers.is_empty() {
            self.idle_since = now;
        }
    }

    /// Ends all streams, because the topic stops.
    pub(super) fn end_streams(&mut self, fault: &Fault) {
        for (_, consumer) in self.consumers.drain() {
            consumer.queue.end(Ended::Stopped(fault.clone()));
        }
    }

    /// Sets how many messages it hands out per second; 0 is no limit.
    pub(super) fn set_rate(&mut self, per_second: u32) {
        self.rate.set(per_second);
    }

    /// Hands deliveries, one behind the other, to whom they belong, or counts them as dropped.
    pub(super) fn publish(&mut self, now: Tick, batch: &[Delivered]) {
        if self.rate.is_limited() {
            return batch.iter().for_each(|delivery| self.publish_within_rate(now, delivery));
        }
        match self.sole_taker() {
            Some(taker) => self.push(taker, batch),
            None => batch.iter().for_each(|delivery| self.publish_one(delivery)),
        }
    }

    /// What is above the rate is dropped and counted.
    fn publish_within_rate(&mut self, now: Tick, delivery: &Delivered) {
        if self.rate.wait_ms(now) > 0 {
            return self.metrics.dropped(1);
        }
        self.rate.take(1);
        self.publish_one(delivery);
    }

    /// The consumer that gets everything, if there is one.
    fn sole_taker(&mut self) -> Option<ConsumerId> {
        match self.kind {
            SubscriptionType::Exclusive | SubscriptionType::Failover => {
                match self.members.pick(self.kind, "", |_| true) {
                    Pick::To(consumer) => Some(consumer),
                    _ => None,
                }
            }
            SubscriptionType::Shared if self.consumers.len() == 1 => {
                self.consumers.keys().next().copied()
            }
            _ => None,
        }
    }

    fn publish_one(&mut self, delivery: &Delivered) {
        let len = queued_len(delivery);
        let consumers = &self.consumers;
        let has_room = |consumer: ConsumerId| {
            consumers.get(&consumer).is_some_and(|known| known.queue.has_fanout_room(len))
        };
        match self.members.pick(self.kind, delivery.record.key(), has_room) {
            Pick::To(consumer) | Pick::Full(consumer) => {
                self.push(consumer, std::slice::from_ref(delivery));
            }
            Pick::NoMatch => self.metrics.unmatched(),
            Pick::NoConsumer => self.metrics.dropped(1),
        }
    }

    fn push(&self, consumer: ConsumerId, batch: &[Delivered]) {
        if let Some(known) = self.consumers.get(&consumer) {
            let dropped = known.queue.push_newest(batch);
            if dropped > 0 {
                self.metrics.dropped(dropped);
            }
            let bytes = batch.iter().map(queued_len).sum();
            self.metrics.delivered(batch.len(), bytes);
            if let Some(first) = batch.first() {
                self.metrics.took(first.record.publish_time(), Clock::wall(), batch.len());
            }
        }
    }

    /// When the subscription has been without consumers for too long.
    pub(super) fn expires_at(&self) -> Option<Tick> {
        self.consumers.is_empty().then(|| self.idle_since.after_ms(IDLE_MAX_MS))
    }

    pub(super) fn connected(&self) -> u64 {
        self.consumers.values().filter(|consumer| consumer.opened).count() as u64
    }

    /// Brings the gauges up to date.
    pub(super) fn measure(&self) {
        self.metrics.active_consumers(self.connected());
    }

    /// Messages that nobody got.
    pub(super) fn lost(&self) -> u64 {
        self.metrics.unmatched_total() + self.metrics.dropped_total()
    }

    pub(super) fn is_connected(&self, consumer: ConsumerId) -> bool {
        self.consumers.get(&consumer).is_some_and(|known| known.opened)
    }

    pub(super) fn describe(&self, next: Offset) -> SubscriptionDescription {
        SubscriptionDescription {
            name: self.name.clone(),
            kind: self.kind,
            cursor: next,
            backlog: 0,
            in_flight: 0,
            waiting_redelivery: 0,
            blocked: 0,
            consumers: Vec::new(),
            window_max: 0,
            unmatched: self.metrics.unmatched_total(),
            dropped: self.metrics.dropped_total(),
            why_code: "",
            failing: Vec::new(),
            why: "the topic is NonReliable: messages go to whoever listens, and none is kept"
                .to_owned(),
        }
    }
}
