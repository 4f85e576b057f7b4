//! What became of a form, kept for the page that the browser is sent to, so that loading it again
//! does nothing twice.
//!
//! Law: bounded; the oldest is forgotten.

use crate::problem::Problem;
use danube_ops::Reply;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Outcomes that are kept.
const OUTCOMES_MAX: usize = 256;

/// What became of one form.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The line that does the same.
    pub(crate) line: String,
    /// Where to go on.
    pub(crate) then: Option<String>,
    pub(crate) result: Result<Reply, Problem>,
}

/// The last outcomes, by number.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    kept: Mutex<(u64, VecDeque<(u64, Outcome)>)>,
}

impl Outcomes {
    /// Keeps an outcome; the number that finds it.
    pub(crate) fn keep(&self, outcome: Outcome) -> u64 {
        let mut kept = self.kept.lock();
        let (last, outcomes) = &mut *kept;
        *last += 1;
        outcomes.push_back((*last, outcome));
        if outcomes.len() > OUTCOMES_MAX {
            outcomes.pop_front();
        }
        *last
    }

    pub(crate) fn find(&self, number: u64) -> Option<Outcome> {
        let kept = self.kept.lock();
        kept.1.iter().find(|(known, _)| *known == number).map(|(_, outcome)| outcome.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_found_until_too_many_came_after() {
        let outcomes = Outcomes::default();
        let outcome = |line: &str| Outcome {
            line: line.into(),
            then: None,
            result: Err(Problem::not_found("x")),
        };
        let first = outcomes.keep(outcome("first"));
        assert_eq!(outcomes.find(first).map(|found| found.line), Some("first".into()));
        for _ in 0..OUTCOMES_MAX {
            outcomes.keep(outcome("later"));
        }
        assert!(outcomes.find(first).is_none());
        assert!(outcomes.find(first + 1).is_some());
    }
}
