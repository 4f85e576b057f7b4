//! Journal files kept open, and batches read from them. How frames are read and checked it leaves to
//! [`runs`](crate::runs).
//!
//! Law: a file is read under the name that it has now.

use super::failure::{Failure, MOVING, What};
use crate::batch::RecordBatch;
use crate::disk::{Disk, DiskFile};
use crate::header::{FILE_HEADER_LEN, FileHeader, journal_new_path};
use crate::runs::{RUN_MAX, Run, frame_records};
use crate::shared::Shared;
use crate::topic::{Batch, Topic};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// Most journal files kept open between reads.
const OPEN_MAX: usize = 16;

/// Journal files kept open.
pub(crate) struct JournalFiles {
    shared: Arc<Shared>,
    /// Where files are opened that are full.
    full: Arc<dyn Disk>,
    /// How often files had been written again when these were opened.
    rewrites: u64,
    /// Files used last, the latest at the back.
    open: VecDeque<(u64, Arc<dyn DiskFile>)>,
}

impl JournalFiles {
    /// None of them open; those that are full will be on disk `full`.
    pub(crate) fn new(shared: Arc<Shared>, full: Arc<dyn Disk>) -> JournalFiles {
        JournalFiles { shared, full, rewrites: 0, open: VecDeque::new() }
    }

    /// The records of `batch`, one of `all` that are read in order; `run` is what was read for
    /// earlier ones.
    pub(crate) fn batch(
        &mut self,
        topic: &Topic,
        batch: &Batch,
        all: &[Batch],
        run: &mut Run,
    ) -> Result<RecordBatch, Failure> {
        let path = self.shared.path(batch.file);
        let (offset, position) = (batch.first, batch.position);
        let fail = |what| Failure { offset, path: path.clone(), position, what };
        let frame = run.frame(|| self.file(batch.file), batch, all, RUN_MAX);
        let frame = frame.map_err(|error| fail(What::Io(error)))?;
        frame_records(topic.id, batch, frame).map_err(|what| fail(What::Damaged(what)))
    }

    fn open_now(&self, sequence: u64) -> io::Result<Arc<dyn DiskFile>> {
        let Shared { disk, options, unnamed, .. } = &*self.shared;
        let was_unnamed = unnamed.load(Acquire) == sequence;
        if was_unnamed && let Ok(file) = disk.open(&journal_new_path(&options.dir)) {
            // By now it may be the one after.
            let mut bytes = [0; FILE_HEADER_LEN];
            file.read_at(0, &mut bytes)?;
            if FileHeader::decode(&bytes).is_some_and(|header| header.sequence == sequence) {
                return Ok(file);
            }
        }
        let is_full = sequence < self.shared.full_below.load(Acquire);
        let disk = if is_full { &self.full } else { disk };
        disk.open(&self.shared.path(sequence)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if was_unnamed => io::Error::other(MOVING),
            _ => error,
        })
    }

    fn file(&mut self, sequence: u64) -> io::Result<Arc<dyn DiskFile>> {
        let rewrites = self.shared.rewrites.load(Acquire);
        if std::mem::replace(&mut self.rewrites, rewrites) != rewrites {
            self.open.clear();
        }
        if let Some(at) = self.open.iter().position(|(open, _)| *open == sequence) {
            let entry = self.open.remove(at).expect("found just now");
            self.open.push_back(entry);
        } else {
            let file = self.open_now(sequence)?;
            if self.open.len() >= OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back((sequence, file));
        }
        Ok(Arc::clone(&self.open.back().expect("pushed just now").1))
    }
}
