//! Time as the log sees it: given from outside, never asked of the system.
//!
//! Law: nothing on disk is ordered by it. It stamps frames, and it decides what is old enough to
//! go.

use danube_core::{Tick, WallMs};
use std::fmt;
use std::time::Duration;

/// Where the log gets its time from.
pub trait Clock: Send + Sync + 'static {
    /// The time of day. May jump, either way.
    fn wall(&self) -> WallMs;

    /// Time that only goes forward, at its own pace.
    fn tick(&self) -> Tick;

    /// The same time, fine enough to measure a write with.
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.tick().0)
    }
}

/// A clock that stands at 0: nothing is ever old.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClock;

impl Clock for NoClock {
    fn wall(&self) -> WallMs {
        WallMs(0)
    }

    fn tick(&self) -> Tick {
        Tick(0)
    }
}

impl fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The time of day for deciding what is old, which a clock that jumps ahead cannot push.
///
/// It goes forward no faster than time passes. So after a jump ahead messages are kept too long,
/// until a restart or until the clock is set back; after a jump back they are kept longer too.
#[derive(Debug, Default)]
pub(crate) struct SteadyWall {
    last: Option<(WallMs, Tick)>,
}

impl SteadyWall {
    /// How far ahead of the time passed the clock may run without being doubted, in milliseconds.
    const SLACK_MS: u64 = 60_000;

    /// The time that what is old is measured from.
    pub(crate) fn now(&mut self, wall: WallMs, tick: Tick) -> WallMs {
        let now = match self.last {
            Some((last, before)) => {
                let passed = tick.0.saturating_sub(before.0);
                wall.0.min(last.0.saturating_add(passed).saturating_add(Self::SLACK_MS))
            }
            None => wall.0,
        };
        self.last = Some((WallMs(now), tick));
        WallMs(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_ahead_makes_nothing_old() {
        let mut steady = SteadyWall::default();
        let mut now = |wall, tick| steady.now(WallMs(wall), Tick(tick)).0;
        assert_eq!(now(1_000_000, 50), 1_000_000, "the first is believed");
        assert_eq!(now(1_010_000, 10_050), 1_010_000);
        assert_eq!(now(9_999_999_999, 20_050), 1_080_000, "10 s passed, and the slack");
        assert_eq!(now(1_030_000, 30_050), 1_030_000, "set right again");
        assert_eq!(now(500, 40_050), 500, "set back");
    }
}
