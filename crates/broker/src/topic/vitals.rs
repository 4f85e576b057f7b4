//! The figures of one topic partition that anybody may look at without asking its actor.
//!
//! The actor writes them when it brings its gauges up to date, at most once a second and not at all
//! while it is idle; that costs a few stores. So a look at ten thousand topics wakes none of them.
//!
//! Law: each figure is right by itself; two of them may be of different moments.

use danube_core::Tick;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How long a rate holds after it was measured, in milliseconds: a topic that does nothing is not
/// measured any more.
const RATE_AGE_MAX_MS: u64 = 2_500;

/// Sums over the subscriptions of a topic partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    pub(crate) subscriptions: u64,
    /// Consumers with an open stream.
    pub(crate) consumers: u64,
    /// Unfinished messages.
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
    pub(crate) blocked: u64,
    /// Being copied to the dead-letter topic.
    pub(crate) dead_lettering: u64,
    /// Finished so far, counted from the beginning of the log: only differences mean something.
    pub(crate) finished: u64,
}

/// A topic partition's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Vital {
    pub(crate) sums: Sums,
    pub(crate) producers: u64,
    /// Messages per 1,000 s.
    pub(crate) published_rate: u64,
    pub(crate) finished_rate: u64,
}

/// Where the actor leaves them.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    subscriptions: AtomicU64,
    consumers: AtomicU64,
    backlog: AtomicU64,
    in_flight: AtomicU64,
    waiting: AtomicU64,
    blocked: AtomicU64,
    dead_lettering: AtomicU64,
    producers: AtomicU64,
    published_rate: AtomicU64,
    finished_rate: AtomicU64,
    measured_at: AtomicU64,
}

impl Vitals {
    /// The figures as they were measured last; a rate of long ago is none.
    pub(crate) fn read(&self, now: Tick) -> Vital {
        let is_fresh = now.0.saturating_sub(self.measured_at.load(Relaxed)) <= RATE_AGE_MAX_MS;
        let rate = |rate: &AtomicU64| if is_fresh { rate.load(Relaxed) } else { 0 };
        Vital {
            sums: Sums {
                subscriptions: self.subscriptions.load(Relaxed),
                consumers: self.consumers.load(Relaxed),
                backlog: self.backlog.load(Relaxed),
                in_flight: self.in_flight.load(Relaxed),
                waiting: self.waiting.load(Relaxed),
                blocked: self.blocked.load(Relaxed),
                dead_lettering: self.dead_lettering.load(Relaxed),
                finished: 0,
            },
            producers: self.producers.load(Relaxed),
            published_rate: rate(&self.published_rate),
            finished_rate: rate(&self.finished_rate),
        }
    }
}

/// The actor's side: it remembers what it measured last, for the rates.
#[derive(Debug)]
pub(super) struct Measured {
    published: u64,
    finished: u64,
    subscriptions: u64,
}

impl Measured {
    /// What is there when the topic is loaded, from which the first rate counts.
    pub(super) fn start(published: u64, sums: &Sums) -> Measured {
        Measured { published, finished: sums.finished, subscriptions: sums.subscriptions }
    }

    /// Leaves the figures of now; what came since the last time came within `span_ms`.
    pub(super) fn write(
        &mut self,
        vitals: &Vitals,
        now: Tick,
        span_ms: u64,
        published: u64,
        producers: u64,
        sums: &Sums,
    ) {
        let rate = |count: u64| count.saturating_mul(1_000_000) / span_ms.max(1);
        let published_rate = rate(published.saturating_sub(self.published));
        // Another subscription changes what counts as finished without anything being finished.
        let finished_rate = match sums.subscriptions == self.subscriptions {
            true => rate(sums.finished.saturating_sub(self.finished)),
            false => 0,
        };
        *self = Measured::start(published, sums);
        for (to, value) in [
            (&vitals.subscriptions, sums.subscriptions),
            (&vitals.consumers, sums.consumers),
            (&vitals.backlog, sums.backlog),
            (&vitals.in_flight, sums.in_flight),
            (&vitals.waiting, sums.waiting),
            (&vitals.blocked, sums.blocked),
            (&vitals.dead_lettering, sums.dead_lettering),
            (&vitals.producers, producers),
            (&vitals.published_rate, published_rate),
            (&vitals.finished_rate, finished_rate),
            (&vitals.measured_at, now.0),
        ] {
            to.store(value, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_came_in_its_time_and_fades() {
        let vitals = Vitals::default();
        let sums = |finished, subscriptions| Sums { finished, subscriptions, ..Sums::default() };
        let mut measured = Measured::start(100, &sums(10, 1));
        measured.write(&vitals, Tick(5_000), 1_000, 600, 2, &sums(30, 1));
        let read = vitals.read(Tick(5_000));
        assert_eq!((read.published_rate, read.finished_rate, read.producers), (500_000, 20_000, 2));
        let later = vitals.read(Tick(8_000));
        assert_eq!((later.published_rate, later.finished_rate), (0, 0));
        // A new subscription at the end of the log has all before it finished at once.
        measured.write(&vitals, Tick(9_000), 1_000, 600, 2, &sums(630, 2));
        assert_eq!(vitals.read(Tick(9_000)).finished_rate, 0);
        // A cursor that was put back finishes nothing.
        measured.write(&vitals, Tick(9_500), 1_000, 600, 2, &sums(40, 2));
        assert_eq!(vitals.read(Tick(9_500)).finished_rate, 0);
    }
}
