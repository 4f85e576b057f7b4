//! The journal's active file: made, filled, synced, and left for the next one.
//!
//! Law: `len` counts only groups that succeeded, and a newer file gets its name only once all that
//! counts in the earlier ones is durable. When a write or a sync
//! failed, the file is left for good; the next file's header says from which log sequence number
//! on the rest of the earlier ones is void. What of it was acknowledged is written again into that
//! next file first.

use crate::disk::DiskFile;
use crate::error::{AppendError, CloseError};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, NO_TOPIC};
use crate::group::Group;
use crate::header::{FILE_HEADER_LEN, FORMAT_VERSION, FileHeader, journal_new_path};
use crate::rewrite::{Kept, Moved, copy_frames};
use crate::room::{Claim, Reserved, is_full, reserve_bytes, take_reserve};
use crate::secure::mark;
use crate::shared::Shared;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Written behind each group in a file that is used again, so that its end looks like that of a
/// new one: what of the file's former life follows is then no torn write.
static END: [u8; FRAME_HEADER_LEN] = [0; FRAME_HEADER_LEN];

/// How far the journal has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tip {
    /// Log sequence number of the next frame.
    pub lsn: u64,
    /// Topic of the last one that counts.
    pub topic: u32,
    /// Whether that one has extras.
    pub extras: bool,
}

impl Tip {
    /// What it was when this frame was the next one.
    fn before(header: &FrameHeader) -> Tip {
        Tip { lsn: header.lsn, topic: header.previous, extras: header.previous_extras }
    }
}

impl Default for Tip {
    fn default() -> Tip {
        Tip { lsn: 0, topic: NO_TOPIC, extras: false }
    }
}

/// Where frames are appended.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    active: Option<Active>,
    next_sequence: u64,
    /// Everything below this log sequence number is durable.
    durable_lsn: u64,
    /// What was acknowledged since.
    kept: Vec<Kept>,
    /// Whether the files that have it failed to sync.
    unsafe_kept: bool,
    /// Whether the last group found too little room.
    full: bool,
}

struct Active {
    sequence: u64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    len: u64,
    /// Bytes that are durable.
    synced_len: u64,
    /// Whether it was used before, and is not cut since.
    reused: bool,
    reserved: Reserved,
}

impl Active {
    /// Where a group of `bytes` ends, with what has to stand behind it.
    fn end_of(&self, bytes: u64) -> u64 {
        self.len + bytes + if self.reused { END.len() as u64 } else { 0 }
    }
}

