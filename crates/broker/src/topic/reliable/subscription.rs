//! Drives the engine of one reliable subscription: performs what it decides, tells it what
//! happened. No decision about a message is taken here.
//!
//! The driver keeps the bodies of messages that are fetched and neither finished nor parked; the
//! engine keeps to the byte budget.

use super::super::TopicIdentity;
use super::super::claim::{Claim, Outcome, Verdict};
use super::super::describe::SubscriptionDescription;
use super::super::dispatch::Refusal;
use super::super::stream::{ConsumerQueue, Ended, QueueReader, Signals, StreamKey, Terms, Wire};
use super::dead_letter::Letter;
use super::watch::Watch;
use super::{Completion, Completions};
use crate::clock::Clock;
use crate::context::Context;
use crate::metrics::SubscriptionMetrics;
use crate::traces::Deliveries;
use danube_core::subscription::{
    Answer, Config, Effect, Event, Item, Note, ProgressRecord, Stats, Step, Subscription,
};
use danube_core::{
    ConsumerId, FailurePolicy, Fault, Offset, SubscriptionId, SubscriptionName, SubscriptionType,
    Tick, WallMs,
};
use danube_store::{ReadBatch, ReadError, ReadLimit, TopicLog};
use danube_wire::delivery::Envelope;
use danube_wire::record::Record;
use danube_wire::stream::Delivered;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Bytes of one read.
const FETCH_BYTES_MAX: usize = 1 << 20;
/// Failing messages that a description tells of.
const FAILING_LEN_MAX: usize = 20;
/// How long a consumer may be without a stream before its key filters no longer count. Until then
/// a KeyShared subscription holds the messages that only this consumer wants; after it they match
/// nobody and are skipped.
const ABSENCE_MAX_MS: u64 = 300_000;

/// What a turn of the actor lends to its subscriptions, and what it collects from them.
pub(super) struct Turn<'a> {
    pub(super) now: Tick,
    pub(super) topic: &'a Arc<TopicIdentity>,
    pub(super) log: &'a TopicLog,
    pub(super) signals: &'a Arc<Signals>,
    pub(super) completions: &'a Completions,
    /// Progress to journal at the end of the turn.
    pub(super) steps: &'a mut Vec<ProgressRecord>,
    /// Dead letters to send after that.
    pub(super) letters: &'a mut Vec<Letter>,
}

/// One reliable subscription: its engine and what the engine's words refer to.
pub(super) struct ReliableSubscription {
    pub(super) id: SubscriptionId,
    pub(super) name: SubscriptionName,
    /// Where it began.
    pub(super) start: Offset,
    pub(super) kind: SubscriptionType,
    engine: Subscription,
    policy: FailurePolicy,
    window_max: u32,
    /// What the window becomes when a native consumer opens its stream; `None` where somebody set
    /// the window.
    native_window: Option<u32>,
    streams: HashMap<ConsumerId, ConsumerQueue>,
    /// Attached consumers without a stream, and when they are given up.
    absent: HashMap<ConsumerId, Tick>,
    bodies: BTreeMap<Offset, Record>,
    pub(super) envelope: Arc<Envelope>,
    effects: Vec<Effect>,
    generation: u64,
    watch: Watch,
    metrics: SubscriptionMetrics,
    /// The first unfinished message, once its age is known or asked for.
    oldest: Option<Offset>,
    traced: Deliveries,
}

impl ReliableSubscription {
    /// A subscription as the catalog has it, resumed from what the log knows of it.
    pub(super) fn load(
        context: &Context,
        topic: &TopicIdentity,
        log: &TopicLog,
        name: &SubscriptionName,
        record: &danube_core::catalog::Subscription,
    ) -> ReliableSubscription {
        let policy = record.failure_policy.clone().unwrap_or_default();
        let window_max = record
            .max_unacked_messages
            .unwrap_or(context.options.dispatch.max_unacked_messages)
            .max(1);
        let progress = log.subscription(record.id, record.start);
        let config = Config::new(record.kind, policy.clone(), window_max);
        ReliableSubscription {
            id: record.id,
            name: name.clone(),
            start: record.start,
            kind: record.kind,
            engine: Subscription::new(config, progress, log.bounds().next),
            policy,
            window_max,
            native_window: match record.max_unacked_messages {
                Some(_) => None,
                None => Some(context.options.dispatch.native_window()),
            },
            streams: HashMap::new(),
            absent: HashMap::new(),
            bodies: BTreeMap::new(),
            envelope: Arc::new(Envelope::new(&topic.name, context.broker_url(), name)),
            effects: Vec::new(),
            generation: 0,
            watch: Watch::default(),
            metrics: context.metrics.subscription(&topic.name, name),
            oldest: None,
            traced: context.traces.deliveries(),
        }
    }

