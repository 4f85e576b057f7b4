//! Waiting for the device beside the writing.
//!
//! Law: a sync says of the bytes that were there when it began, and of nothing that came later; and
//! whoever relies on them waits for it, because the kernel tells only one caller that it has failed.

use super::Journal;
use super::active::Active;
use super::former::Former;
use crate::error::AppendError;
use parking_lot::Mutex;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

type Done = Result<(), AppendError>;
type Work = Box<dyn FnOnce() -> Done + Send>;

/// Something that takes as long as the device does.
pub(super) struct Beside {
    path: PathBuf,
    /// What is to be done, until somebody begins with it.
    work: Arc<Mutex<Option<Work>>>,
    /// The thread that does it; none where there is no background, or no thread to be had.
    running: Option<JoinHandle<Done>>,
}

impl Beside {
    /// Begins with `work` on file `path`: on a thread of its own if `background`, else in
    /// [`wait`](Self::wait).
    pub fn begin(
        path: PathBuf,
        background: bool,
        work: impl FnOnce() -> Done + Send + 'static,
    ) -> Beside {
        let work: Arc<Mutex<Option<Work>>> = Arc::new(Mutex::new(Some(Box::new(work))));
        let running = background.then(|| {
            let work = Arc::clone(&work);
            Builder::new().name("journal-sync".into()).spawn(move || carry_out(&work)).ok()
        });
        Beside { path, work, running: running.flatten() }
    }

    /// Whether waiting for it takes no time.
    pub fn is_done(&self) -> bool {
        self.running.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Whether somebody is at it.
    pub fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.is_finished())
    }

    /// Waits for it.
    ///
    /// # Errors
    /// What the work has failed with; nothing that it was to make durable can be relied on then.
    pub fn wait(self) -> Done {
        let Some(running) = self.running else { return carry_out(&self.work) };
        running.join().unwrap_or_else(|_| {
            let error = io::Error::other("the thread that does it panicked");
            Err(AppendError::io("sync", &self.path, &error))
        })
    }
}

fn carry_out(work: &Mutex<Option<Work>>) -> Done {
    let work = work.lock().take();
    work.map_or(Ok(()), |work| work())
}

/// What the active file had when a sync began beside its writing.
pub(super) struct Part {
    /// Bytes that counted.
    len: u64,
    /// Log sequence number of the frame that came next.
    next_lsn: u64,
    sync: Beside,
}

impl Part {
    /// Whether waiting for it takes no time.
    pub fn is_done(&self) -> bool {
        self.sync.is_done()
    }

    /// Waits for it; where that succeeds the caller makes durable what came later too.
    ///
    /// # Errors
    /// [`AppendError::Io`].
    pub fn wait(self) -> Done {
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
        let Some(Active { file, len, synced_len, path, .. }) = &self.active else { return };
        if len - synced_len >= bytes_min {
            let (file, named) = (Arc::clone(file), path.clone());
            let work =
                move || file.sync_data().map_err(|error| AppendError::io("sync", &named, &error));
            let sync = Beside::begin(path.clone(), self.shared.options.background, work);
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
                let sequence = active.sequence;
                tracing::warn!(%error, "journal file failed to sync; going on in a new one");
                self.active = None;
                self.all_unsafe(sequence);
                Err(error)
            }
        }
    }
}
