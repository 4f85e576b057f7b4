//! Development only: the subscription engine in a world of many consumers, crashes, clock jumps
//! and changes of policy, all of it drawn from one seed.
//!
//! [`run`] takes a seed and a number of steps; what it finds it reports as a [`Failure`] that names
//! the seed, the step and the invariant. The [`invariants`] are one per file. A [`Mutant`] plants
//! a fault between engine and world, to show that the harness sees it.
//!
//! What this crate leaves to others: the log, the network, everything that ships.
//!
//! Law: the same seed gives the same history, step for step.

mod ahead;
mod chance;
pub mod invariants;
mod ledger;
mod mutant;
mod workload;
mod world;

pub use ahead::Ahead;
pub use ledger::{Holding, Ledger, Sight};
pub use mutant::Mutant;

use std::fmt;
use workload::Workload;

/// What a history came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Steps of the engine.
    pub steps: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Restarts.
    pub restarts: u64,
    /// Messages read a second time.
    pub read_again: u64,
}

/// A broken invariant.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What to run again.
    pub seed: u64,
    /// After how many steps of the engine.
    pub step: u64,
    /// Which invariant.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    /// The last events before it, oldest first.
    pub trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trace {
            writeln!(f, "  {line}")?;
        }
        write!(
            f,
            "seed {} breaks `{}` at step {}: {}",
            self.seed, self.invariant, self.step, self.what
        )
    }
}

/// Plays the history of `seed`: about `operations` things that happen, then all faults end and
/// everything must be finished.
///
/// # Errors
/// [`Failure`] at the first broken invariant.
pub fn run(seed: u64, operations: u32, mutant: Option<Mutant>) -> Result<Report, Failure> {
    Workload::new(seed, mutant).play(operations)
}
