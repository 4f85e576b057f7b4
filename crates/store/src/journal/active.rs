//! One journal file being filled: how it is made, how it gets its name, how full it is.
//!
//! What this leaves to others: when the next one is due, and what its groups are.
//!
//! Law: `len` counts only groups that succeeded, and nothing is written where no room is reserved.

use super::next::Blank;
use crate::disk::DiskFile;
use crate::error::AppendError;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, NO_TOPIC};
use crate::group::Group;
use crate::header::{FILE_HEADER_LEN, FORMAT_VERSION, FileHeader};
use crate::room::{Claim, Reserved, reserve_bytes};
use crate::shared::Shared;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Written behind each group in a file that is used again, so that its end looks like that of a
/// new one: what of the file's former life follows is then no torn write.
pub(crate) static END: [u8; FRAME_HEADER_LEN] = [0; FRAME_HEADER_LEN];

/// Bytes of zeros that are written ahead of what waits for a sync in a new file.
const AHEAD: u64 = 256 << 10;
/// What is larger than this goes without them: the device takes longer for that anyhow.
const AHEAD_FOR_MAX: u64 = 16 << 10;
/// What the operating system reads from the disk before it can change a part of it, in bytes.
const PAGE: u64 = 4 << 10;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

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
    pub(crate) fn before(header: &FrameHeader) -> Tip {
        Tip { lsn: header.lsn, topic: header.previous, extras: header.previous_extras }
    }
}

impl Default for Tip {
    fn default() -> Tip {
        Tip { lsn: 0, topic: NO_TOPIC, extras: false }
    }
}

/// A file that groups are written to.
pub(crate) struct Active {
    /// Its place among the journal files.
    pub sequence: u64,
    /// Log sequence number of its first frame.
    pub start_lsn: u64,
    /// Its name, or what is to be its name.
    pub path: PathBuf,
    /// Open for writing.
    pub file: Arc<dyn DiskFile>,
    /// Bytes that count.
    pub len: u64,
    /// Bytes that are durable.
    pub synced_len: u64,
    /// Whether it was used before, and is not cut since.
    pub reused: bool,
    /// Bytes that were written once, in a former life or only with zeros.
    touched: u64,
    /// Up to here there are zeros behind `len`, and the operating system has them in memory.
    clean: u64,
    /// Whether the last group was small and waited for a sync.
    small_before: bool,
    /// The name that it has until it has its own.
    temporary: Option<PathBuf>,
    reserved: Reserved,
}

impl Active {
    /// Makes journal file `sequence` with a header, out of `blank`, which has the name `temporary`.
    pub(super) fn begin(
        shared: &Shared,
        sequence: u64,
        tip: Tip,
        blank: io::Result<Blank>,
        temporary: PathBuf,
    ) -> Result<Active, AppendError> {
        let Shared { disk, options, .. } = shared;
        let path = shared.path(sequence);
        let Blank { file, reserved, reused } =
            blank.map_err(|error| AppendError::io("make", &path, &error))?;
        let header = FileHeader {
            version: FORMAT_VERSION,
            sequence,
            incarnation: options.incarnation.0,
            start_lsn: tip.lsn,
            previous: tip.topic,
            previous_extras: tip.extras,
            checkpoint: shared.counters.checkpoint.load(Relaxed),
            boot: disk.boot_id().unwrap_or_default(),
        };
        let (start_lsn, len) = (tip.lsn, FILE_HEADER_LEN as u64);
        let mut active = Active {
            sequence,
            start_lsn,
            path,
            file,
            len,
            synced_len: 0,
            reused,
            touched: if reused { options.file_bytes_max } else { len },
            clean: len,
            small_before: false,
            temporary: Some(temporary),
            reserved,
        };
        if let Err(error) = active.write_behind(0, vec![IoSlice::new(&header.encode())], len, false)
        {
            let _ = active.temporary.as_ref().map(|temporary| disk.remove(temporary));
            return Err(AppendError::io("begin", &active.path, &error));
        }
        Ok(active)
    }

