//! The subscription engine: who receives a message, when it comes back, and what becomes of it
//! when it fails for good. One engine for Exclusive, Failover, Shared and KeyShared.
//!
//! A driver tells it what happened ([`Event`]) and does what it says ([`Effect`]); the engine owns
//! no body, no stream, no file and no clock. The modes differ in two places only: the picker in
//! [`members`] says who, the [`gate`] says whether a message may go now.
//!
//! Where to look: states of a message in [`slot`]; reading ahead in [`fetch`], reading again in
//! [`bodies`]; what each event means in `on_ack`, `on_nack`, `on_extend`, `on_deadline`,
//! `on_stream`, `on_change`; failures that are final in [`poison`]; the reason why nothing moves
//! in [`why`], and whether that is a defect in [`stall`]; which messages fail in [`failing`]; what a
//! restart knows in [`progress`].
//!
//! Laws: a message is finished only by an ack, a durable dead-letter copy, a policy that says so,
//! or because nobody wants it. Every finish and every counted failure is recorded. A step costs
//! the logarithm of what is held, never its length, apart from changes of consumers and policy.

mod bodies;
mod effect;
mod event;
mod failing;
mod fetch;
mod gate;
pub mod glob;
mod index;
mod lanes;
pub mod members;
mod on_ack;
mod on_change;
mod on_deadline;
mod on_extend;
mod on_nack;
mod on_stream;
mod poison;
pub mod progress;
pub mod ring;
mod slot;
mod stall;
mod stream;
#[cfg(test)]
mod tests;
mod why;

pub use effect::{Effect, Note};
pub use event::{Answer, AttemptId, Event, Item};
pub use failing::Failing;
pub use fetch::LOOKAHEAD_MAX;
pub use members::{Members, Pick, Refusal};
pub use on_nack::REASON_LEN_MAX;
pub use progress::{Attempts, Progress, ProgressRecord, Step};
pub use stall::LATE_MS;
pub use why::{Owed, Stats, Why};

use crate::ids::{ConsumerId, Offset, Tick};
use crate::policy::{FailurePolicy, SubscriptionType};
use crate::rate::RateLimit;
use bodies::Bodies;
use fetch::Reader;
use gate::{Gate, Next};
use poison::FailedCopy;
use slot::{SlotId, Slots, State, StreamNo};
use std::collections::BTreeMap;
use stream::Streams;

/// Longest extension of one call, in milliseconds, unless configured otherwise.
pub const LEASE_MS_MAX: u64 = 600_000;
/// Longest time that one delivery may be held, in milliseconds, unless configured otherwise.
pub const LEASE_TOTAL_MS_MAX: u64 = 43_200_000;
/// Bytes of bodies held for one subscription, unless configured otherwise.
pub const BODY_BYTES_MAX: u64 = 16 << 20;

/// How a subscription works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Who receives a message. Never changes.
    pub kind: SubscriptionType,
    /// What becomes of failures.
    pub policy: FailurePolicy,
    /// `max_unacked_messages`: most messages that are out or held by a failure; 0 counts as 1.
    pub window_max: u32,
    /// Most messages that are fetched and not finished; 0 counts as 1. In KeyShared this is how many may gather behind a key that
    /// stands still before other keys stand still too.
    pub lookahead_max: u32,
    /// Bytes of bodies beyond which those not needed soon are parked.
    pub body_bytes_max: u64,
    /// Longest extension of one call, in milliseconds.
    pub lease_ms_max: u64,
    /// Longest time that one delivery may be held with extensions, in milliseconds; the policy's
    /// `ack_timeout_ms` if that is longer.
    pub lease_total_ms_max: u64,
}

