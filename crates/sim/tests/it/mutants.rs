//! The harness sees what it is there to see: every planted fault is found, by the invariant that
//! is meant for it, and every invariant finds something.

use danube_sim::{Mutant, run};
use std::collections::BTreeSet;

#[test]
fn every_planted_fault_is_found() {
    for mutant in Mutant::ALL {
        let found: BTreeSet<&str> = (0..40)
            .filter_map(|seed| run(seed, 400, Some(mutant)).err())
            .map(|failure| failure.invariant)
            .collect();
        let wanted = match mutant {
            Mutant::LosesAcks => "nothing acknowledged is delivered again",
            Mutant::RepeatsDeliveries => "one holder per message",
            Mutant::SwapsDeliveries => "per-key order",
            Mutant::FinishesMore => "nothing unfinished is forgotten",
            Mutant::LosesRecords => "the cursor never skips",
            Mutant::CountsTwice => "attempts rise by one",
            Mutant::IgnoresWindow => "the window is never exceeded",
            Mutant::HearsTheLost => "what was lost stays lost",
            Mutant::ForgetsFetches | Mutant::ForgetsTimers => "liveness",
            Mutant::BlamesTheUnseen => "nobody is blamed for what nobody saw",
            Mutant::KeepsBodies => "what is delivered has a body",
        };
        assert!(found.contains(wanted), "{mutant:?} breaks {found:?}, and should `{wanted}`");
    }
}
