//! Streams: what a consumer's connection does to the messages it was given.
//!
//! Law: an attempt begins when the connection takes a message, not before; a message in a queue
//! that nobody drains burns nothing. What a lost consumer held is ready again at once.

use super::slot::State;
use super::stream::Stream;
use super::{Effect, Note, Subscription};
use crate::ids::{ConsumerId, Offset, Tick};

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
        self.streams.insert(consumer, Stream::with_room(room));
        self.members.open(consumer);
        self.gate.members_changed();
    }

    pub(super) fn on_drained(
        &mut self,
        now: Tick,
        consumer: ConsumerId,
        count: u32,
        out: &mut Vec<Effect>,
    ) {
        for _ in 0..count {
            let stream = self.streams.get_mut(&consumer);
            let Some((offset, ticket)) = stream.and_then(Stream::pop) else { return };
            if self.is_queued(offset, consumer, ticket) {
                self.start(now, offset, consumer, out);
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
            self.gate.members_changed();
        }
    }

    pub(super) fn on_detached(&mut self, now: Tick, consumer: ConsumerId, out: &mut Vec<Effect>) {
        self.end_stream(now, consumer, false, out);
        self.members.detach(consumer);
        self.gate.members_changed();
    }

    /// The connection took a queued message: the attempt counts, and its time runs.
    pub(super) fn start(
        &mut self,
        now: Tick,
        offset: Offset,
        consumer: ConsumerId,
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.slots.get(offset) else { return };
        let attempt = slot.attempts.saturating_add(1);
        self.slots.set_attempts(offset, attempt);
        let until = now.after_ms(self.config.policy.ack_timeout_ms);
        self.put(offset, State::InFlight { consumer, until });
        if attempt > 1 {
            out.push(Effect::Note(Note::Redelivery(offset)));
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
        let Some(stream) = self.streams.remove(&consumer) else { return false };
        for (offset, ticket) in stream.queued() {
            if self.is_queued(offset, consumer, ticket) {
                self.put(offset, State::Ready);
            }
        }
        for offset in stream.in_flight {
            if clean {
                let made = self.slots.get(offset).map_or(0, |slot| slot.attempts);
                self.slots.set_attempts(offset, made.saturating_sub(1));
                self.put(offset, State::Ready);
            } else {
                out.push(Effect::Note(Note::ConsumerGone(offset)));
                self.fail(now, offset, CONSUMER_GONE.to_owned(), 0, out);
            }
        }
        true
    }

    fn is_queued(&self, offset: Offset, consumer: ConsumerId, ticket: u64) -> bool {
        let state = self.slots.get(offset).map(|slot| &slot.state);
        state == Some(&State::Queued { consumer, ticket })
    }
}
