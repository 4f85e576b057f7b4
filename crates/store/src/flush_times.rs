//! How long group commits take, counted by the writer thread.
//!
//! Law: counting is one search in a short table and two additions; nothing is allocated.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Upper bounds of the classes, in microseconds; what is longer goes into one class more.
pub const FLUSH_BOUNDS_US: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];

/// Group commits by how long they took, since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlushTimes {
    /// How many fall into each class of [`FLUSH_BOUNDS_US`], and above the last.
    pub classes: [u64; FLUSH_BOUNDS_US.len() + 1],
    /// All of them together, in microseconds.
    pub sum_us: u64,
}

/// The counters behind [`FlushTimes`].
#[derive(Debug, Default)]
pub(crate) struct FlushCounters {
    classes: [AtomicU64; FLUSH_BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl FlushCounters {
    pub(crate) fn count(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = FLUSH_BOUNDS_US.partition_point(|bound| *bound < us);
        self.classes[class].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }

    pub(crate) fn load(&self) -> FlushTimes {
        FlushTimes {
            classes: std::array::from_fn(|class| self.classes[class].load(Relaxed)),
            sum_us: self.sum_us.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_class_that_ends_with_it() {
        let counters = FlushCounters::default();
        for us in [0, 50, 51, 3_000_000] {
            counters.count(Duration::from_micros(us));
        }
        let times = counters.load();
        assert_eq!((times.classes[0], times.classes[1], times.classes[12]), (2, 1, 1));
        assert_eq!(times.sum_us, 3_000_101);
    }
}
