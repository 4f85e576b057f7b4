//! A sync that runs beside the writing.
//!
//! Law: it says of the bytes that were there when it began, and of nothing that came later; and
//! whoever relies on them waits for it, because the kernel tells only one caller that it has failed.

use super::Journal;
use super::active::Active;
use super::former::Former;
use crate::disk::DiskFile;
use crate::error::AppendError;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Files being synced, one after the other.
pub(super) struct SyncBeside {
    files: Vec<Arc<dyn DiskFile>>,
    /// The thread that does it; none where there is no background, or no thread to be had.
    running: Option<JoinHandle<io::Result<()>>>,
}

impl SyncBeside {
    /// Begins to sync `files`: on a thread of its own if `background`, else in [`wait`](Self::wait).
    pub fn begin(files: Vec<Arc<dyn DiskFile>>, background: bool) -> SyncBeside {
        let running = background.then(|| {
            let files = files.clone();
            Builder::new().name("journal-sync".into()).spawn(move || sync_all(&files)).ok()
        });
        SyncBeside { files, running: running.flatten() }
    }

    /// Whether waiting for it takes no time.
    pub fn is_done(&self) -> bool {
        self.running.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Waits for it.
    ///
    /// # Errors
    /// As the file system says; none of the files can be relied on then.
    pub fn wait(self) -> io::Result<()> {
        match self.running {
            Some(running) => running
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that syncs it panicked"))),
            None => sync_all(&self.files),
        }
    }
}

fn sync_all(files: &[Arc<dyn DiskFile>]) -> io::Result<()> {
    files.iter().try_for_each(|file| file.sync_data())
}

/// What the active file had when a sync began beside its writing.
pub(super) struct Part {
    /// Bytes that counted.
    len: u64,
    /// Log sequence number of the frame that came next.
    next_lsn: u64,
    sync: SyncBeside,
}

impl Part {
    /// Whether waiting for it takes no time.
    pub fn is_done(&self) -> bool {
        self.sync.is_done()
    }

    /// Waits for it; where that succeeds the caller makes durable what came later too.
    ///
    /// # Errors
    /// As the file system says.
    pub fn wait(self) -> io::Result<()> {
        self.sync.wait()
    }
}

impl Journal {
    /// Begins to make durable what is not, if that is much: so that little has to be kept in
    /// memory, and whoever waits for a sync waits for little. The next frame will be `next_lsn`.
    pub(crate) fn sync_beside(&mut self, next_lsn: u64) {
        self.begin_part(next_lsn, self.shared.options.unsynced_bytes_max);
    }

    /// Takes note of what such a sync has done, and begins another if anything is not durable.
    pub(crate) fn sync_soon(&mut self, next_lsn: u64) {
        let is_done = self.former.as_ref().is_some_and(Former::is_done)
            || self.part.as_ref().is_some_and(Part::is_done);
        if is_done {
            // What failed is written again by the caller.
            let _ = self.settle();
        }
        self.begin_part(next_lsn, 1);
    }

    fn begin_part(&mut self, next_lsn: u64, bytes_min: u64) {
        // One without a name becomes durable after the file before it.
        if self.part.is_some() || self.former.is_some() || self.unsafe_kept {
            return;
        }
        let Some(Active { file, len, synced_len, .. }) = &self.active else { return };
        if len - synced_len >= bytes_min {
            let background = self.shared.options.background;
            let sync = SyncBeside::begin(vec![Arc::clone(file)], background);
            self.part = Some(Part { len: *len, next_lsn, sync });
        }
    }

    /// Takes note of what such a sync has done, and waits for that if it has to. On an error the
    /// active file is left.
    pub(super) fn settle_part(&mut self) -> Result<(), AppendError> {
        let Some(Part { len, next_lsn, sync }) = self.part.take() else { return Ok(()) };
        let synced = sync.wait();
        let Some(active) = self.active.as_mut() else { return Ok(()) };
        match synced {
            Ok(()) => {
                active.synced_len = active.synced_len.max(len);
                self.durable_below(next_lsn);
                Ok(())
            }
            Err(error) => {
                let (sequence, error) =
                    (active.sequence, AppendError::io("sync", &active.path, &error));
                tracing::warn!(%error, "journal file failed to sync; going on in a new one");
                self.active = None;
                self.all_unsafe(sequence);
                Err(error)
            }
        }
    }
}
