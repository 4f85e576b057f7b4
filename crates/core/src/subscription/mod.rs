//! The subscription engine: who receives a message, when it comes back, and what becomes of it
//! when it fails for good. One engine for Exclusive, Failover, Shared and KeyShared.
//!
//! A driver tells it what happened ([`Event`]) and does what it says ([`Effect`]); the engine owns
//! no body, no stream, no file and no clock. The modes differ in two places only: the picker in
//! [`members`] says who, the [`gate`] says whether a message may go now.
//!
//! Where to look: states of a message in [`slot`]; reading ahead in [`fetch`]; what each event
//! means in `on_ack`, `on_nack`, `on_deadline`, `on_stream`, `on_change`; failures that are final
//! in [`poison`]; the reason why nothing moves in [`why`]; what a restart knows in [`progress`].
//!
//! Laws: a message is finished only by an ack, a durable dead-letter copy, a policy that says so,
//! or because nobody wants it. Every finish and every counted failure is recorded. A step costs
//! the logarithm of what is held, never its length, apart from changes of consumers and policy.

mod effect;
mod event;
mod fetch;
mod gate;
pub mod glob;
pub mod members;
mod on_ack;
mod on_change;
mod on_deadline;
mod on_nack;
mod on_stream;
mod poison;
pub mod progress;
pub mod ring;
mod slot;
mod stream;
#[cfg(test)]
mod tests;
mod why;

pub use effect::{Effect, Note};
pub use event::{Event, Item};
pub use members::{Members, Pick, Refusal};
pub use on_nack::REASON_LEN_MAX;
pub use progress::{Attempts, Progress, ProgressRecord, Step};
pub use why::{Stats, Why};

use crate::ids::{ConsumerId, Offset, Tick};
use crate::policy::{FailurePolicy, SubscriptionType};
use fetch::Reader;
use gate::{Gate, Next};
use slot::{Slots, State};
use std::collections::BTreeMap;
use stream::Stream;

/// How a subscription works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Who receives a message. Never changes.
    pub kind: SubscriptionType,
    /// What becomes of failures.
    pub policy: FailurePolicy,
    /// `max_unacked_messages`: most messages that are out or held by a failure; 0 counts as 1.
    pub window_max: u32,
    /// Most messages that are fetched and not finished; 0 counts as 1.
    pub lookahead_max: u32,
}

/// One subscription of one topic partition.
#[derive(Debug, Clone)]
pub struct Subscription {
    config: Config,
    progress: Progress,
    /// One past the last message of the log.
    tail: Offset,
    members: Members,
    streams: BTreeMap<ConsumerId, Stream>,
    slots: Slots,
    gate: Gate,
    reader: Reader,
    /// Tickets given to queued messages.
    tickets: u64,
    /// Finished in this step and not recorded yet.
    run: Option<(Offset, Offset)>,
}

impl Subscription {
    /// A subscription that goes on from `progress` in a log that ends at `tail`. It has no
    /// consumers and does nothing until its first step.
    pub fn new(config: Config, progress: Progress, tail: Offset) -> Subscription {
        Subscription {
            gate: Gate::new(config.kind),
            reader: Reader::at(progress.cursor()),
            config,
            progress,
            tail,
            members: Members::default(),
            streams: BTreeMap::new(),
            slots: Slots::default(),
            tickets: 0,
            run: None,
        }
    }