impl Config {
    /// With the usual bounds.
    pub fn new(kind: SubscriptionType, policy: FailurePolicy, window_max: u32) -> Config {
        let mut config = Config {
            kind,
            policy,
            window_max,
            lookahead_max: 0,
            body_bytes_max: BODY_BYTES_MAX,
            lease_ms_max: LEASE_MS_MAX,
            lease_total_ms_max: LEASE_TOTAL_MS_MAX,
        };
        config.set_window(window_max);
        config
    }

    /// A larger window needs a longer look-ahead.
    fn set_window(&mut self, window_max: u32) {
        self.window_max = window_max;
        let lookahead_min = match self.kind {
            SubscriptionType::KeyShared => LOOKAHEAD_MAX,
            // One window in the consumers' hands and one ready to follow it.
            _ => window_max.saturating_mul(2),
        };
        self.lookahead_max = self.lookahead_max.max(lookahead_min);
    }
}

/// One subscription of one topic partition.
#[derive(Debug, Clone)]
pub struct Subscription {
    config: Config,
    progress: Progress,
    /// One past the last message of the log.
    tail: Offset,
    members: Members,
    streams: Streams,
    slots: Slots,
    gate: Gate,
    reader: Reader,
    bodies: Bodies,
    failed_copies: BTreeMap<Offset, FailedCopy>,
    /// Raised by each seek.
    epoch: u32,
    /// When the first step was taken: waits of before go on from here.
    loaded: Option<Tick>,
    /// Below this, a message may have been out when the broker last died; 0 after a seek.
    suspect_end: Offset,
    /// Tickets given to queued messages.
    tickets: u64,
    /// Finished in this step and not recorded yet.
    run: Option<(Offset, Offset)>,
    /// Streams that read ahead and whose application has just nothing in its hands.
    idle: Vec<StreamNo>,
    /// Deliveries per second.
    rate: RateLimit,
    /// When the rate lets the next message go, while it holds one up.
    paused_until: Option<Tick>,
}

impl Subscription {
    /// A subscription that goes on from `progress` in a log that ends at `tail`. It has no
    /// consumers and does nothing until its first step.
    pub fn new(config: Config, progress: Progress, tail: Offset) -> Subscription {
        Subscription {
            gate: Gate::new(config.kind),
            reader: Reader::at(progress.cursor()),
            suspect_end: suspect_end(&progress, config.lookahead_max).min(tail),
            config,
            progress,
            tail,
            members: Members::default(),
            streams: Streams::default(),
            slots: Slots::default(),
            bodies: Bodies::default(),
            failed_copies: BTreeMap::new(),
            epoch: 0,
            loaded: None,
            tickets: 0,
            run: None,
            idle: Vec::new(),
            rate: RateLimit::new(0),
            paused_until: None,
        }
    }

    /// Takes in one event and appends what is to be done. `now` must not run backwards.
    pub fn step(&mut self, now: Tick, event: Event, out: &mut Vec<Effect>) -> Answer {
        let mut answer = Answer::Unchanged;
        self.step_all(now, std::iter::once(event), |it| answer = it, out);
        answer
    }

    /// As [`step`](Self::step), of events that come together, each answered by `tell`; what follows
    /// from them is done once, after the last.
    pub fn step_all(
        &mut self,
        now: Tick,
        events: impl IntoIterator<Item = Event>,
        mut tell: impl FnMut(Answer),
        out: &mut Vec<Effect>,
    ) {
        self.loaded.get_or_insert(now);
        for event in events {
            tell(self.take(now, event, out));
        }
        while let Some(number) = self.idle.pop() {
            self.hand_over(now, number, out);
        }
        // What happened is recorded before what follows from it.
        self.record_run(out);
        self.dispatch(now, out);
        self.record_run(out);
        self.park_newest(out);
        self.read_bodies(now, out);
        self.fetch(now, out);
    }

