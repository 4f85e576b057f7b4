//! Histories on a failing disk, a fixed number of them; and the proof that they find something.

use crate::sim::history::{self, Counts, Outcome};
use crate::sim::lies::Lie;

/// Histories of an ordinary test run.
const HISTORIES: u64 = 400;
/// In how many histories each planted bug must show at least once.
const LIE_HISTORIES: u64 = 2000;

fn explain(seed: u64, outcome: &Outcome) -> String {
    let story = history::run(seed, None, true).story;
    let tail = story.len().saturating_sub(60);
    format!("seed {seed}: {:?}\n{}", outcome.violation, story[tail..].join("\n"))
}

#[test]
fn nothing_acknowledged_is_lost_in_any_history() {
    let mut counts = Counts::default();
    for seed in 0..HISTORIES {
        let outcome = history::run(seed, None, false);
        assert!(outcome.violation.is_none(), "{}", explain(seed, &outcome));
        counts.add(&outcome.counts);
    }
    let happened = [
        counts.kills,
        counts.power_losses,
        counts.during_recovery,
        counts.refused,
        counts.flips,
        counts.direct,
        counts.prepared,
        counts.acknowledged,
        // And segments took journal files over, which were read again, moved after a crash, given
        // up, written again, and damaged.
        counts.adopted,
        counts.adopted_found,
        counts.adopted_late,
        counts.adopted_gone,
        counts.adopted_rewritten,
        counts.flips_taken,
    ];
    assert!(happened.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..60 {
        let (once, again) = (history::run(seed, None, true), history::run(seed, None, true));
        assert_eq!(once.story, again.story, "seed {seed}");
        assert_eq!(once.trace.digest, again.trace.digest, "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    for lie in Lie::ALL {
        let wrong = |seed: &u64| history::run(*seed, Some(lie), false).violation.is_some();
        let found = (0..LIE_HISTORIES).find(wrong);
        let Some(seed) = found else {
            panic!("{lie:?} shows in none of {LIE_HISTORIES} histories")
        };
        println!("{lie:?} shows first with seed {seed}");
    }
}