impl Journal {
    /// A journal whose first file, made when it is needed, is `next_sequence`; everything below
    /// `lsn` is durable.
    pub(crate) fn new(shared: Arc<Shared>, next_sequence: u64, lsn: u64) -> Journal {
        let kept = Vec::new();
        let durable_lsn = lsn;
        let (active, unsafe_kept, full) = (None, false, false);
        Journal { shared, active, next_sequence, durable_lsn, kept, unsafe_kept, full }
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

    fn all_durable(&mut self, next_lsn: u64) {
        self.durable_lsn = next_lsn;
        self.unsafe_kept = false;
        self.shared.unsafe_from.store(u64::MAX, Release);
        self.kept.clear();
        self.kept.shrink_to(1024);
    }

    /// Sees to it that a group of `bytes` that begins at `tip` has a file to go to.
    pub(crate) fn ready(&mut self, bytes: u64, tip: Tip) -> Result<(), AppendError> {
        let max = self.shared.options.file_bytes_max;
        // A file that is left has room held back, so the next one has to have as much.
        let least = reserve_bytes(&self.shared.options) - FILE_HEADER_LEN as u64;
        loop {
            if self.unsafe_kept {
                self.rewrite(tip.lsn)?;
            }
            match &self.active {
                Some(active)
                    if active.len <= FILE_HEADER_LEN as u64 || active.end_of(bytes) <= max =>
                {
                    return Ok(());
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

    /// Leaves the active file, if there is one, and goes on in `next`. If it does not sync, what of
    /// it is not durable is remembered, and `next` is not used.
    fn roll(&mut self, mut next: Active, lsn: u64) -> Result<(), AppendError> {
        if self.sync(0, lsn).is_err() {
            return Ok(());
        }
        // From here on the next file may have its name, and makes void what this one would get.
        self.seal();
        self.name(&mut next)?;
        self.install(next, lsn);
        Ok(())
    }

    fn seal(&mut self) {
        if let Some(active) = self.active.take() {
            // What was reserved and not used is needed again only if the file is.
            let reusable = self.shared.options.spare_files_max > 0
                && active.len <= self.shared.options.file_bytes_max;
            if !reusable {
                let _ = active.file.set_len(active.len);
            }
        }
    }

    fn install(&mut self, active: Active, start_lsn: u64) {
        let sequence = active.sequence;
        self.next_sequence = sequence.saturating_add(1);
        self.shared.files.lock().insert(sequence, start_lsn);
        self.active = Some(active);
        self.shared.full_below.store(sequence, Release);
        self.shared.wake.set();
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
            let next = self.begin(tip, 0)?;
            self.roll(next, tip.lsn)?;
            reserved = self.extend(bytes, claim);
        }
        match &reserved {
            Err(error) if !self.full => {
                tracing::warn!(%error, "the journal's disk is full; only what is small is taken");
                self.full = true;
            }
            Ok(()) if self.full && claim == Claim::Large => {
                tracing::info!("the journal's disk has room again");
                self.full = false;
            }
            _ => {}
        }
        reserved
    }

    fn extend(&mut self, bytes: u64, claim: Claim) -> Result<(), AppendError> {
        let Some(active) = self.active.as_mut() else {
            let error = io::Error::other("its newest file has failed to sync");
            return Err(AppendError::io("go on in", &self.shared.options.dir, &error));
        };
        let options = &self.shared.options;
        let (end, max) = (active.end_of(bytes), options.file_bytes_max);
        let mut wanted = end.saturating_add(claim.leaves(options));
        if self.shared.reserve.load(Acquire) >= reserve_bytes(options) {
            // What comes after the file is full has the one in reserve.
            wanted = wanted.min(max.max(end));
        }
        let reserved = active.reserved.extend(&*active.file, wanted, max);
        reserved.map_err(|error| AppendError::io("make room in", &active.path, &error))
    }

    /// Sequence of the active file, and where the next group goes in it.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        self.active.as_ref().map(|active| (active.sequence, active.len))
    }

    /// Bytes that such a claim may take of the active file as it is.
    pub(crate) fn room(&self, claim: Claim) -> u64 {
        let leaves = claim.leaves(&self.shared.options);
        let room = |active: &Active| active.reserved.room(active.end_of(0), leaves);
        self.active.as_ref().map_or(0, room)
    }

    /// Makes a file that has a durable header, room for `bytes` and no name yet.
    fn begin(&self, tip: Tip, bytes: u64) -> Result<Active, AppendError> {
        let sequence = self.next_sequence;
        let Shared { disk, options, .. } = &*self.shared;
        let temporary = journal_new_path(&options.dir);
        let path = self.shared.path(sequence);
        // One that a failure left there.
        let _ = disk.remove(&temporary);
        let (file, reserved, reused) =
            self.find_room(bytes).map_err(|error| AppendError::io("make", &path, &error))?;
        let header = FileHeader {
            version: FORMAT_VERSION,
            sequence,
            incarnation: options.incarnation.0,
            start_lsn: tip.lsn,
            previous: tip.topic,
            previous_extras: tip.extras,
            checkpoint: self.shared.counters.checkpoint.load(Relaxed),
            boot: disk.boot_id().unwrap_or_default(),
        };
        let end: &[u8] = if reused { &END } else { &[] };
        let begun = file.write_at(0, &mut [IoSlice::new(&header.encode()), IoSlice::new(end)]);
        if let Err(error) = begun.and_then(|()| file.sync_data()) {
            let _ = disk.remove(&temporary);
            return Err(AppendError::io("begin", &path, &error));
        }
        let len = FILE_HEADER_LEN as u64;
        Ok(Active { sequence, path, file, len, synced_len: len, reused, reserved })
    }

    /// A file under the temporary name with room for `bytes`: one that was used before, a new one
    /// or, on a full disk, the one in reserve. Also whether it was used before.
    fn find_room(&self, bytes: u64) -> io::Result<(Arc<dyn DiskFile>, Reserved, bool)> {
        let Shared { disk, options, .. } = &*self.shared;
        let temporary = journal_new_path(&options.dir);
        let (most, reserve) = (options.file_bytes_max, reserve_bytes(options));
        let bytes = bytes + FILE_HEADER_LEN as u64;
        let spare = self.shared.spares.lock().pop();
        let reused = spare.and_then(|spare| {
            // It must not come back under its former name with what is written to it now.
            let renamed =
                disk.rename(&spare, &temporary).and_then(|()| disk.sync_dir(&options.dir));
            let file = renamed.and_then(|()| disk.open(&temporary));
            let mut reserved = Reserved::of(most);
            let file = file.and_then(|file| {
                reserved.extend(&*file, bytes + END.len() as u64, most).map(|()| file)
            });
            let file = file.map_err(|error| {
                tracing::debug!(%error, "cannot reuse a journal file");
                let _ = disk.remove(&temporary);
            });
            Some((file.ok()?, reserved, true))
        });
        if let Some(reused) = reused {
            return Ok(reused);
        }
        let made = disk.create(&temporary).and_then(|file| {
            let reserved = Reserved::begin(&*file, most.max(bytes), reserve.max(bytes))?;
            Ok((file, reserved, false))
        });
        match made {
            Err(error) if is_full(&error) => {
                let _ = disk.remove(&temporary);
                let (file, reserved) = take_reserve(&self.shared, bytes).map_err(|_| error)?;
                Ok((file, reserved, false))
            }
            Err(error) => {
                let _ = disk.remove(&temporary);
                Err(error)
            }
            Ok(made) => Ok(made),
        }
    }

    fn name(&self, active: &mut Active) -> Result<(), AppendError> {
        let Shared { disk, options, .. } = &*self.shared;
        let named = disk
            .rename(&journal_new_path(&options.dir), &active.path)
            .and_then(|()| disk.sync_dir(&options.dir));
        named.map_err(|error| AppendError::io("name", &active.path, &error))
    }

    /// Writes what was acknowledged and is not durable into a new file. Until that has succeeded,
    /// the old files are what a restart reads.
    fn rewrite(&mut self, next_lsn: u64) -> Result<(), AppendError> {
        let before = self.kept.first().map_or(Tip::default(), |kept| Tip::before(&kept.header));
        let tip = Tip { lsn: self.durable_lsn, ..before };
        let bytes = self.kept.iter().map(|kept| kept.header.frame_len()).sum();
        let mut active = self.begin(tip, bytes)?;
        let copied = copy_frames(&self.kept, &*active.file, active.len, active.sequence);
        let copied = copied.and_then(|copied| {
            // The end of a group, as a reused file needs it.
            if active.reused {
                active.file.write_at(copied.1, &mut [IoSlice::new(&END)])?;
            }
            active.file.sync_data().map(|()| copied)
        });
        let (moved, len) = copied.map_err(|error| {
            let _ = self.shared.disk.remove(&journal_new_path(&self.shared.options.dir));
            AppendError::io("write again what was not synced into", &active.path, &error)
        })?;
        (active.len, active.synced_len) = (len, len);
        self.name(&mut active)?;
        let sequence = active.sequence;
        let count = moved.len();
        self.relocate(&moved, sequence);
        tracing::warn!(path = %active.path.display(), frames = count, "wrote again what a failed sync left unsafe");
        self.all_durable(next_lsn);
        self.install(active, tip.lsn);
        Ok(())
    }

    /// Tells the topics where their batches are now.
    fn relocate(&self, moved: &[Moved], file: u64) {
        let topics = self.shared.topics.read();
        for Moved { topic, batch: was, to } in moved {
            let Some(topic) = topics.get(topic) else { continue };
            let mut state = topic.state.lock();
            let at = state.index.partition_point(|batch| batch.first < was.first);
            if let Some(batch) = state.index.get_mut(at).filter(|batch| *batch == was) {
                (batch.file, batch.position) = (file, *to);
            }
        }
    }

    /// Writes `group` to the active file. On an error nothing of it counts.
    pub(crate) fn write(&mut self, group: &Group, lsn: u64) -> Result<(), AppendError> {
        let active = self.active.as_mut().expect("made ready for this group");
        let mut slices = group.slices();
        if active.reused {
            slices.push(IoSlice::new(&END));
        }
        let Err(error) = active.file.write_at(active.len, &mut slices) else {
            active.len += group.len();
            return Ok(());
        };
        let failure = AppendError::io("write", &active.path, &error);
        // Nothing else may stand where what failed may have got to the disk: a power loss could
        // bring that back in its place. The next file makes it void.
        let _ = active.file.set_len(active.len);
        let path = active.path.display();
        tracing::warn!(%path, %error, "cannot write to the journal file; going on in a new one");
        if active.len == FILE_HEADER_LEN as u64 {
            // Nothing in it counts, so the next one takes its place.
            self.next_sequence = active.sequence;
            self.active = None;
        } else if self.sync(0, lsn).is_ok() {
            self.active = None;
        }
        Err(failure)
    }

    /// Makes everything written so far durable; the next frame will be `next_lsn`. On an error
    /// the last `unkept` bytes do not count, and the file is left.
    pub(crate) fn sync(&mut self, unkept: u64, next_lsn: u64) -> Result<(), AppendError> {
        let Some(active) = self.active.as_mut() else { return Ok(()) };
        if active.len == active.synced_len {
            return Ok(());
        }
        let Err(error) = active.file.sync_data() else {
            active.synced_len = active.len;
            self.all_durable(next_lsn);
            return Ok(());
        };
        let active = self.active.take().expect("present just now");
        let failure = AppendError::io("sync", &active.path, &error);
        let path = active.path.display();
        tracing::warn!(%path, %error, "journal file failed to sync; going on in a new one");
        let end = active.len - unkept;
        if unkept > 0 {
            // The next file makes the rest void even where this cannot.
            let _ = active.file.set_len(end);
        }
        self.unsafe_kept = !self.kept.is_empty();
        if self.unsafe_kept {
            self.shared.unsafe_from.store(active.sequence, Release);
        }
        Err(failure)
    }

    /// Makes everything that was acknowledged durable, also what a failed sync left unsafe.
    pub(crate) fn flush(&mut self, next_lsn: u64) -> Result<(), AppendError> {
        if self.unsafe_kept { self.rewrite(next_lsn) } else { self.sync(0, next_lsn) }
    }

    /// Leaves the journal whole: synced, with a mark that says so, and without what was reserved
    /// and not used.
    pub(crate) fn close(&mut self, tip: Tip) -> Result<(), CloseError> {
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
