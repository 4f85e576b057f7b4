//! The watch against the silent stall: after each turn the engine is asked whether it stands still
//! though it could move, and if so somebody hears why.
//!
//! What counts as a stall is the engine's business; here is only how often it is told. Law: one
//! line and one count when a stall begins, and again each [`REMIND_MS`] while it lasts.

use danube_core::Tick;
use danube_core::subscription::Why;
use std::fmt;

/// How long a stall lasts before it is told once more, in milliseconds.
const REMIND_MS: u64 = 60_000;

/// What the watch has told of one subscription.
#[derive(Debug, Default)]
pub(super) struct Watch {
    stall: Option<Stall>,
    /// When the last stall was told, also after it is over.
    told: Option<Tick>,
}

/// A stall that lasts.
#[derive(Debug)]
struct Stall {
    since: Tick,
}

/// What is to be told of a stall.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    /// The reason, in words.
    pub(super) why: Why,
    /// How long it has been seen to stall, in milliseconds.
    pub(super) for_ms: u64,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the subscription does not move though a consumer is free: {}; please report it, and \
             restart the broker to set it going",
            self.why
        )
    }
}

impl Watch {
    /// Takes in what the engine says of itself; answers what is to be told now, if anything is.
    pub(super) fn look(&mut self, now: Tick, stall: Option<Why>) -> Option<Alarm> {
        let Some(why) = stall else {
            self.stall = None;
            return None;
        };
        let since = self.stall.get_or_insert(Stall { since: now }).since;
        // One that comes and goes is not told at each coming.
        if self.remind_at().is_some_and(|at| now < at) {
            return None;
        }
        self.told = Some(now);
        Some(Alarm { why, for_ms: now.0.saturating_sub(since.0) })
    }

    /// When to look again though nothing happens, if `overdue_at` is when the engine would find
    /// itself stalled.
    pub(super) fn next_deadline(&self, overdue_at: Option<Tick>) -> Option<Tick> {
        match self.stall {
            Some(_) => self.remind_at(),
            None => overdue_at,
        }
    }

    fn remind_at(&self) -> Option<Tick> {
        self.told.map(|told| told.after_ms(REMIND_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::Offset;
    use danube_core::subscription::Owed;
    use expect_test::expect;

    #[test]
    fn an_alarm_says_exactly_why() {
        let owed = Owed::Read { from: Offset(7) };
        let alarm = Alarm { why: Why::Overdue { owed, for_ms: 12_000 }, for_ms: 0 };
        expect!["the subscription does not move though a consumer is free: stalled: the read of the log from offset 7 is overdue for 12.0 s, which is a defect of the broker; please report it, and restart the broker to set it going"].assert_eq(&alarm.to_string());
    }

    #[test]
    fn a_stall_is_told_when_it_begins_and_each_minute_after() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(Tick(5), None), None);
        assert_eq!(watch.next_deadline(Some(Tick(7))), Some(Tick(7)));
        let stalled = || Some(Why::Stalled);
        let alarm = |for_ms| Some(Alarm { why: Why::Stalled, for_ms });
        assert_eq!(watch.look(Tick(10), stalled()), alarm(0));
        assert_eq!(watch.next_deadline(Some(Tick(7))), Some(Tick(60_010)), "no busy waiting");
        assert_eq!(watch.look(Tick(60_009), stalled()), None);
        assert_eq!(watch.look(Tick(60_010), stalled()), alarm(60_000));
        assert_eq!(watch.look(Tick(60_020), None), None);
        assert_eq!(watch.next_deadline(None), None);
        assert_eq!(watch.look(Tick(60_030), stalled()), None, "it comes and goes");
        assert_eq!(watch.look(Tick(120_010), stalled()), alarm(59_980));
    }
}
