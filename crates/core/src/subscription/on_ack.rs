//! Acks: they settle a message wherever it is, or, from who can say so, one delivery.
//!
//! The compatible wire cannot say which delivery an ack is for, so an ack by anybody who was given
//! the message counts. The native wire says it, and then only the present holder is heard.
//!
//! Law: an ack for a settled offset, or one that nobody can have been given since the last seek,
//! changes nothing; nor does one for a delivery that is over. Who had a message when the broker
//! died is not known, so after a restart all count that may have been out.

use super::event::{Answer, AttemptId};
use super::slot::{SlotId, State};
use super::{Effect, Subscription};
use crate::ids::{Offset, Tick};

impl Subscription {
    pub(super) fn on_acked(
        &mut self,
        now: Tick,
        offset: Offset,
        attempt: Option<AttemptId>,
        out: &mut Vec<Effect>,
    ) -> Answer {
        let survived = offset < self.suspect_end;
        match (self.slots.find(offset), attempt) {
            (Some(id), None) if !self.slots.get(id).is_known && !survived => Answer::Unchanged,
            (Some(id), Some(attempt)) if !self.is_current(id, attempt) => Answer::Stale,
            (Some(id), _) => {
                if let State::Queued { stream, ticket } = self.slots.get(id).state() {
                    self.seen(now, stream, ticket, out);
                }
                self.finish(id, out);
                Answer::Taken
            }
            (None, Some(_)) => Answer::Stale,
            (None, None) if self.progress.is_finished(offset) => Answer::Unchanged,
            // Not read again since a restart, but somebody had it before.
            (None, None) if survived || self.progress.attempts(offset).is_some() => {
                self.finish_range(offset, offset.next(), out);
                Answer::Taken
            }
            (None, None) => Answer::Unchanged,
        }
    }

    /// Whether `attempt` is the delivery that is out.
    pub(super) fn is_current(&self, id: SlotId, attempt: AttemptId) -> bool {
        let slot = self.slots.get(id);
        let (stream, number) = match slot.state() {
            State::InFlight { stream, .. } => (stream, slot.attempts),
            // The client was faster than the news that the connection took it.
            State::Queued { stream, .. } => (stream, slot.attempts.saturating_add(1)),
            _ => return false,
        };
        let holder = self.streams.get(stream).map(|stream| stream.consumer);
        attempt == AttemptId { number, consumer: attempt.consumer, epoch: self.epoch }
            && holder == Some(attempt.consumer)
    }
}
