//! The broker's two clocks. Law: this is the only file of the crate that asks what time it is, so
//! that every decision below gets the time as an argument.

use danube_core::{Tick, WallMs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock for delays, counted from the process's start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that starts at tick 0 now.
    pub(crate) fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// The present moment on the monotonic clock.
    pub(crate) fn now(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Time since the clock's start, fine enough to measure a latency with.
    pub(crate) fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// The moment `tick` as tokio's timer wants it.
    pub(crate) fn instant(&self, tick: Tick) -> tokio::time::Instant {
        (self.origin + Duration::from_millis(tick.0)).into()
    }

    /// The present moment on the wall, for records and people.
    pub(crate) fn wall() -> WallMs {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallMs(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Clock {
    /// The present moment on the wall, as finely as the system has it, for spans.
    pub(crate) fn system() -> SystemTime {
        SystemTime::now()
    }
}

impl danube_store::Clock for Clock {
    fn wall(&self) -> WallMs {
        Clock::wall()
    }

    fn tick(&self) -> Tick {
        self.now()
    }

    fn elapsed(&self) -> Duration {
        Clock::elapsed(self)
    }
}
