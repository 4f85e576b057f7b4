//! The journal: which file groups go to, and what happens when the disk refuses.
//!
//! Law: a file gets its name only once all that counts in the earlier ones is durable. When a write
//! or a sync failed, the file is left for good; the next file's header says from which log sequence
//! number on the rest of the earlier ones is void. What of it was acknowledged is written again into
//! that next file first.

use crate::error::{AppendError, CloseError};
use crate::group::Group;
use crate::room::Claim;
use crate::secure::mark;
use crate::shared::Shared;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

mod active;
mod beside;
mod direct;
mod former;
mod next;
mod rewrite;
mod roll;

pub(crate) use active::Tip;
pub(crate) use rewrite::{Content, Kept};

use active::Active;
use beside::Part;
use direct::Direct;
use former::Former;
use next::Next;

/// Where frames are appended.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    active: Option<Active>,
    /// The file before, while it is not durable; then the active one has no name.
    former: Option<Former>,
    /// The sync that runs beside the writing of the active file.
    part: Option<Part>,
    /// The file to come, if it is made early.
    next: Option<Next>,
    direct: Direct,
    next_sequence: u64,
    /// Everything below this log sequence number is durable.
    durable_lsn: u64,
    /// What was acknowledged since.
    kept: Vec<Kept>,
    /// Whether the files that have it failed to sync.
    unsafe_kept: bool,
}

impl Journal {
    /// A journal whose first file, made when it is needed, is `next_sequence`; everything below
    /// `lsn` is durable.
    pub(crate) fn new(shared: Arc<Shared>, next_sequence: u64, lsn: u64) -> Journal {
        Journal {
            shared,
            active: None,
            former: None,
            part: None,
            next: None,
            direct: Direct::new(),
            next_sequence,
            durable_lsn: lsn,
            kept: Vec::new(),
            unsafe_kept: false,
        }
    }

    /// Everything below this log sequence number is durable.
    pub(crate) fn durable_lsn(&self) -> u64 {
        self.durable_lsn
    }

    /// Whether anything that was acknowledged may be lost to a power cut.
    pub(crate) fn has_unsynced(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Whether something that was acknowledged is in no file that can be relied on.
    pub(crate) fn is_unsafe(&self) -> bool {
        self.unsafe_kept
    }

    /// Keeps a frame that was acknowledged until it is durable.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    /// What was acknowledged with a log sequence number below `lsn` needs to be kept no more.
    fn durable_below(&mut self, lsn: u64) {
        self.durable_lsn = self.durable_lsn.max(lsn);
        let durable = self.kept.partition_point(|kept| kept.header.lsn < lsn);
        self.kept.drain(..durable);
    }

    fn all_durable(&mut self, next_lsn: u64) {
        self.durable_lsn = next_lsn;
        self.unsafe_kept = false;
        self.shared.unsafe_from.store(u64::MAX, Release);
        self.kept.clear();
        self.kept.shrink_to(1024);
    }

    /// What was acknowledged is in files that cannot be relied on, from `sequence` on.
    fn all_unsafe(&mut self, sequence: u64) {
        self.unsafe_kept = !self.kept.is_empty();
        if self.unsafe_kept {
            self.shared.unsafe_from.fetch_min(sequence, Release);
        }
    }

    /// Sees to it that there is room for `bytes` in the active file, and for what such a claim
    /// leaves to others. What is small may go on in the file in reserve.
    pub(crate) fn reserve(
        &mut self,
        bytes: u64,
        claim: Claim,
        tip: Tip,
    ) -> Result<(), AppendError> {
        let mut reserved = self.extend(bytes, claim);
        if reserved.is_err() && claim != Claim::Large && self.shared.reserve.load(Acquire) > 0 {
            self.settle()?;
            let next = self.begin(tip, 0)?;
            self.roll(next, tip.lsn)?;
            reserved = self.extend(bytes, claim);
        }
        match &reserved {
            Err(error) if !self.shared.tight.swap(true, Relaxed) => {
                tracing::warn!(%error, "the journal's disk is full; only what is small is taken");
                self.shared.wake.set();
            }
            Ok(()) if claim == Claim::Large && self.shared.tight.swap(false, Relaxed) => {
                tracing::info!("the journal's disk has room again");
            }
            _ => {}
        }
        reserved
    }

    fn extend(&mut self, bytes: u64, claim: Claim) -> Result<(), AppendError> {
        match self.active.as_mut() {
            Some(active) => active.extend(&self.shared, bytes, claim),
            None => {
                let error = io::Error::other("its newest file has failed to sync");
                Err(AppendError::io("go on in", &self.shared.options.dir, &error))
            }
        }
    }

    /// Sequence of the active file, and where the next group goes in it.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        self.active.as_ref().map(|active| (active.sequence, active.len))
    }

    /// Bytes that such a claim may take of the active file as it is.
    pub(crate) fn room(&self, claim: Claim) -> u64 {
        self.active.as_ref().map_or(0, |active| active.room(&self.shared, claim))
    }

