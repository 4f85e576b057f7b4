//! The check against the silent stall: a backlog, a consumer with room, and nothing that moves.
//!
//! Brokers are hated most for this. So the engine looks at itself: what it finds here is a defect,
//! of the engine or of its driver, to be logged and counted; never a state that users bring about.
//!
//! Law: the check costs a few look-ups, so that it can be made after every turn.

use super::why::Owed;
use super::{Subscription, Why};
use crate::ids::{Offset, Tick};

/// How late an answer of the log, or a deadline, may be before that is a defect, in milliseconds.
pub const LATE_MS: u64 = 10_000;

impl Subscription {
    /// What is wrong, if something is that no state explains: [`Why::Stalled`], or
    /// [`Why::Overdue`] when the driver owes something for more than [`LATE_MS`].
    pub fn stall(&self, now: Tick) -> Option<Why> {
        if self.progress.backlog(self.tail) == 0 || !self.members.any_open() {
            return None;
        }
        let asked = self.asked();
        let read = asked.map(|(since, from)| (since, Owed::Read { from }));
        let timer = self.next_deadline().map(|since| (since, Owed::Deadline));
        if let Some((since, owed)) = read.into_iter().chain(timer).min_by_key(|(since, _)| *since) {
            let for_ms = now.0.saturating_sub(since.0);
            if for_ms > LATE_MS {
                return Some(Why::Overdue { owed, for_ms });
            }
        }
        let window_max = self.config.window_max.max(1);
        let is_paused = self.paused_until.is_some();
        if self.slots.counts().window_used() >= window_max || asked.is_some() || is_paused {
            return None;
        }
        let is_reading = self.reader.retry().is_some() || self.bodies.are_coming();
        let has_nothing = self.slots.len() == 0 && !is_reading;
        let is_stalled =
            has_nothing || self.gate.has_taker(&self.slots, &self.members, &self.streams);
        is_stalled.then_some(Why::Stalled)
    }

    /// When to look again though nothing has happened: an answer of the log is overdue by then.
    /// A deadline wakes the driver by itself.
    pub fn overdue_at(&self) -> Option<Tick> {
        self.asked().map(|(asked, _)| asked.after_ms(LATE_MS + 1))
    }

    /// When the oldest read was asked for that is not answered, and where it begins.
    fn asked(&self) -> Option<(Tick, Offset)> {
        self.reader.asked().into_iter().chain(self.bodies.asked()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConsumerId;
    use crate::policy::{FailurePolicy, SubscriptionType};
    use crate::subscription::{Config, Event, Item, Progress};

    #[test]
    fn what_the_driver_owes_too_long_is_named() {
        let policy = FailurePolicy { ack_timeout_ms: 1_000, ..FailurePolicy::default() };
        let config = Config::new(SubscriptionType::Shared, policy, 5);
        let mut engine = Subscription::new(config, Progress::default(), Offset(1));
        let mut effects = Vec::new();
        let consumer = ConsumerId(1);
        engine.step(Tick(0), Event::Opened { consumer, room: 5 }, &mut effects);
        let owed = Owed::Read { from: Offset(0) };
        assert_eq!(engine.overdue_at(), Some(Tick(10_001)));
        assert_eq!(engine.stall(Tick(10_000)), None);
        assert_eq!(engine.stall(Tick(10_001)), Some(Why::Overdue { owed, for_ms: 10_001 }));

        let items = vec![Item { offset: Offset(0), key: "k".into(), len: 1 }];
        engine.step(Tick(20_000), Event::Fetched { items, next: Offset(1) }, &mut effects);
        engine.step(Tick(20_000), Event::Drained { consumer, count: 1 }, &mut effects);
        assert_eq!((engine.overdue_at(), engine.stall(Tick(31_000))), (None, None));
        let owed = Owed::Deadline;
        assert_eq!(engine.stall(Tick(31_001)), Some(Why::Overdue { owed, for_ms: 10_001 }));
        engine.step(Tick(31_001), Event::Deadline, &mut effects);
        assert_eq!(engine.stall(Tick(31_001)), None);
    }
}
