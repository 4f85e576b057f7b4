//! How far a subscription has come: what a restart must know to go on.
//!
//! The log keeps, per subscription, the [`Progress`] that follows from its [`ProgressRecord`]s;
//! the engine makes the records, and is started again from the progress. In memory-only topics
//! nobody records anything.
//!
//! Law: applying the same records in the same order gives the same progress, and applying a
//! record twice changes nothing.

use crate::ids::{Offset, SubscriptionId};
use std::collections::BTreeMap;

/// One step forward of one subscription, as journaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressRecord {
    /// Whose step it is.
    pub subscription: SubscriptionId,
    /// What happened.
    pub step: Step,
}

/// What a [`ProgressRecord`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// All offsets of `first .. end` are finished: acknowledged, dead-lettered, dropped or skipped.
    Finished {
        /// First finished offset.
        first: Offset,
        /// One past the last finished offset.
        end: Offset,
    },
    /// Delivery number `attempt` of `offset` failed.
    Failed {
        /// The message.
        offset: Offset,
        /// Deliveries made so far; the first delivery is 1.
        attempt: u32,
        /// Whether the message now blocks and waits for somebody to settle it.
        blocked: bool,
        /// Why: the consumer's own words, `ack timeout` or `consumer gone`.
        reason: String,
    },
    /// Delivery number `attempt` of `offset` began: so many deliveries are made, even if nobody
    /// lives to say how this one ended. A wait is over. 0 forgets the message's failures.
    Delivered {
        /// The message.
        offset: Offset,
        /// Deliveries made so far, with this one.
        attempt: u32,
    },
    /// `offset`, which failed, waits for its next delivery.
    Delayed {
        /// The message.
        offset: Offset,
        /// How long, in milliseconds. After a restart it waits as long again from there on.
        delay_ms: u64,
    },
    /// The cursor was put to `cursor` by hand: everything below is finished, everything from
    /// there on is not, and all attempts are forgotten.
    Moved {
        /// The first unfinished offset.
        cursor: Offset,
    },
}

/// Failures of a message that is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    /// Deliveries made so far.
    pub count: u32,
    /// Whether the message blocks.
    pub blocked: bool,
    /// Why the last one failed.
    pub reason: String,
    /// How long it was to wait for the next one, in milliseconds; 0 once that began.
    pub delay_ms: u64,
}

/// What is finished and what has failed, of one subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Everything below is finished; this offset is not.
    cursor: Offset,
    /// Finished ranges above the cursor: first offset to one past the last. Never adjacent.
    finished: BTreeMap<Offset, Offset>,
    /// How many offsets these ranges have.
    finished_len: u64,
    /// Failures of unfinished messages.
    attempts: BTreeMap<Offset, Attempts>,
}

impl Progress {
    /// A subscription that has finished nothing from `cursor` on.
    pub fn at(cursor: Offset) -> Progress {
        Progress { cursor, ..Progress::default() }
    }

    /// The first unfinished offset.
    pub fn cursor(&self) -> Offset {
        self.cursor
    }

    /// Whether `offset` is finished.
    pub fn is_finished(&self, offset: Offset) -> bool {
        offset < self.cursor
            || self.finished.range(..=offset).next_back().is_some_and(|(_, end)| offset < *end)
    }

    /// The first unfinished offset from `offset` on.
    pub fn first_unfinished(&self, offset: Offset) -> Offset {
        let offset = offset.max(self.cursor);
        match self.finished.range(..=offset).next_back() {
            // Ranges are never adjacent, so what follows one is unfinished.
            Some((_, end)) if offset < *end => *end,
            _ => offset,
        }
    }

    /// The end of the unfinished run that begins at `offset`, or `end` if that comes first.
    pub fn unfinished_end(&self, offset: Offset, end: Offset) -> Offset {
        self.finished.range(offset..end).next().map_or(end, |(first, _)| *first)
    }