    /// Bytes of something small that can be written with nothing but that: no other file, no more
    /// room, no sync of what was written before.
    pub(crate) fn easy_bytes(&self) -> u64 {
        let calm = self.former.is_none() && !self.unsafe_kept;
        self.active.as_ref().filter(|_| calm).map_or(0, |active| {
            let max = self.shared.options.file_bytes_max;
            active.room(&self.shared, Claim::Small).min(max.saturating_sub(active.end_of(0)))
        })
    }

    /// Writes `group`, which a sync will follow if `synced`, to the active file. On an error
    /// nothing of it counts.
    pub(crate) fn write(
        &mut self,
        group: &Group,
        synced: bool,
        lsn: u64,
    ) -> Result<(), AppendError> {
        let active = self.active.as_mut().expect("made ready for this group");
        let options = &self.shared.options;
        let suits = self.direct.suits(group, synced, options);
        let direct = if suits { self.direct.write(active, group, options) } else { None };
        let (past_cache, written) = match direct {
            Some(written) => (true, written),
            None => (false, active.write(group, synced)),
        };
        let Err(error) = written else {
            self.make_next_early(group.len());
            return Ok(());
        };
        let failure = AppendError::io("write", &active.path, &error);
        // Nothing else may stand where what failed may have got to the disk: a power loss could
        // bring that back in its place. The next file makes it void.
        let _ = active.file.set_len(active.len);
        let path = active.path.display();
        tracing::warn!(%path, %error, "cannot write to the journal file; going on in a new one");
        if active.is_empty() {
            // Nothing in it counts, so the next one takes its place; once nobody gives this one its name.
            self.next_sequence = active.sequence;
            let _ = self.settle();
            self.active = None;
        } else if past_cache {
            // The unit that it began in has what counts too, and nobody knows what the device did to it.
            let _ = self.settle();
            if let Some(active) = self.active.take() {
                self.all_unsafe(active.sequence);
            }
        } else if self.sync(0, lsn).is_ok() {
            self.active = None;
        }
        Err(failure)
    }

    /// Makes everything written so far durable; the next frame will be `next_lsn`. On an error
    /// the last `unkept` bytes do not count, and the file is left.
    pub(crate) fn sync(&mut self, unkept: u64, next_lsn: u64) -> Result<(), AppendError> {
        self.settle()?;
        let Some(active) = self.active.as_mut() else {
            if !self.unsafe_kept {
                self.all_durable(next_lsn);
            }
            return Ok(());
        };
        if active.len == active.synced_len {
            return Ok(());
        }
        let Err(error) = active.sync() else {
            self.all_durable(next_lsn);
            return Ok(());
        };
        let active = self.active.take().expect("present just now");
        tracing::warn!(%error, "journal file failed to sync; going on in a new one");
        let end = active.len - unkept;
        if unkept > 0 {
            // The next file makes the rest void even where this cannot.
            let _ = active.file.set_len(end);
        }
        self.all_unsafe(active.sequence);
        Err(error)
    }

    /// Makes everything that was acknowledged durable, also what a failed sync left unsafe.
    pub(crate) fn flush(&mut self, next_lsn: u64) -> Result<(), AppendError> {
        if self.unsafe_kept { self.rewrite(next_lsn) } else { self.sync(0, next_lsn) }
    }

    /// Goes on in a new file if there is room for one, so that the present one can be given back.
    pub(crate) fn leave(&mut self, tip: Tip) {
        if self.active.as_ref().is_none_or(Active::is_empty) {
            return;
        }
        let left = self.settle().and_then(|()| self.begin(tip, 0));
        if let Err(error) = left.and_then(|next| self.roll(next, tip.lsn)) {
            tracing::debug!(%error, "cannot go on in a new journal file");
        }
    }

    /// Leaves the journal whole: synced, with a mark that says so, and without what was reserved
    /// and not used.
    pub(crate) fn close(&mut self, tip: Tip) -> Result<(), CloseError> {
        self.forget_next();
        let path = self.shared.options.dir.clone();
        let unsafe_to_leave = |error: AppendError| CloseError { path, error: error.to_string() };
        let safe = self.flush(tip.lsn).or_else(|_| self.flush(tip.lsn));
        safe.map_err(unsafe_to_leave)?;
        let Some(mut active) = self.active.take() else { return Ok(()) };
        let mark = mark(tip, false);
        let bytes = mark.encode(active.sequence);
        let marked = active.file.write_at(active.len, &mut [IoSlice::new(&bytes)]);
        if marked.is_ok() {
            active.len += bytes.len() as u64;
        }
        let _ = active.file.set_len(active.len);
        if let Err(error) = marked.and_then(|()| active.file.sync_data()) {
            // Everything before it is durable; the next start only cannot be as sure of it.
            tracing::debug!(%error, "cannot mark the end of the journal");
        }
        Ok(())
    }
}