    /// Whether `consumer` may attach now with subscription type `kind`.
    pub(super) fn admit(
        &self,
        now: Tick,
        consumer: ConsumerId,
        kind: SubscriptionType,
    ) -> Result<(), Refusal> {
        if kind == self.kind {
            let admitted = self.engine.admits(now, consumer);
            return admitted.map_err(|refusal| Refusal::Held(refusal.holder));
        }
        if self.engine.has_live_consumers(now) {
            return Err(Refusal::InUse(self.kind));
        }
        Ok(())
    }

    pub(super) fn attach(
        &mut self,
        turn: &mut Turn<'_>,
        consumer: ConsumerId,
        kind: SubscriptionType,
        key_filters: Vec<String>,
    ) {
        if kind != self.kind {
            self.become_kind(turn, kind);
        }
        if !self.streams.contains_key(&consumer) {
            self.absent.insert(consumer, turn.now.after_ms(ABSENCE_MAX_MS));
        }
        self.step(turn, Event::Attached { consumer, key_filters });
    }

    /// Nobody is connected, so the engine can be started again as another type.
    fn become_kind(&mut self, turn: &mut Turn<'_>, kind: SubscriptionType) {
        self.kind = kind;
        self.bodies.clear();
        let config = Config::new(kind, self.policy.clone(), self.window_max);
        let progress = self.engine.progress().clone();
        self.engine = Subscription::new(config, progress, turn.log.bounds().next);
    }

    /// Opens the consumer's stream; one it had before ends.
    pub(super) fn open(
        &mut self,
        turn: &mut Turn<'_>,
        consumer: ConsumerId,
        wire: Wire,
    ) -> QueueReader {
        if let Some(replaced) = self.streams.remove(&consumer) {
            replaced.end(Ended::Replaced(Fault::retry(format!(
                "subscription `{}`: the consumer opened another stream, which replaces this one",
                self.name
            ))));
        }
        self.generation += 1;
        let key = StreamKey { subscription: self.id, consumer, generation: self.generation };
        let queue = ConsumerQueue::new(key, Arc::clone(turn.signals));
        queue.set_terms(self.terms());
        let reader = queue.reader();
        self.streams.insert(consumer, queue);
        self.absent.remove(&consumer);
        self.step(turn, Event::Opened { consumer, room: wire.queue_len_max() });
        match (wire, self.native_window) {
            (Wire::Compatible, _) => {
                self.step(turn, Event::ReadsAhead { consumer });
            }
            (Wire::Native, Some(window_max)) => {
                self.window_max = self.window_max.max(window_max);
                self.step(turn, Event::WindowChanged(self.window_max));
            }
            (Wire::Native, None) => {}
        }
        reader
    }

    fn terms(&self) -> Terms {
        Terms { epoch: self.engine.epoch(), lease_ms: self.policy.ack_timeout_ms }
    }

    fn tell_terms(&self) {
        self.streams.values().for_each(|queue| queue.set_terms(self.terms()));
    }

    pub(super) fn drained(&mut self, turn: &mut Turn<'_>, key: StreamKey) {
        if let Some(queue) = self.stream(key) {
            let count = queue.take_drained();
            if count > 0 {
                self.step(turn, Event::Drained { consumer: key.consumer, count });
            }
        }
    }

    pub(super) fn closed(&mut self, turn: &mut Turn<'_>, key: StreamKey) {
        self.drained(turn, key);
        if let Some(clean) = self.stream(key).map(ConsumerQueue::is_clean) {
            self.streams.remove(&key.consumer);
            self.absent.insert(key.consumer, turn.now.after_ms(ABSENCE_MAX_MS));
            self.step(turn, Event::Closed { consumer: key.consumer, clean });
        }
    }