    /// Takes in one event and appends what is to be done. `now` must not run backwards.
    pub fn step(&mut self, now: Tick, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Tail { next } => self.tail = self.tail.max(next),
            Event::Fetched { items, next } => self.on_fetched(now, items, next, out),
            Event::FetchFailed => self.reader.failed(now),
            Event::Attached { consumer, key_filters } => {
                self.members.attach(now, consumer, key_filters);
                self.gate.members_changed();
            }
            Event::Opened { consumer, room } => self.on_opened(now, consumer, room, out),
            Event::Drained { consumer, count } => self.on_drained(now, consumer, count, out),
            Event::Closed { consumer, clean } => self.on_closed(now, consumer, clean, out),
            Event::Detached { consumer } => self.on_detached(now, consumer, out),
            Event::Acked { offset } => self.on_acked(offset, out),
            Event::Nacked { offset, delay_ms, reason } => {
                self.on_nacked(now, offset, delay_ms, reason, out);
            }
            Event::DeadLettered { offset } => self.on_dead_lettered(offset, out),
            Event::DeadLetterFailed { offset, reason } => {
                self.on_dead_letter_failed(now, offset, reason, out);
            }
            Event::PolicyChanged(policy) => self.on_policy_changed(now, policy, out),
            Event::WindowChanged(window_max) => self.config.window_max = window_max,
            Event::Seek { to } => self.on_seek(to, out),
            Event::Deadline => self.on_deadline(now, out),
        }
        // What happened is recorded before what follows from it.
        self.record_run(out);
        self.dispatch(out);
        self.record_run(out);
        self.fetch(out);
    }

    /// When the driver must send [`Event::Deadline`], unless another step moves it.
    pub fn next_deadline(&self) -> Option<Tick> {
        [self.slots.next_timer(), self.reader.retry()].into_iter().flatten().min()
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

    /// How far it has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Sends what may go: as long as the window, the gate and the consumers allow it.
    fn dispatch(&mut self, out: &mut Vec<Effect>) {
        while self.slots.counts().window_used() < self.config.window_max.max(1) {
            let streams = &self.streams;
            let has_room = |id: ConsumerId| streams.get(&id).is_some_and(Stream::has_room);
            match self.gate.next(&mut self.members, has_room) {
                Next::Send(offset, consumer) => self.deliver(offset, consumer, out),
                Next::Unmatched(offset) => {
                    out.push(Effect::Note(Note::Unmatched(offset)));
                    self.finish(offset, out);
                }
                Next::Wait => return,
            }
        }
    }

    fn deliver(&mut self, offset: Offset, consumer: ConsumerId, out: &mut Vec<Effect>) {
        self.tickets += 1;
        let ticket = self.tickets;
        self.put(offset, State::Queued { consumer, ticket });
        let made = self.slots.get(offset).map_or(0, |slot| slot.attempts);
        if let Some(stream) = self.streams.get_mut(&consumer) {
            stream.push(offset, ticket);
        }
        out.push(Effect::Deliver { consumer, offset, attempt: made.saturating_add(1) });
    }

    /// Moves a slot to another state; everything that follows from states is kept here.
    fn put(&mut self, offset: Offset, next: State) {
        let is_ready = next == State::Ready;
        let is_blocked = matches!(next, State::Blocked { .. });
        let holder = holder_of(&next);
        let Some(before) = self.slots.set(offset, next) else { return };
        self.let_go(offset, &before);
        if let Some(stream) = holder.and_then(|id| self.streams.get_mut(&id)) {
            stream.in_flight.insert(offset);
        }
        let Some(slot) = self.slots.get(offset) else { return };
        match (before == State::Ready, is_ready) {
            (true, false) => self.gate.take(offset, &slot.key),
            (false, true) => self.gate.enter(offset, &slot.key),
            _ => {}
        }
        if is_blocked || matches!(before, State::Blocked { .. }) {
            self.gate.set_blocked(offset, is_blocked);
        }
    }

    fn let_go(&mut self, offset: Offset, state: &State) {
        if let Some(stream) = holder_of(state).and_then(|id| self.streams.get_mut(&id)) {
            stream.in_flight.remove(&offset);
        }
    }

    /// Takes a message out without finishing it.
    fn forget(&mut self, offset: Offset, out: &mut Vec<Effect>) {
        let Some(slot) = self.slots.remove(offset) else { return };
        self.let_go(offset, &slot.state);
        self.gate.leave(offset, &slot.key);
        out.push(Effect::Release { offset });
    }

    /// Finishes a message, wherever it is.
    fn finish(&mut self, offset: Offset, out: &mut Vec<Effect>) {
        self.forget(offset, out);
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

/// The client that holds a message of this state.
fn holder_of(state: &State) -> Option<ConsumerId> {
    match state {
        State::InFlight { consumer, .. } => Some(*consumer),
        _ => None,
    }
}
