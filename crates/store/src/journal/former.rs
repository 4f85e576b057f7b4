//! A full journal file that is made durable while the next one is written already.
//!
//! The next one has no name of its own until then. As long as the machine runs a restart takes it up
//! all the same, so that what was acknowledged after the write is there after the death of the
//! process; a power loss takes it as a whole. What waits for a sync waits for both files.
//!
//! Law: there is at most one such file, so at most two are not durable.

use super::active::Active;
use crate::disk::DiskFile;
use crate::error::AppendError;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// The file before the active one.
pub(crate) struct Former {
    active: Active,
    next: Arc<dyn DiskFile>,
    /// Another file has taken the place of the one that the thread syncs.
    replaced: bool,
    /// The thread that syncs; none where there is no background, or no thread to be had.
    running: Option<JoinHandle<io::Result<()>>>,
}

impl Former {
    /// Begins to make `active` durable, and the header of `next`.
    pub(crate) fn begin(shared: &Shared, active: Active, next: &Active) -> Former {
        let next = Arc::clone(&next.file);
        let running = shared.options.background.then(|| {
            let (file, next) = (Arc::clone(&active.file), Arc::clone(&next));
            let sync = move || file.sync_data().and_then(|()| next.sync_data());
            Builder::new().name("journal-sync".into()).spawn(sync).ok()
        });
        Former { active, next, replaced: false, running: running.flatten() }
    }

    /// `next` comes after it, and not what was to.
    pub(crate) fn replace_next(&mut self, next: &Active) {
        (self.next, self.replaced) = (Arc::clone(&next.file), true);
    }

    /// Its sequence.
    pub(crate) fn sequence(&self) -> u64 {
        self.active.sequence
    }

    /// Whether waiting for it takes no time.
    pub(crate) fn is_done(&self) -> bool {
        self.running.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Waits until it, and the header of the next one, is durable.
    ///
    /// # Errors
    /// [`AppendError::Io`]: neither of the two can be relied on.
    pub(crate) fn wait(self, shared: &Shared) -> Result<(), AppendError> {
        let synced = match self.running {
            Some(running) => running
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that syncs it panicked")))
                .and_then(|()| if self.replaced { self.next.sync_data() } else { Ok(()) }),
            None => self.active.file.sync_data().and_then(|()| self.next.sync_data()),
        };
        synced.map_err(|error| AppendError::io("sync", &self.active.path, &error))?;
        self.active.trim(shared);
        Ok(())
    }
}
