//! The journal's active file: made, filled, cut back and left for the next one.
//!
//! Law: `len` counts only groups that succeeded. When bytes beyond it cannot be cut off, or a
//! sync failed, the file is left for good; the next file's header says from which log sequence
//! number on the rest of this one is void.

use crate::disk::DiskFile;
use crate::error::{AppendError, CloseError};
use crate::group::Group;
use crate::header::{FILE_HEADER_LEN, FORMAT_VERSION, FileHeader};
use crate::shared::Shared;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

/// Where frames are appended.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    active: Option<Active>,
    next_sequence: u64,
    /// The file left last may still show what failed, so the next one, which makes that void,
    /// must not be deleted before a restart has seen to it.
    left_void: bool,
}

struct Active {
    sequence: u64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    len: u64,
    unsynced: bool,
}

impl Journal {
    /// A journal whose first file, made when it is needed, is `next_sequence`.
    pub(crate) fn new(shared: Arc<Shared>, next_sequence: u64) -> Journal {
        Journal { shared, active: None, next_sequence, left_void: false }
    }

    /// The active file, if there is one.
    pub(crate) fn active(&self) -> Option<u64> {
        self.active.as_ref().map(|active| active.sequence)
    }

    /// Sees to it that a group of `bytes` whose first frame is `lsn` has a file to go to.
    /// Returns the file's sequence and the position in it.
    pub(crate) fn ready(&mut self, bytes: u64, lsn: u64) -> Result<(u64, u64), AppendError> {
        let max = self.shared.options.file_bytes_max;
        if let Some(active) = &self.active {
            if active.len <= FILE_HEADER_LEN as u64 || active.len + bytes <= max {
                return Ok((active.sequence, active.len));
            }
            // Once a newer file may exist, this one must not be written again.
            if let Err(error) = self.leave() {
                tracing::warn!(%error, "left a journal file that may not survive a power loss");
            }
        }
        let active = self.create(lsn)?;
        let place = (active.sequence, active.len);
        let pinned = usize::from(std::mem::take(&mut self.left_void));
        *self.shared.files.lock().entry(active.sequence).or_default() += pinned;
        self.active = Some(active);
        Ok(place)
    }

    fn create(&mut self, start_lsn: u64) -> Result<Active, AppendError> {
        let sequence = self.next_sequence;
        let path = self.shared.path(sequence);
        // Used up even on failure: what could not be removed keeps its name.
        self.next_sequence = sequence.saturating_add(1);
        let disk = &self.shared.disk;
        let file = disk.create(&path).map_err(|error| AppendError::io("make", &path, &error))?;
        let header = FileHeader {
            version: FORMAT_VERSION,
            sequence,
            incarnation: self.shared.options.incarnation.0,
            start_lsn,
        };
        if let Err(error) = self.begin(&*file, &header) {
            let _ = disk.remove(&path);
            return Err(AppendError::io("begin", &path, &error));
        }
        Ok(Active { sequence, path, file, len: FILE_HEADER_LEN as u64, unsynced: false })
    }

    fn begin(&self, file: &dyn DiskFile, header: &FileHeader) -> io::Result<()> {
        if let Err(error) = file.preallocate(self.shared.options.file_bytes_max) {
            // Slower syncs, but a journal all the same. What was reserved in part is given back.
            tracing::debug!(%error, "journal file is not preallocated");
            file.set_len(0)?;
        }
        file.write_at(0, &mut [IoSlice::new(&header.encode())])?;
        file.sync_data()?;
        self.shared.disk.sync_dir(&self.shared.options.dir)
    }

    /// Writes `group` to the active file. On an error nothing of it counts.
    pub(crate) fn write(&mut self, group: &Group) -> Result<(), AppendError> {
        let active = self.active.as_mut().expect("made ready for this group");
        match active.file.write_at(active.len, &mut group.slices()) {
            Ok(()) => {
                active.len += group.len();
                active.unsynced = true;
                Ok(())
            }
            Err(error) => {
                let failure = AppendError::io("write", &active.path, &error);
                if let Err(error) = active.file.set_len(active.len) {
                    let path = active.path.display();
                    tracing::warn!(%path, %error, "cannot cut the journal file; going on in a new one");
                    self.active = None;
                    self.left_void = true;
                }
                Err(failure)
            }
        }
    }

    /// Makes everything written so far durable. On an error the last `unkept` bytes do not count
    /// and the file is left.
    pub(crate) fn sync(&mut self, unkept: u64) -> Result<(), AppendError> {
        let active = self.active.as_mut().expect("written just now");
        match active.file.sync_data() {
            Ok(()) => {
                active.unsynced = false;
                Ok(())
            }
            Err(error) => {
                let failure = AppendError::io("sync", &active.path, &error);
                let path = active.path.display();
                tracing::warn!(%path, %error, "journal file failed to sync; going on in a new one");
                // The next file makes the rest void even where this cannot.
                let _ = active.file.set_len(active.len - unkept);
                self.active = None;
                self.left_void = true;
                Err(failure)
            }
        }
    }

    /// Leaves the active file whole: synced, and without what was reserved and not used.
    pub(crate) fn leave(&mut self) -> Result<(), CloseError> {
        let Some(active) = self.active.take() else { return Ok(()) };
        let synced = if active.unsynced { active.file.sync_data() } else { Ok(()) };
        let _ = active.file.set_len(active.len);
        synced.map_err(|error| CloseError { path: active.path, error: error.to_string() })
    }
}
