//! A full journal file that is made durable while the next one is written already.
//!
//! The next one has no name of its own until then. As long as the machine runs a restart takes it up
//! all the same, so that what was acknowledged after the write is there after the death of the
//! process; a power loss takes it as a whole. What waits for a sync waits for both files.
//!
//! Law: there is at most one such file, so at most two are not durable.

use super::active::Active;
use super::beside::{Part, SyncBeside};
use crate::disk::DiskFile;
use crate::error::AppendError;
use crate::shared::Shared;
use std::sync::Arc;

/// The file before the active one.
pub(crate) struct Former {
    active: Active,
    next: Arc<dyn DiskFile>,
    /// Another file has taken the place of the one that is synced with it.
    replaced: bool,
    /// A sync of it that was under way already.
    part: Option<Part>,
    sync: SyncBeside,
}

impl Former {
    /// Begins to make `active` durable, and the header of `next`.
    pub(crate) fn begin(
        shared: &Shared,
        active: Active,
        part: Option<Part>,
        next: &Active,
    ) -> Former {
        let next = Arc::clone(&next.file);
        let files = vec![Arc::clone(&active.file), Arc::clone(&next)];
        let sync = SyncBeside::begin(files, shared.options.background);
        Former { active, next, replaced: false, part, sync }
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
        self.sync.is_done() && self.part.as_ref().is_none_or(Part::is_done)
    }

    /// Waits until it, and the header of the next one, is durable.
    ///
    /// # Errors
    /// [`AppendError::Io`]: neither of the two can be relied on.
    pub(crate) fn wait(self, shared: &Shared) -> Result<(), AppendError> {
        let Former { active, next, replaced, part, sync } = self;
        // Both are waited for, whatever the first one says.
        let (part, all) = (part.map_or(Ok(()), Part::wait), sync.wait());
        let synced = part.and(all).and_then(|()| if replaced { next.sync_data() } else { Ok(()) });
        synced.map_err(|error| AppendError::io("sync", &active.path, &error))?;
        active.trim(shared);
        Ok(())
    }
}