    /// Takes in what a client says of messages that it was given.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>, claim: &Claim) -> Outcome {
        let mut outcome = Outcome::default();
        for (offset, event) in claim.events() {
            let answer = self.step(turn, event);
            match (&claim.verdict, &answer) {
                (_, Answer::Extended { .. }) => self.metrics.extended(),
                (_, Answer::Stale) => {}
                (Verdict::Ack, _) => self.traced.end(offset, "ack"),
                // What is nacked may be out again already; the note of it came before that.
                (Verdict::Nack { .. } | Verdict::Extend { .. }, _) => {}
            }
            outcome.add(offset, answer);
        }
        outcome
    }

    fn stream(&self, key: StreamKey) -> Option<&ConsumerQueue> {
        self.streams.get(&key.consumer).filter(|queue| queue.generation() == key.generation)
    }

    /// Ends all streams, because the topic stops.
    pub(super) fn end_streams(&mut self, fault: &Fault) {
        for (_, queue) in self.streams.drain() {
            queue.end(Ended::Stopped(fault.clone()));
        }
    }

    pub(super) fn fetched(&mut self, turn: &mut Turn<'_>, result: Result<ReadBatch, ReadError>) {
        let event = match self.take_in(turn, result) {
            Some((items, next)) => Event::Fetched { items, next },
            None => Event::FetchFailed,
        };
        self.step(turn, event);
    }

    pub(super) fn refetched(
        &mut self,
        turn: &mut Turn<'_>,
        from: Offset,
        result: Result<ReadBatch, ReadError>,
    ) {
        let event = match self.take_in(turn, result) {
            Some((items, next)) => Event::Refetched { from, items, next },
            None => Event::RefetchFailed { from },
        };
        self.step(turn, event);
    }

    /// Keeps the bodies of what was read; `None` if it cannot be used.
    fn take_in(
        &mut self,
        turn: &Turn<'_>,
        result: Result<ReadBatch, ReadError>,
    ) -> Option<(Vec<Item>, Offset)> {
        let batch = match result {
            Ok(batch) => batch,
            Err(error) => {
                tracing::warn!(topic = %turn.topic.name, subscription = %self.name, %error, "cannot read the log");
                return None;
            }
        };
        // Only KeyShared asks for the key, and making one costs an allocation per message.
        let (by_key, no_key) = (self.kind == SubscriptionType::KeyShared, Arc::from(""));
        let mut items = Vec::with_capacity(batch.records.len());
        let mut bodies = Vec::with_capacity(batch.records.len());
        for (offset, bytes) in batch.records {
            match Record::parse(bytes) {
                Ok(record) => {
                    let len = u32::try_from(record.bytes().len()).unwrap_or(u32::MAX);
                    let key = if by_key { record.key().into() } else { Arc::clone(&no_key) };
                    items.push(Item { offset, key, len });
                    bodies.push((offset, record));
                }
                // The checksum held, so this is a record of a version we do not know.
                Err(error) => {
                    tracing::error!(topic = %turn.topic.name, %offset, %error, "cannot read a record of the log; delivery stops before it");
                    return None;
                }
            }
        }
        self.bodies.extend(bodies);
        Some((items, batch.next))
    }

    pub(super) fn dead_lettered(
        &mut self,
        turn: &mut Turn<'_>,
        offset: Offset,
        result: Result<(), Fault>,
    ) {
        match result {
            Ok(()) => {
                self.step(turn, Event::DeadLettered { offset });
            }
            Err(fault) => {
                tracing::warn!(topic = %turn.topic.name, subscription = %self.name, %offset, reason = %fault, "dead-letter copy failed; it is tried again");
                self.step(turn, Event::DeadLetterFailed { offset, reason: fault.message });
            }
        }
    }

    pub(super) fn set_policy(&mut self, turn: &mut Turn<'_>, policy: FailurePolicy) {
        self.policy = policy.clone();
        self.tell_terms();
        self.step(turn, Event::PolicyChanged(policy));
    }

    pub(super) fn set_rate(&mut self, turn: &mut Turn<'_>, per_second: u32) {
        self.step(turn, Event::RateChanged(per_second));
    }

    /// Gives the subscription a window of its own.
    pub(super) fn set_window(&mut self, turn: &mut Turn<'_>, window_max: u32) {
        (self.window_max, self.native_window) = (window_max, None);
        self.step(turn, Event::WindowChanged(window_max));
    }

    /// Puts the cursor; answers where it was. What waits in the streams becomes void by that.
    pub(super) fn seek(&mut self, turn: &mut Turn<'_>, to: Offset) -> Offset {
        let old = self.engine.progress().cursor();
        self.step(turn, Event::Seek { to });
        self.traced.end_all("seek");
        self.tell_terms();
        old
    }

    /// Nothing below this is delivered any more.
    pub(super) fn cursor(&self) -> Offset {
        self.engine.progress().cursor()
    }

    pub(super) fn next_deadline(&self) -> Option<Tick> {
        let watch = self.watch.next_deadline(self.engine.overdue_at());
        let own = self.engine.next_deadline().into_iter().chain(watch);
        own.chain(self.absent.values().copied()).min()
    }

    /// Looks whether it stands still without a reason that anybody could remove; tells if so.
    pub(super) fn watch(&mut self, turn: &Turn<'_>) {
        let Some(alarm) = self.watch.look(turn.now, self.engine.stall(turn.now)) else { return };
        let stats = self.engine.stats(turn.now);
        self.metrics.stalled();
        tracing::error!(topic = %turn.topic.name, subscription = %self.name, ?stats, for_ms = alarm.for_ms, "{alarm}");
    }

    pub(super) fn on_deadline(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        let gone: Vec<ConsumerId> =
            self.absent.extract_if(|_, at| *at <= now).map(|(id, _)| id).collect();
        for consumer in gone {
            self.step(turn, Event::Detached { consumer });
        }
        if self.engine.next_deadline().is_some_and(|deadline| deadline <= turn.now) {
            self.step(turn, Event::Deadline);
        }
    }

    /// Brings the gauges up to date.
    pub(super) fn measure(&mut self, turn: &Turn<'_>) -> Stats {
        let stats = self.engine.stats(turn.now);
        self.metrics.measure(&stats);
        let first = self.engine.progress().cursor();
        if stats.backlog == 0 {
            self.oldest = None;
            self.metrics.oldest(WallMs(0));
        } else if self.oldest != Some(first) {
            self.oldest = Some(first);
            match self.bodies.get(&first) {
                Some(body) => self.metrics.oldest(body.publish_time()),
                None => self.read_first(turn, first),
            }
        }
        stats
    }

    /// Asks the log when the first unfinished message was published; nobody may have fetched it.
    fn read_first(&self, turn: &Turn<'_>, from: Offset) {
        let (completions, subscription) = (turn.completions.clone(), self.id);
        turn.log.read(from, limit(1), move |result| {
            let result = Box::new(result);
            completions.send(Completion::FirstRead { subscription, from, result });
        });
    }

    /// Takes in what the log said; an error is told where the message is fetched.
    pub(super) fn first_read(&mut self, from: Offset, result: Result<ReadBatch, ReadError>) {
        let first = result.ok().and_then(|batch| batch.records.into_iter().next());
        let record = first.and_then(|(_, bytes)| Record::parse(bytes).ok());
        if self.oldest == Some(from) {
            self.metrics.oldest(record.map_or(WallMs(0), |record| record.publish_time()));
        }
    }

    pub(super) fn describe(&self, now: Tick) -> SubscriptionDescription {
        let stats = self.engine.stats(now);
        let why = self.engine.why(now);
        SubscriptionDescription {
            name: self.name.clone(),
            kind: self.kind,
            cursor: self.engine.progress().cursor(),
            backlog: stats.backlog,
            in_flight: stats.queued + stats.in_flight,
            waiting_redelivery: stats.waiting_redelivery,
            blocked: stats.blocked,
            consumers: Vec::new(),
            window_max: self.window_max,
            unmatched: self.metrics.unmatched_total(),
            dropped: self.metrics.dropped_total(),
            why: why.to_string(),
            why_code: why.code(),
            failing: self.engine.failing(now, FAILING_LEN_MAX),
        }
    }

    /// Whether a consumer has an open stream, and how many messages it holds.
    pub(super) fn consumer(&self, consumer: ConsumerId) -> (bool, u64) {
        (self.streams.contains_key(&consumer), self.engine.held_by(consumer))
    }

    /// Consumers with an open stream.
    pub(super) fn connected(&self) -> u64 {
        self.streams.len() as u64
    }

    /// Everything a restart must know, as records that replace all earlier ones.
    pub(super) fn restate(&self) -> impl Iterator<Item = ProgressRecord> {
        let subscription = self.id;
        self.engine
            .progress()
            .restate()
            .into_iter()
            .map(move |step| ProgressRecord { subscription, step })
    }

    /// Takes one step and performs what it decides.
    pub(super) fn step(&mut self, turn: &mut Turn<'_>, event: Event) -> Answer {
        let mut effects = std::mem::take(&mut self.effects);
        let answer = self.engine.step(turn.now, event, &mut effects);
        let mut wall = None;
        for effect in effects.drain(..) {
            self.perform(turn, effect, &mut wall);
        }
        self.effects = effects;
        answer
    }

    /// Does what was decided. `wall` is the time of day, once somebody has asked for it.
    fn perform(&mut self, turn: &mut Turn<'_>, effect: Effect, wall: &mut Option<WallMs>) {
        match effect {
            Effect::Fetch { from, max } => self.fetch(turn, from, max),
            Effect::Refetch { from, max } => self.refetch(turn, from, max),
            Effect::Deliver { consumer, offset, attempt, ticket } => {
                self.deliver(turn, consumer, (offset, attempt), ticket);
                if attempt == 1 {
                    let now = *wall.get_or_insert_with(Clock::wall);
                    self.metrics.took(self.bodies[&offset].publish_time(), now, 1);
                }
            }
            Effect::Void { consumer, ticket } => {
                if let Some(queue) = self.streams.get(&consumer) {
                    queue.void(ticket);
                }
            }
            Effect::Release { offset } | Effect::Park { offset } => {
                self.bodies.remove(&offset);
            }
            Effect::Record(step) => self.record(turn, step),
            Effect::DeadLetter { offset, attempt, reason } => {
                self.dead_letter(turn, offset, attempt, reason);
            }
            Effect::Note(note) => self.note(turn, note),
        }
    }

    fn fetch(&self, turn: &Turn<'_>, from: Offset, max: u32) {
        let (completions, subscription) = (turn.completions.clone(), self.id);
        turn.log.read(from, limit(max), move |result| {
            completions.send(Completion::Fetched { subscription, result: Box::new(result) });
        });
    }

    fn refetch(&self, turn: &Turn<'_>, from: Offset, max: u32) {
        let (completions, subscription) = (turn.completions.clone(), self.id);
        turn.log.read(from, limit(max), move |result| {
            let result = Box::new(result);
            completions.send(Completion::Refetched { subscription, from, result });
        });
    }

    fn deliver(
        &mut self,
        turn: &Turn<'_>,
        consumer: ConsumerId,
        (offset, attempt): (Offset, u32),
        ticket: u64,
    ) {
        let body = self.bodies.get(&offset).expect("the engine delivers what it has fetched");
        let queue = self.streams.get(&consumer).expect("the engine delivers to open streams");
        self.metrics.delivered(1, body.bytes().len());
        self.traced.begin(turn.topic, &self.name, (offset, attempt), body);
        queue.push(ticket, Delivered { offset, attempt, record: body.clone() });
    }

    fn record(&self, turn: &mut Turn<'_>, step: Step) {
        turn.steps.push(ProgressRecord { subscription: self.id, step });
    }

    fn dead_letter(
        &self,
        turn: &mut Turn<'_>,
        offset: Offset,
        attempt: u32,
        reason: Option<String>,
    ) {
        let body = self.bodies.get(&offset).expect("the engine holds what it dead-letters");
        turn.letters.push(Letter {
            subscription: self.id,
            name: self.name.clone(),
            offset,
            attempt,
            reason,
            target: self.policy.dead_letter_topic.clone(),
            body: body.clone(),
        });
    }

    fn note(&mut self, turn: &Turn<'_>, note: Note) {
        let (topic, subscription) = (&turn.topic.name, &self.name);
        match note {
            Note::Unmatched(_) => {
                tracing::debug!(%topic, %subscription, "a message matches nobody's key filter and is skipped");
            }
            Note::Nack(offset) => self.traced.end(offset, "nack"),
            Note::AckTimeout(offset) => self.traced.end(offset, "ack_timeout"),
            Note::ConsumerGone(offset) => self.traced.end(offset, "consumer_gone"),
            Note::Gap { first, end } => {
                tracing::warn!(%topic, %subscription, %first, %end, "the log does not have messages that were not finished: retention took them, or a power loss; delivery goes on behind them");
            }
            _ => {}
        }
        self.metrics.note(note);
    }
}

fn limit(records: u32) -> ReadLimit {
    ReadLimit { records_max: records as usize, bytes_max: FETCH_BYTES_MAX }
}