    fn take(&mut self, now: Tick, event: Event, out: &mut Vec<Effect>) -> Answer {
        match event {
            Event::Tail { next } => self.tail = self.tail.max(next),
            Event::Fetched { items, next } => self.on_fetched(now, items, next, out),
            Event::FetchFailed => self.reader.failed(now),
            Event::Refetched { from, items, next } => {
                self.on_refetched(now, from, items, next, out);
            }
            Event::RefetchFailed { from } => self.refetch_failed(now, from),
            Event::Attached { consumer, key_filters } => {
                self.members.attach(now, consumer, key_filters);
                self.gate.members_changed(&self.slots);
            }
            Event::Opened { consumer, room } => self.on_opened(now, consumer, room, out),
            Event::ReadsAhead { consumer } => self.on_reads_ahead(consumer),
            Event::Drained { consumer, count } => self.on_drained(now, consumer, count, out),
            Event::Closed { consumer, clean } => self.on_closed(now, consumer, clean, out),
            Event::Detached { consumer } => self.on_detached(now, consumer, out),
            Event::Acked { offset, attempt } => return self.on_acked(now, offset, attempt, out),
            Event::Nacked { offset, attempt, delay_ms, reason } => {
                return self.on_nacked(now, offset, attempt, delay_ms, reason, out);
            }
            Event::Extended { offset, attempt, by_ms } => {
                return self.on_extended(now, offset, attempt, by_ms, out);
            }
            Event::DeadLettered { offset } => self.on_dead_lettered(offset, out),
            Event::DeadLetterFailed { offset, reason } => {
                self.on_dead_letter_failed(now, offset, reason, out);
            }
            Event::PolicyChanged(policy) => self.on_policy_changed(now, policy, out),
            Event::WindowChanged(window_max) => self.config.set_window(window_max),
            Event::RateChanged(per_second) => self.rate.set(per_second),
            Event::Seek { to } => self.on_seek(to, out),
            Event::Deadline => self.on_deadline(now, out),
        }
        Answer::Taken
    }

    /// When the driver must send [`Event::Deadline`], unless another step moves it.
    pub fn next_deadline(&self) -> Option<Tick> {
        let retries = [self.reader.retry(), self.bodies.retry()];
        let waits = retries.into_iter().flatten().chain(self.paused_until);
        self.slots.next_timer().into_iter().chain(waits).min()
    }

    /// Whether `consumer` may attach.
    ///
    /// # Errors
    /// [`Refusal`] when the subscription is Exclusive and another live consumer holds it.
    pub fn admits(&self, now: Tick, consumer: ConsumerId) -> Result<(), Refusal> {
        self.members.admits(self.config.kind, now, consumer)
    }

    /// Whether any consumer has a stream, or has just subscribed and may open one.
    pub fn has_live_consumers(&self, now: Tick) -> bool {
        self.members.has_live(now)
    }

    /// The consumers.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// How it works now.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Which life its deliveries belong to: raised by each seek. What was delivered in an earlier
    /// one is void.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// How far it has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Sends what may go: as long as the window, the rate, the gate and the consumers allow it.
    fn dispatch(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.paused_until = None;
        while self.slots.counts().window_used() < self.config.window_max.max(1) {
            let wait_ms = self.rate.wait_ms(now);
            if wait_ms > 0 {
                // Nobody need be woken for what could not go anyway.
                let has_taker = self.gate.has_taker(&self.slots, &self.members, &self.streams);
                self.paused_until = has_taker.then(|| now.after_ms(wait_ms));
                return;
            }
            match self.gate.next(&self.slots, &mut self.members, &self.streams) {
                Next::Send(id, consumer) => self.deliver(id, consumer, out),
                Next::Unmatched(id) => {
                    out.push(Effect::Note(Note::Unmatched(self.slots.get(id).offset)));
                    self.finish(id, out);
                }
                Next::Read(id) => self.want_next(id),
                Next::Wait => return,
            }
        }
    }

