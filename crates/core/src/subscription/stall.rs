//! The check against the silent stall: a backlog, a consumer with room, and nothing that moves.
//!
//! Brokers are hated most for this. So the engine looks at itself: what it finds here is a defect,
//! of the engine or of its driver, to be logged and counted; never a state that users bring about.
//!
//! Law: the check costs a few look-ups, so that it can be made after every turn.

use super::{Subscription, Why};
use crate::ids::Tick;

/// How late an answer of the log, or a deadline, may be before that is a defect, in milliseconds.
pub const LATE_MS: u64 = 10_000;

impl Subscription {
    /// What is wrong, if something is that no state explains: [`Why::Stalled`], or
    /// [`Why::Overdue`] when the driver owes something for more than [`LATE_MS`].
    pub fn stall(&self, now: Tick) -> Option<Why> {
        if self.progress.backlog(self.tail) == 0 || !self.members.any_open() {
            return None;
        }
        let asked = [self.reader.asked(), self.bodies.asked()].into_iter().flatten().min();
        let owed = asked.into_iter().chain(self.next_deadline()).min();
        let late_ms = owed.map_or(0, |owed| now.0.saturating_sub(owed.0));
        if late_ms > LATE_MS {
            return Some(Why::Overdue { for_ms: late_ms });
        }
        let window_max = self.config.window_max.max(1);
        if self.slots.counts().window_used() >= window_max || asked.is_some() {
            return None;
        }
        let is_reading = self.reader.retry().is_some() || self.bodies.are_coming();
        let has_nothing = self.slots.len() == 0 && !is_reading;
        let is_stalled =
            has_nothing || self.gate.has_taker(&self.slots, &self.members, &self.streams);
        is_stalled.then_some(Why::Stalled)
    }
}
