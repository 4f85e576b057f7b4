//! What goes wrong in one life of a process, decided before it begins.
//!
//! Everything is tied to the number of an operation, never to a moment, so that a history goes
//! the same way however fast its threads run.

use super::random::Random;
use std::ops::Range;

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crash {
    /// It closed everything and was told that this worked.
    Close,
    /// It was killed: what it wrote is in the kernel.
    Kill,
    /// The power failed: what was synced is on the platter, and any part of the rest.
    Power,
}

/// What a disk does instead of working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Writing fails half-way with an input/output error.
    Write,
    /// Syncing a file fails, and its pages count as clean.
    Sync,
    /// Syncing a directory fails.
    SyncDir,
    /// Nothing can be cut or extended.
    SetLen,
    /// Nothing can be reserved, and nothing is said why.
    Preallocate,
    /// No file can be made.
    Create,
    /// No file can be removed.
    Remove,
    /// No file can be renamed.
    Rename,
    /// This many bytes more, then it is full.
    Full(u64),
    /// The file system has gone read-only.
    ReadOnly,
    /// Rights are missing to make, open, move or remove anything.
    Denied,
}

/// The plan of one life.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// At which operation it ends, if at any, and how.
    pub crash: Option<(u64, Crash)>,
    /// What fails, from which operation to which.
    pub faults: Vec<(Range<u64>, Fault)>,
    /// Of 1000 first reads of a file, how many fail; and how many of these by being short.
    pub reads_fail: u64,
}

impl Plan {
    /// A plan whose life has about `ops` operations.
    pub fn draw(random: &mut Random, ops: u64, crash: Option<Crash>, faulty: bool) -> Plan {
        let crash = crash.map(|kind| (random.below(ops.max(1)), kind));
        let mut faults = Vec::new();
        if faulty {
            for _ in 0..random.within(1, 3) {
                let from = random.below(ops.max(1));
                let len = if random.chance(50) { 1 } else { random.within(1, 12) };
                faults.push((from..from + len, Plan::fault(random)));
            }
        }
        Plan { crash, faults, reads_fail: 0 }
    }

    fn fault(random: &mut Random) -> Fault {
        let room = random.below(6000);
        random.pick(&[
            Fault::Write,
            Fault::Write,
            Fault::Sync,
            Fault::Sync,
            Fault::Sync,
            Fault::SyncDir,
            Fault::SetLen,
            Fault::Preallocate,
            Fault::Create,
            Fault::Remove,
            Fault::Rename,
            Fault::Full(room),
            Fault::ReadOnly,
            Fault::Denied,
        ])
    }

    /// Whether nothing but a crash goes wrong.
    pub fn is_faultless(&self) -> bool {
        self.faults.is_empty() && self.reads_fail == 0
    }

    /// The faults in force at operation `number`.
    pub fn at(&self, number: u64) -> impl Iterator<Item = Fault> + '_ {
        self.faults.iter().filter(move |(at, _)| at.contains(&number)).map(|(_, fault)| *fault)
    }
}
