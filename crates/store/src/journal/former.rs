//! A full journal file that is made durable while the next one is written already.
//!
//! The next one has no name of its own until then. As long as the machine runs a restart takes it up
//! all the same, so that what was acknowledged after the write is there after the death of the
//! process; a power loss takes it as a whole. What waits for a sync waits for both files.
//!
//! Law: there is at most one such file, so at most two are not durable. The next one gets its name only
//! once all of this one, and its own header, is durable.

use super::active::Active;
use super::beside::{Beside, Part};
use crate::error::AppendError;
use crate::shared::Shared;
use std::sync::Arc;

/// The file before the active one.
pub(crate) struct Former {
    active: Active,
    sync: Beside,
}

impl Former {
    /// Begins to make `active` durable, of which `part` may be on its way already; then the header of
    /// `next`, and its name.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        active: Active,
        part: Option<Part>,
        next: &Active,
    ) -> Former {
        let (full, path, naming) = (Arc::clone(&active.file), active.path.clone(), next.naming());
        let common = Arc::clone(shared);
        let sync = Beside::begin(active.path.clone(), shared.options.background, move || {
            // The kernel tells only one of the two that a sync has failed.
            part.map_or(Ok(()), Part::wait)?;
            full.sync_data().map_err(|error| AppendError::io("sync", &path, &error))?;
            naming.sync()?;
            naming.carry_out(&common)
        });
        Former { active, sync }
    }

    /// Its sequence.
    pub(crate) fn sequence(&self) -> u64 {
        self.active.sequence
    }

    /// Whether waiting for it takes no time.
    pub(crate) fn is_done(&self) -> bool {
        self.sync.is_done()
    }

    /// Whether the device is at it still.
    pub(crate) fn is_running(&self) -> bool {
        self.sync.is_running()
    }

    /// Waits until it, and header and name of the next one, are durable.
    ///
    /// # Errors
    /// [`AppendError::Io`]: neither of the two can be relied on.
    pub(crate) fn wait(self, shared: &Shared) -> Result<(), AppendError> {
        self.sync.wait()?;
        self.active.trim(shared);
        Ok(())
    }
}
