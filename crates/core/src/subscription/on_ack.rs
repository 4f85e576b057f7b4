//! Acks: they settle a message wherever it is.
//!
//! The compatible wire cannot say which delivery an ack is for, so an ack by anybody who was given
//! the message counts. Law: an ack for a settled offset, or one that nobody was given since the
//! last seek, changes nothing.

use super::{Effect, Subscription};
use crate::ids::Offset;

impl Subscription {
    pub(super) fn on_acked(&mut self, offset: Offset, out: &mut Vec<Effect>) {
        let is_known = match self.slots.get(offset) {
            Some(slot) => slot.is_known,
            // Not read again since a restart, but it has failed before: somebody had it.
            None => self.progress.attempts(offset).is_some(),
        };
        if is_known {
            self.finish(offset, out);
        }
    }
}
