//! Streams: what a consumer's connection does to the messages it was given.
//!
//! Law: an attempt begins when the connection takes a message, not before; a message in a queue
//! that nobody drains burns nothing. Where the client reads ahead of its application, it begins
//! when the application can have the message: it has nothing else in its hands, or has spoken of a
//! later one. What a lost consumer held is ready again at once.

use super::on_extend::saturated;
use super::slot::{SlotId, State, StreamNo};
use super::{Effect, Note, Step, Subscription};
use crate::ids::{ConsumerId, Tick};
use crate::policy::SubscriptionType;

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
        let number = self.streams.open(consumer, room);
        self.gate.room_changed(number, room > 0);
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
        let was_full = !self.streams.has_room(number);
        for _ in 0..count {
            let stream = self.streams.get_mut(number);
            let Some((id, ticket)) = stream.and_then(|stream| stream.pop()) else { break };
            if !self.is_queued(id, number, ticket) {
                continue;
            }
            match self.streams.get_mut(number).and_then(|stream| stream.ahead.as_mut()) {
                Some(ahead) => ahead.push_back((id, ticket)),
                None => self.start(now, id, number, out),
            }
        }
        if was_full && self.streams.has_room(number) {
            self.gate.room_changed(number, true);
        }
        self.hand_over(now, number, out);
    }

    pub(super) fn on_reads_ahead(&mut self, consumer: ConsumerId) {
        let number = self.streams.number(consumer);
        if let Some(stream) = number.and_then(|number| self.streams.get_mut(number)) {
            stream.ahead.get_or_insert_default();
        }
    }

    /// An application that has nothing in its hands takes the next of what its client holds.
    pub(super) fn hand_over(&mut self, now: Tick, number: StreamNo, out: &mut Vec<Effect>) {
        while let Some(stream) = self.streams.get_mut(number)
            && stream.in_flight == 0
            && let Some((id, ticket)) = stream.next_ahead(u64::MAX)
        {
            if self.is_queued(id, number, ticket) {
                self.start(now, id, number, out);
            }
        }
    }

    /// The application has spoken of the delivery with this ticket, so it has everything that its
    /// client took before.
    pub(super) fn seen(&mut self, now: Tick, number: StreamNo, ticket: u64, out: &mut Vec<Effect>) {
        while let Some(stream) = self.streams.get_mut(number)
            && let Some((id, earlier)) = stream.next_ahead(ticket)
        {
            if earlier < ticket && self.is_queued(id, number, earlier) {
                self.start(now, id, number, out);
            }
        }
    }

    /// An application let its time run out. What its client holds besides goes to others, if there
    /// are any, and nobody is blamed for it.
    pub(super) fn relieve(&mut self, number: StreamNo) {
        let others = self.config.kind == SubscriptionType::Shared && self.streams.len() > 1;
        let Some(stream) = self.streams.get_mut(number).filter(|_| others) else { return };
        let ahead = stream.ahead.as_mut().map(std::mem::take).unwrap_or_default();
        for (id, ticket) in ahead {
            if self.is_queued(id, number, ticket) {
                self.put(id, State::Ready);
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
        self.gate.room_changed(number, false);
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