    /// Failures of `offset`, if it has any and is not finished.
    pub fn attempts(&self, offset: Offset) -> Option<&Attempts> {
        self.attempts.get(&offset)
    }

    /// All unfinished messages that have failed, in offset order.
    pub fn failures(&self) -> impl Iterator<Item = (Offset, &Attempts)> {
        self.attempts.iter().map(|(offset, attempts)| (*offset, attempts))
    }

    /// Finished ranges above the cursor, in order: first offset, one past the last.
    pub fn finished_above_cursor(&self) -> impl Iterator<Item = (Offset, Offset)> {
        self.finished.iter().map(|(first, end)| (*first, *end))
    }

    /// Messages of `cursor .. tail` that are not finished.
    pub fn backlog(&self, tail: Offset) -> u64 {
        tail.0.saturating_sub(self.cursor.0).saturating_sub(self.finished_len)
    }

    /// Steps that lead to this progress from any other: what to record when it is not certain
    /// which of the earlier records reached the journal.
    pub fn restate(&self) -> Vec<Step> {
        let mut steps = vec![Step::Moved { cursor: self.cursor }];
        steps.extend(
            self.finished.iter().map(|(first, end)| Step::Finished { first: *first, end: *end }),
        );
        for (offset, attempts) in &self.attempts {
            steps.push(Step::Failed {
                offset: *offset,
                attempt: attempts.count,
                blocked: attempts.blocked,
                reason: attempts.reason.clone(),
            });
            if attempts.delay_ms > 0 {
                steps.push(Step::Delayed { offset: *offset, delay_ms: attempts.delay_ms });
            }
        }
        steps
    }

