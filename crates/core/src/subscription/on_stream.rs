//! Streams: what a consumer's connection does to the messages it was given.
//!
//! Law: an attempt begins when the connection takes a message, not before; a message in a queue
//! that nobody drains burns nothing. What a lost consumer held is ready again at once.

use super::on_extend::saturated;
use super::slot::{SlotId, State, StreamNo};
use super::{Effect, Note, Step, Subscription};
use crate::ids::{ConsumerId, Tick};

/// Recorded reason of a delivery whose consumer went away.
const CONSUMER_GONE: &str = "consumer gone";

impl Subscription {
    pub(super) fn on_opened(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        room: u32,
        out: &mut Vec<Effect>,
    ) {
        // A takeover by the same name: it gets anew what it held, and keeps its place in line.
        self.end_stream(now, consumer, false, out);
        self.streams.open(consumer, room);
        self.members.open(consumer);
        self.gate.members_changed(&self.slots);
    }

    pub(super) fn on_drained(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        count: u32,
        out: &mut Vec<Effect>,
    ) {
        let Some(number) = self.streams.number(consumer) else { return };
        for _ in 0..count {
            let stream = self.streams.get_mut(number);
            let Some((id, ticket)) = stream.and_then(|stream| stream.pop()) else { return };
            if self.is_queued(id, number, ticket) {
                self.start(now, id, number, out);
            }
        }
    }

    pub(super) fn on_closed(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        clean: bool,
        out: &mut Vec<Effect>,
    ) {
        if self.end_stream(now, consumer, clean, out) {
            self.members.close(consumer);
            self.gate.members_changed(&self.slots);
        }
    }

    pub(super) fn on_detached(&mut self, now: Tick, consumer: ConsumerId, out: &mut Vec<Effect>) {
        self.end_stream(now, consumer, false, out);
        self.members.detach(consumer);
        self.gate.members_changed(&self.slots);
    }

    /// The connection took a queued message: the attempt counts, and its time runs.
    pub(super) fn start(&mut self, now: Tick, id: SlotId, stream: StreamNo, out: &mut Vec<Effect>) {
        let timeout_ms = self.config.policy.ack_timeout_ms;
        let slot = self.slots.get_mut(id);
        let (offset, attempt) = (slot.offset, slot.attempts.saturating_add(1));
        (slot.attempts, slot.held_ms) = (attempt, saturated(timeout_ms));
        self.put(id, State::InFlight { stream, until: now.after_ms(timeout_ms) });
        if attempt > 1 {
            out.push(Effect::Note(Note::Redelivery(offset)));
        }
        // A delivery that kills consumer and broker together has to count: what failed before,
        // and what may have been out when the broker last died, is recorded when it goes out.
        if attempt > 1 || offset < self.suspect_end {
            self.record(Step::Delivered { offset, attempt }, out);
        }
    }

    /// Takes back what a stream was given; false if the consumer had none.
    fn end_stream(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        clean: bool,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(number) = self.streams.number(consumer) else { return false };
        let Some((_, stream)) = self.streams.close(consumer) else { return false };
        for (id, ticket) in stream.queued() {
            if self.is_queued(id, number, ticket) {
                self.put(id, State::Ready);
            }
        }
        let is_held = |state| matches!(state, State::InFlight { stream, .. } if stream == number);
        let held = match stream.in_flight {
            0 => Vec::new(),
            _ => self.slots_that(|slot| is_held(slot.state())),
        };
        for id in held {
            if clean {
                self.give_back(id, out);
            } else {
                out.push(Effect::Note(Note::ConsumerGone(self.slots.get(id).offset)));
                self.fail(now, id, CONSUMER_GONE.to_owned(), 0, out);
            }
        }
        true
    }

    /// Makes a message that is in flight ready again, as if this delivery had not been.
    pub(super) fn give_back(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        let slot = self.slots.get_mut(id);
        slot.attempts = slot.attempts.saturating_sub(1);
        let (offset, attempt) = (slot.offset, slot.attempts);
        self.put(id, State::Ready);
        if self.progress.attempts(offset).is_some_and(|recorded| recorded.count != attempt) {
            self.record(Step::Delivered { offset, attempt }, out);
        }
    }

    fn is_queued(&self, id: SlotId, stream: StreamNo, ticket: u64) -> bool {
        self.slots.state_of(id) == Some(State::Queued { stream, ticket })
    }
}
