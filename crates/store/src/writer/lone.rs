//! Whether whoever brings a write that waits for a sync may do that sync too.
//!
//! It saves waking the writer's thread and being woken by it, which is half of what a lone append
//! costs beside the disk. But who waits for the disk serves nobody else meanwhile, and cannot see that
//! others came whose writes the same sync would have served.
//!
//! Law: it is allowed only after writes that came one at a time, to a quick disk and from callers with
//! nothing else to do; never so often in a row that a change of that goes unseen; and syncs that turn
//! out slow take at most a twentieth of the time.

use danube_core::Tick;
use std::time::Duration;

/// Groups of the writer's own thread that were one write each, before it is allowed.
const PROOF: u32 = 4;
/// How many come then before the writer's own thread looks again.
const CREDIT: u32 = 64;
/// A sync is slow from here on.
const SLOW: Duration = Duration::from_millis(1);
/// For so many times as long as a slow one took, the callers do none.
const SLOW_SHARE: u64 = 20;

/// Who did a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The writer's own thread: whatever came meanwhile is in the queue.
    Writer,
    /// Whoever brought it.
    Caller,
}

/// What is known of the groups before.
#[derive(Debug, Default)]
pub(super) struct Lone {
    /// Groups of one write in a row.
    alone: u32,
    /// How many may still be done by who brings them.
    credit: u32,
    /// None of them before.
    not_before: Tick,
}

impl Lone {
    /// Takes note of a group that was one write with a sync, while nothing else was to do, and
    /// that `took` so long.
    pub fn alone(&mut self, by: By, took: Duration, now: Tick) {
        if took >= SLOW {
            self.company();
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.not_before = now.after_ms(took_ms.saturating_mul(SLOW_SHARE));
            return;
        }
        match by {
            By::Caller => self.credit = self.credit.saturating_sub(1),
            By::Writer => {
                self.alone += 1;
                if self.alone >= PROOF {
                    (self.alone, self.credit) = (0, CREDIT);
                }
            }
        }
    }

    /// Takes note of anything else that was to do.
    pub fn company(&mut self) {
        (self.alone, self.credit) = (0, 0);
    }

    /// Whether the next may be done by who brings it.
    pub fn is_allowed(&self, now: Tick) -> bool {
        self.credit > 0 && now >= self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(200);
    const NOW: Tick = Tick(1_000);

    fn proved() -> Lone {
        let mut lone = Lone::default();
        for _ in 0..PROOF {
            assert!(!lone.is_allowed(NOW));
            lone.alone(By::Writer, QUICK, NOW);
        }
        lone
    }

    #[test]
    fn it_is_looked_at_anew_after_so_many() {
        let mut lone = proved();
        for _ in 0..CREDIT {
            assert!(lone.is_allowed(NOW));
            lone.alone(By::Caller, QUICK, NOW);
        }
        assert!(!lone.is_allowed(NOW));
        (0..PROOF).for_each(|_| lone.alone(By::Writer, QUICK, NOW));
        assert!(lone.is_allowed(NOW));
    }

    #[test]
    fn company_ends_it_and_it_has_to_be_proved_again() {
        let mut lone = proved();
        lone.company();
        (1..PROOF).for_each(|_| lone.alone(By::Writer, QUICK, NOW));
        lone.company();
        lone.alone(By::Writer, QUICK, NOW);
        assert!(!lone.is_allowed(NOW));
    }

    #[test]
    fn a_slow_disk_is_waited_for_by_callers_a_twentieth_of_the_time() {
        let mut lone = proved();
        lone.alone(By::Caller, Duration::from_millis(30), NOW);
        (0..PROOF).for_each(|_| lone.alone(By::Writer, QUICK, NOW));
        assert!(!lone.is_allowed(NOW.after_ms(599)));
        assert!(lone.is_allowed(NOW.after_ms(600)));
    }
}