    /// Whether it has the name that a restart finds it by whatever happens.
    pub(crate) fn is_named(&self) -> bool {
        self.temporary.is_none()
    }

    /// Makes all of it durable.
    pub(crate) fn sync(&mut self) -> Result<(), AppendError> {
        if self.synced_len < self.len {
            let synced = self.file.sync_data();
            synced.map_err(|error| AppendError::io("sync", &self.path, &error))?;
            self.synced_len = self.len;
        }
        Ok(())
    }

    /// What gives it its name, once its header is durable.
    pub(crate) fn naming(&self) -> Naming {
        Naming {
            file: Arc::clone(&self.file),
            temporary: self.temporary.clone(),
            path: self.path.clone(),
        }
    }

    /// Gives it its name, once its header is durable.
    pub(crate) fn name(&mut self, shared: &Shared) -> Result<(), AppendError> {
        self.naming().carry_out(shared)?;
        self.has_name();
        Ok(())
    }

    /// Takes note that it has its name.
    pub(super) fn has_name(&mut self) {
        self.temporary = None;
    }

    /// Writes `group`, which a sync will follow if `synced`. On an error any part of it may be in
    /// the file.
    ///
    /// Zeros are written behind it. In a file that is used again, so that its end can be told, and to the
    /// end of the page: of one that is written in part the operating system would read the rest from the
    /// disk first, for a third of what a small group's sync takes. And a file system that has only
    /// reserved what is written has to note that it is there now, which makes the sync a fifth longer; so
    /// where one small group after the other waits for a sync, zeros are written far ahead, and the next
    /// ones only overwrite them.
    pub(crate) fn write(&mut self, group: &Group, synced: bool) -> io::Result<()> {
        let end = self.len + group.len();
        let small = synced && group.len() <= AHEAD_FOR_MAX;
        self.write_behind(self.len, group.slices(), end, small && self.small_before)?;
        self.has_now(end);
        self.small_before = small;
        Ok(())
    }

    /// Writes `slices`, which end at `end`, to `at`, with zeros behind them.
    fn write_behind<'a>(
        &mut self,
        at: u64,
        mut slices: Vec<IoSlice<'a>>,
        end: u64,
        small: bool,
    ) -> io::Result<()> {
        let zeros = self.zeros_behind(end, small);
        let pieces = (0..zeros).step_by(ZEROS.len()).map(|at| ZEROS.len().min(zeros - at));
        slices.extend(pieces.map(|len| IoSlice::new(&ZEROS[..len])));
        self.file.write_at(at, &mut slices)?;
        self.clean = self.clean.max(end + zeros as u64);
        self.touched = self.touched.max(self.clean);
        Ok(())
    }

    /// How many zeros to write behind what ends at `end`, and is one of many small groups or not.
    fn zeros_behind(&self, end: u64, small: bool) -> usize {
        let least = if self.reused { END.len() as u64 } else { 0 };
        let room = if self.reserved.is_certain() { self.reserved.room(end, 0) } else { least };
        let zeros = if end > self.touched {
            if small { AHEAD } else { least }
        } else if end + least > self.clean {
            (end + least).next_multiple_of(PAGE) - end
        } else {
            0
        };
        zeros.min(room) as usize
    }

    /// Whether `end` is within what the file system has reserved.
    pub(super) fn has_room_to(&self, end: u64) -> bool {
        self.reserved.is_certain() && self.reserved.room(0, 0) >= end
    }

    /// Takes note that all up to `end` is written.
    pub(super) fn has_now(&mut self, end: u64) {
        (self.len, self.touched, self.small_before) = (end, self.touched.max(end), false);
    }

    /// Whether a restart would have to look at it.
    pub(crate) fn is_empty(&self) -> bool {
        self.len <= FILE_HEADER_LEN as u64
    }

    /// Where a group of `bytes` ends, with what has to stand behind it.
    pub(crate) fn end_of(&self, bytes: u64) -> u64 {
        self.len + bytes + if self.reused { END.len() as u64 } else { 0 }
    }

    /// Sees to it that there is room for `bytes`, and for what such a claim leaves to others.
    pub(crate) fn extend(
        &mut self,
        shared: &Shared,
        bytes: u64,
        claim: Claim,
    ) -> Result<(), AppendError> {
        let options = &shared.options;
        let (end, max) = (self.end_of(bytes), options.file_bytes_max);
        let mut wanted = end.saturating_add(claim.leaves(options));
        if shared.reserve.load(Acquire) >= reserve_bytes(options) {
            // What comes after the file is full has the one in reserve.
            wanted = wanted.min(max.max(end));
        }
        let reserved = self.reserved.extend(&*self.file, wanted, max);
        reserved.map_err(|error| AppendError::io("make room in", &self.path, &error))
    }

    /// Bytes that such a claim may take as it is.
    pub(crate) fn room(&self, shared: &Shared, claim: Claim) -> u64 {
        self.reserved.room(self.end_of(0), claim.leaves(&shared.options))
    }

    /// Gives back what was reserved and not used, unless the file can be used again.
    pub(crate) fn trim(&self, shared: &Shared) {
        let options = &shared.options;
        if options.spare_files_max == 0 || !self.reserved.is(options.file_bytes_max) {
            let _ = self.file.set_len(self.len);
        }
    }
}