    /// Takes one step.
    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::Finished { first, end } => self.finish(*first, *end),
            Step::Failed { offset, attempt, blocked, reason } => {
                if !self.is_finished(*offset) {
                    let attempts = Attempts {
                        count: *attempt,
                        blocked: *blocked,
                        reason: reason.clone(),
                        delay_ms: 0,
                    };
                    self.attempts.insert(*offset, attempts);
                }
            }
            Step::Delivered { offset, attempt: 0 } => {
                self.attempts.remove(offset);
            }
            Step::Delivered { offset, attempt } => {
                if !self.is_finished(*offset) {
                    let attempts = self.attempts.entry(*offset).or_default();
                    (attempts.count, attempts.blocked, attempts.delay_ms) = (*attempt, false, 0);
                }
            }
            Step::Delayed { offset, delay_ms } => {
                if let Some(attempts) = self.attempts.get_mut(offset) {
                    attempts.delay_ms = *delay_ms;
                }
            }
            Step::Moved { cursor } => *self = Progress::at(*cursor),
        }
    }

    fn finish(&mut self, first: Offset, end: Offset) {
        let (first, end) = (first.max(self.cursor), end);
        if first >= end {
            return;
        }
        self.forget_attempts(first, end);
        if self.finished.is_empty() && first == self.cursor {
            // Most messages are finished in order.
            self.cursor = end;
            return;
        }
        let (first, end) = self.swallow(first, end);
        if first <= self.cursor {
            self.cursor = end;
        } else {
            self.finished_len += end.0 - first.0;
            self.finished.insert(first, end);
        }
    }

    /// Takes out every range that touches `first .. end`, and gives what they are together.
    fn swallow(&mut self, mut first: Offset, mut end: Offset) -> (Offset, Offset) {
        while let Some((&left, &right)) = self.finished.range(..=end).next_back() {
            if right < first {
                break;
            }
            self.finished_len -= right.0 - left.0;
            first = first.min(left);
            end = end.max(right);
            self.finished.remove(&left);
        }
        (first, end)
    }

    fn forget_attempts(&mut self, first: Offset, end: Offset) {
        if self.attempts.is_empty() {
            return;
        }
        while let Some((&offset, _)) = self.attempts.range(first..end).next() {
            self.attempts.remove(&offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn finished(first: u64, end: u64) -> Step {
        Step::Finished { first: Offset(first), end: Offset(end) }
    }

    #[test]
    fn the_cursor_moves_over_a_hole_once_it_is_filled() {
        let mut progress = Progress::at(Offset(10));
        progress.apply(&finished(11, 12));
        progress.apply(&finished(13, 15));
        assert_eq!(progress.cursor(), Offset(10));
        assert_eq!(progress.backlog(Offset(20)), 7);
        progress.apply(&finished(12, 13));
        assert_eq!(progress.finished_above_cursor().count(), 1, "adjacent ranges are one");
        progress.apply(&finished(10, 11));
        assert_eq!((progress.cursor(), progress.backlog(Offset(20))), (Offset(15), 5));
    }

    #[test]
    fn finishing_forgets_the_failures_and_moving_forgets_everything() {
        let failed = |offset, attempt| Step::Failed {
            offset: Offset(offset),
            attempt,
            blocked: false,
            reason: "no".into(),
        };
        let mut progress = Progress::at(Offset(0));
        progress.apply(&failed(3, 1));
        progress.apply(&failed(3, 2));
        assert_eq!(progress.attempts(Offset(3)).map(|a| a.count), Some(2));
        progress.apply(&finished(3, 4));
        assert_eq!(progress.attempts(Offset(3)), None);
        progress.apply(&failed(3, 9));
        assert_eq!(progress.attempts(Offset(3)), None, "a finished message cannot fail");
        progress.apply(&Step::Moved { cursor: Offset(2) });
        assert_eq!(progress, Progress::at(Offset(2)));
    }

    #[test]
    fn a_delivery_counts_and_ends_a_wait() {
        let offset = Offset(3);
        let failed = Step::Failed { offset, attempt: 1, blocked: false, reason: "no".into() };
        let delayed = Step::Delayed { offset, delay_ms: 500 };
        let mut progress = Progress::at(Offset(0));
        progress.apply(&delayed);
        assert_eq!(progress.attempts(offset), None, "what has not failed does not wait");
        progress.apply(&failed);
        progress.apply(&delayed);
        assert_eq!(progress.attempts(offset).map(|a| a.delay_ms), Some(500));
        assert_eq!(progress.restate()[1..], [failed, delayed]);
        progress.apply(&Step::Delivered { offset, attempt: 2 });
        let attempts = progress.attempts(offset).cloned().unwrap_or_default();
        assert_eq!((attempts.count, attempts.delay_ms, &*attempts.reason), (2, 0, "no"));
        progress.apply(&Step::Delivered { offset, attempt: 0 });
        assert_eq!(progress, Progress::at(Offset(0)));
        progress.apply(&finished(3, 4));
        progress.apply(&Step::Delivered { offset, attempt: 1 });
        assert_eq!(progress.attempts(offset), None, "a finished message is not delivered");
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_offsets(steps in prop::collection::vec((0_u64..60, 0_u64..8), 0..40)) {
            let mut progress = Progress::at(Offset(5));
            let mut model: BTreeSet<u64> = (0..5).collect();
            for (first, count) in steps {
                let step = finished(first, first + count);
                progress.apply(&step);
                let once = progress.clone();
                progress.apply(&step);
                prop_assert_eq!(&once, &progress, "twice is once");
                model.extend(first..first + count);
            }
            for offset in 0..80 {
                prop_assert_eq!(progress.is_finished(Offset(offset)), model.contains(&offset));
            }
            let open = (0..80).filter(|offset| !model.contains(offset)).count() as u64;
            prop_assert_eq!(progress.backlog(Offset(80)), open);
            prop_assert!(!progress.is_finished(progress.cursor()));
            for offset in 0..80 {
                let first = (offset..).find(|o| !model.contains(o)).map(Offset);
                prop_assert_eq!(Some(progress.first_unfinished(Offset(offset))), first);
            }
            let mut restated = Progress::at(Offset(77));
            for step in progress.restate() {
                restated.apply(&step);
            }
            prop_assert_eq!(restated, progress);
        }
    }
}
