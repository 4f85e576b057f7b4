//! What is waiting, sorted into what one group acknowledges after the write and after the sync.
//!
//! Law: what is here may be written: its topics live, are whole and are of the epoch that it says.

use crate::error::AppendError;
use crate::frame::FRAME_HEADER_LEN;
use crate::room::Claim;
use crate::shared::{Command, Done, Open, Work, Write};
use crate::topic::Topic;
use danube_core::{Epoch, TopicId, WalSyncMode};
use std::collections::HashSet;
use std::sync::Arc;

/// Room left above the last offset, so that adding a count cannot overflow.
const OFFSET_MAX: u64 = u64::MAX - (1 << 40);

/// Commands sorted out: what a group is made of.
#[derive(Default)]
pub(super) struct Sorted {
    /// Topics that are deleted.
    pub forgotten: Vec<Arc<Topic>>,
    /// Acknowledged after the write.
    pub early: Vec<Write>,
    /// Acknowledged after the sync.
    pub late: Vec<Write>,
    /// Whether to go on in a new file afterwards.
    pub roll: bool,
    /// Producers to be opened after it.
    pub opens: Vec<Open>,
    /// Whether to begin a sync that nobody waits for.
    pub sync_soon: bool,
    /// Who asked for a sync.
    pub syncs: Vec<Done<u64, AppendError>>,
}

impl Sorted {
    /// All writes, in their order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.early.iter().chain(&self.late)
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> u64 {
        let bytes: usize = self.writes().map(|write| frame_len(&write.work)).sum();
        (bytes + self.forgotten.len() * FRAME_HEADER_LEN) as u64
    }

    /// Bytes of the frames that make such a claim.
    pub fn bytes_of(&self, claim: Claim) -> u64 {
        let such = self.writes().filter(|write| Claim::of(&write.work) == claim);
        such.map(|write| frame_len(&write.work) as u64).sum()
    }

    /// Answers with `error` what `refused` picks, and leaves it out.
    pub fn refuse_if(&mut self, error: &AppendError, mut refused: impl FnMut(&Write) -> bool) {
        for writes in [&mut self.early, &mut self.late] {
            for write in writes.extract_if(.., |write| refused(write)) {
                write.work.refuse(error.clone());
            }
        }
    }
}

/// Sorts commands, and refuses what may not be written.
pub(super) fn sort(commands: Vec<Command>) -> Sorted {
    let mut sorted = Sorted::default();
    let mut waits_for_sync: HashSet<TopicId> = HashSet::new();
    for command in commands {
        match command {
            Command::Forget(topic) => sorted.forgotten.push(topic),
            Command::Roll => sorted.roll = true,
            Command::SyncSoon => sorted.sync_soon = true,
            Command::Open(open) => sorted.opens.push(open),
            Command::Sync(done) => sorted.syncs.extend(done),
            Command::Write(write) => {
                let Some(write) = admit(write) else { continue };
                let waits = |(topic, _): (&Topic, Epoch)| waits_for_sync.contains(&topic.id);
                let late = write.sync == WalSyncMode::FsyncBatch || concerned(&write).any(waits);
                if late {
                    waits_for_sync.extend(concerned(&write).map(|(topic, _)| topic.id));
                }
                if late { sorted.late.push(write) } else { sorted.early.push(write) }
            }
        }
    }
    sorted
}

/// Messages of `work`.
pub(super) fn records(work: &Work) -> u64 {
    match work {
        Work::Append { batch, .. } => batch.len() as u64,
        Work::Record { .. } => 0,
    }
}

/// Refuses what may not be written; the rest is certain to get an offset.
fn admit(write: Write) -> Option<Write> {
    let checked = concerned(&write).try_for_each(|(topic, epoch)| check(topic, epoch));
    match checked {
        Ok(()) => Some(write),
        Err(error) => {
            write.work.refuse(error);
            None
        }
    }
}

fn check(topic: &Topic, epoch: Epoch) -> Result<(), AppendError> {
    let (id, mut state) = (topic.id, topic.state.lock());
    if state.forgotten {
        Err(AppendError::Forgotten(id))
    } else if let Some(damage) = &state.damage {
        Err(AppendError::Damaged(damage.clone()))
    } else if epoch.0 < state.epoch {
        Err(AppendError::Fenced { topic: id, epoch, current: Epoch(state.epoch) })
    } else if state.next_free(false) > OFFSET_MAX {
        Err(AppendError::Exhausted(id))
    } else {
        state.epoch = epoch.0;
        Ok(())
    }
}

/// All topics that `write` has something of, its own first.
fn concerned(write: &Write) -> impl Iterator<Item = (&Topic, Epoch)> {
    let also = match &write.work {
        Work::Append { also, .. } => also.as_slice(),
        Work::Record { .. } => &[],
    };
    let others = also.iter().map(|(topic, epoch, _)| (&**topic, *epoch));
    std::iter::once((&*write.topic, write.epoch)).chain(others)
}

/// Bytes of the frame that `work` becomes.
pub(crate) fn frame_len(work: &Work) -> usize {
    FRAME_HEADER_LEN
        + match work {
            Work::Append { batch, .. } => batch.byte_len(),
            Work::Record { payload, .. } => payload.len(),
        }
}