/// What there is to do for a file to have its name whatever happens.
pub(crate) struct Naming {
    file: Arc<dyn DiskFile>,
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl Naming {
    /// Makes durable what the file has.
    pub(crate) fn sync(&self) -> Result<(), AppendError> {
        self.file.sync_data().map_err(|error| AppendError::io("sync", &self.path, &error))
    }

    /// Gives it the name, if it has not got it.
    pub(crate) fn carry_out(&self, shared: &Shared) -> Result<(), AppendError> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let Shared { disk, options, .. } = shared;
        let named = disk.rename(temporary, &self.path).and_then(|()| disk.sync_dir(&options.dir));
        named.map_err(|error| AppendError::io("name", &self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OsDisk};
    use proptest::prelude::*;

    /// Bytes of the file, each of them once 255.
    const BYTES: usize = 5 * PAGE as usize;

    proptest! {
        #[test]
        fn behind_each_group_are_zeros_to_the_end_of_its_page_and_then_what_was_there(
            lens in proptest::collection::vec(1_usize..6000, 1..12),
            reused in any::<bool>(),
        ) {
            let dir = tempfile::tempdir().expect("directory");
            let path = dir.path().join("file");
            let file = OsDisk.create(&path).expect("is made");
            file.write_at(0, &mut [IoSlice::new(&[255; BYTES])]).expect("is written");
            let mut active = Active {
                sequence: 1,
                start_lsn: 0,
                path,
                file,
                len: 0,
                synced_len: 0,
                reused,
                touched: BYTES as u64,
                clean: 0,
                small_before: false,
                temporary: None,
                reserved: Reserved::of(BYTES as u64),
            };
            let least = if reused { END.len() } else { 0 };
            let mut expected = Vec::new();
            for len in lens {
                if expected.len() + len + least > BYTES {
                    break;
                }
                expected.extend(vec![1; len]);
                let end = expected.len();
                let at = active.len;
                let group = vec![1; len];
                let slices = vec![IoSlice::new(&group)];
                active.write_behind(at, slices, end as u64, true).expect("is written");
                active.has_now(end as u64);
                let all = active.file.read_new(0, BYTES + 1).expect("is read");
                let zeros = (end + least).next_multiple_of(PAGE as usize).min(BYTES);
                prop_assert_eq!(all.len(), BYTES);
                prop_assert_eq!(&all[..end], &expected);
                prop_assert!(all[end..zeros].iter().all(|byte| *byte == 0));
                prop_assert!(all[zeros.max(active.clean as usize)..].iter().all(|byte| *byte == 255));
            }
        }
    }
}