    fn deliver(&mut self, id: SlotId, consumer: ConsumerId, out: &mut Vec<Effect>) {
        let number = self.streams.number(consumer).expect("the gate sends to open streams");
        self.tickets += 1;
        self.rate.take(1);
        let ticket = self.tickets;
        self.put(id, State::Queued { stream: number, ticket });
        if let Some(stream) = self.streams.get_mut(number) {
            stream.push(id, ticket);
            if !stream.has_room() {
                self.gate.room_changed(number, false);
            }
        }
        let slot = self.slots.get(id);
        let (offset, attempt) = (slot.offset, slot.attempts.saturating_add(1));
        out.push(Effect::Deliver { consumer, offset, attempt, ticket });
        self.park_sent(id, out);
    }

    /// Moves a slot to another state; everything that follows from states is kept here.
    fn put(&mut self, id: SlotId, next: State) {
        let before = self.slots.get(id).state();
        if before == State::Ready && next != State::Ready {
            self.gate.take(&mut self.slots, id);
        }
        self.let_go(before);
        self.slots.set(id, next);
        if let State::InFlight { stream, .. } = next
            && let Some(stream) = self.streams.get_mut(stream)
        {
            stream.in_flight += 1;
        }
        if before != State::Ready && next == State::Ready {
            self.gate.come_back(&mut self.slots, id);
        }
        let is_blocked = matches!(next, State::Blocked { .. });
        if is_blocked || matches!(before, State::Blocked { .. }) {
            self.gate.set_blocked(self.slots.get(id).offset, is_blocked);
        }
    }

    fn let_go(&mut self, state: State) {
        if let State::InFlight { stream: number, .. } = state
            && let Some(stream) = self.streams.get_mut(number)
        {
            stream.in_flight -= 1;
            if stream.in_flight == 0 && stream.ahead.is_some() {
                self.idle.push(number);
            }
        }
    }

    /// If a message is queued, its entry must not be sent.
    fn void(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        if let State::Queued { stream, ticket } = self.slots.get(id).state()
            && let Some(stream) = self.streams.get(stream)
        {
            out.push(Effect::Void { consumer: stream.consumer, ticket });
        }
    }

    /// Takes a message out without finishing it.
    fn forget(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        self.void(id, out);
        self.gate.leave(&mut self.slots, id);
        let slot = self.slots.remove(id);
        self.let_go(slot.state());
        if !self.failed_copies.is_empty() {
            self.failed_copies.remove(&slot.offset);
        }
        if slot.has_body {
            self.bodies.bytes -= u64::from(slot.len);
            out.push(Effect::Release { offset: slot.offset });
        }
    }

    /// Finishes a message, wherever it is.
    fn finish(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        let offset = self.slots.get(id).offset;
        self.forget(id, out);
        self.finish_range(offset, offset.next(), out);
    }

    /// Marks a range as finished. A contiguous run of one step becomes one record.
    fn finish_range(&mut self, first: Offset, end: Offset, out: &mut Vec<Effect>) {
        self.progress.apply(&Step::Finished { first, end });
        match &mut self.run {
            Some((_, run_end)) if *run_end == first => *run_end = end,
            _ => {
                self.record_run(out);
                self.run = Some((first, end));
            }
        }
    }

    fn record_run(&mut self, out: &mut Vec<Effect>) {
        if let Some((first, end)) = self.run.take() {
            out.push(Effect::Record(Step::Finished { first, end }));
        }
    }

    /// Takes and records a step that is not a finish.
    fn record(&mut self, step: Step, out: &mut Vec<Effect>) {
        self.progress.apply(&step);
        out.push(Effect::Record(step));
    }
}

/// One past the last offset that may have been out at the end of the life that `progress` tells
/// of: as many unfinished ones as are held at a time.
fn suspect_end(progress: &Progress, held_max: u32) -> Offset {
    let mut end = progress.cursor().plus(held_max.into());
    for (first, finished_end) in progress.finished_above_cursor() {
        if end <= first {
            break;
        }
        end = end.plus(finished_end.0 - first.0);
    }
    end
}
