//! From one journal file to the next.
//!
//! What a full file has is made durable beside the writing of the next one, if nobody waits for it.
//!
//! Law: a file gets its name only once all that counts in the earlier ones is durable.

use super::active::Active;
use super::beside::Part;
use super::former::Former;
use super::{Journal, Tip};
use crate::error::AppendError;
use crate::header::{FILE_HEADER_LEN, journal_new_path};
use crate::room::reserve_bytes;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A file gets so many times as long as it is to be at most.
const LONGEST: u64 = 2;

impl Journal {
    /// Sees to it that a group of `bytes` that begins at `tip` has a file to go to.
    pub(crate) fn ready(&mut self, bytes: u64, tip: Tip) -> Result<(), AppendError> {
        let max = self.shared.options.file_bytes_max;
        let longest = max.saturating_mul(LONGEST);
        // A file that is left has room held back, so the next one has to have as much.
        let least = reserve_bytes(&self.shared.options) - FILE_HEADER_LEN as u64;
        if self.former.as_ref().is_some_and(Former::is_done) {
            // If it failed, what it had is written again below.
            let _ = self.settle();
        }
        if self.part.as_ref().is_some_and(Part::is_done) {
            let _ = self.settle_part();
        }
        loop {
            if self.unsafe_kept {
                self.rewrite(tip.lsn)?;
            }
            match &self.active {
                Some(active) if active.is_empty() || active.end_of(bytes) <= max => return Ok(()),
                // The device is behind: better a longer file than that everybody waits for it.
                Some(active)
                    if self.former.as_ref().is_some_and(Former::is_running)
                        && active.end_of(bytes) <= longest =>
                {
                    return Ok(());
                }
                Some(_) if self.former.is_some() => {
                    let _ = self.settle();
                }
                Some(_) => match self.begin(tip, least) {
                    Ok(next) => self.roll(next, tip.lsn)?,
                    // It has what is held back for what is small, so it has to go on.
                    Err(_) => return Ok(()),
                },
                None => {
                    let next = self.begin(tip, 0)?;
                    self.roll(next, tip.lsn)?;
                }
            }
        }
    }

    pub(super) fn begin(&mut self, tip: Tip, bytes: u64) -> Result<Active, AppendError> {
        let temporary = journal_new_path(&self.shared.options.dir);
        let blank = self.blank(bytes, &temporary);
        Active::begin(&self.shared, self.next_sequence, tip, blank, temporary)
    }

    /// Goes on in `next`. What the file before has is made durable beside that if nobody waits for
    /// it. If it does not sync, what of it is not durable is remembered, and `next` is not used.
    pub(super) fn roll(&mut self, mut next: Active, lsn: u64) -> Result<(), AppendError> {
        let unsynced = |active: &mut Active| active.synced_len < active.len;
        if self.shared.can_defer
            && let Some(full) = self.active.take_if(unsynced)
        {
            self.former = Some(Former::begin(&self.shared, full, self.part.take(), &next));
            self.install(next);
            return Ok(());
        }
        if self.sync(0, lsn).is_err() {
            return Ok(());
        }
        // From here on the next file may have its name, and makes void what this one would get.
        if let Some(full) = self.active.take() {
            full.trim(&self.shared);
        }
        next.sync()?;
        next.name(&self.shared)?;
        self.install(next);
        Ok(())
    }

    pub(super) fn install(&mut self, active: Active) {
        let sequence = active.sequence;
        self.next_sequence = sequence.saturating_add(1);
        self.shared.counters.begun.fetch_add(1, Relaxed);
        self.shared.files.lock().insert(sequence, active.start_lsn);
        let whole = self.former.as_ref().map_or(sequence, Former::sequence);
        self.shared.unnamed.store(if active.is_named() { u64::MAX } else { sequence }, Release);
        self.shared.full_below.store(whole, Release);
        self.active = Some(active);
        self.direct.another_file();
        self.shared.wake.set();
    }

    /// Waits for what is being made durable beside the writing. If that is the file before the active
    /// one, that has its name then.
    pub(super) fn settle(&mut self) -> Result<(), AppendError> {
        let Some(former) = self.former.take() else { return self.settle_part() };
        let sequence = former.sequence();
        let Some(mut active) = self.active.take() else {
            return former.wait(&self.shared).inspect_err(|_| self.all_unsafe(sequence));
        };
        if let Err(error) = former.wait(&self.shared) {
            tracing::warn!(%error, "a journal file cannot be relied on; going on in a new one");
            self.next_sequence = active.sequence;
            self.all_unsafe(sequence);
            return Err(error);
        }
        active.has_name();
        self.durable_below(active.start_lsn);
        active.synced_len = active.synced_len.max(FILE_HEADER_LEN as u64);
        self.shared.unnamed.store(u64::MAX, Release);
        self.shared.full_below.store(active.sequence, Release);
        self.active = Some(active);
        self.shared.wake.set();
        Ok(())
    }
}
