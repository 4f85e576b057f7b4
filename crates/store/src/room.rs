//! Room on the disk, asked for before anything is written.
//!
//! Where a journal file cannot be reserved as a whole it grows step by step, and a group is written
//! only where room is reserved for it. So a full disk refuses before it has taken half of a group,
//! and the file stays in use. Part of what is reserved is held back from large appends, and part
//! of that from small ones, so that progress goes on longest. For the day on which not even a new
//! file can be begun there is one in reserve.
//!
//! Law: what only the reserve makes possible is small; it is made again as soon as there is room.

use crate::disk::DiskFile;
use crate::header::{FILE_HEADER_LEN, reserve_path};
use crate::options::StoreOptions;
use crate::shared::{Shared, Work};
use crate::writer::frame_len;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Bytes of the file in reserve, and of what large appends leave of any file.
const RESERVE_BYTES: u64 = 512 << 10;
/// How many times smaller than that the file in reserve may be.
const SHRINK_MAX: u64 = 8;
/// Frames up to this size are small, in bytes.
const SMALL_MAX: usize = 16 << 10;
/// Bytes by which a file grows that could not be reserved as a whole, if there are that many.
const STEP: u64 = 1 << 20;

/// What a write is to the room that is left, by who has to give way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// A large append.
    Large,
    /// A small append.
    Small,
    /// Progress, or a topic forgotten.
    Progress,
}

impl Claim {
    /// All of them.
    pub(crate) const ALL: [Claim; 3] = [Claim::Large, Claim::Small, Claim::Progress];

    /// That of `work`.
    pub(crate) fn of(work: &Work) -> Claim {
        match work {
            Work::Record { .. } => Claim::Progress,
            Work::Append { .. } if frame_len(work) <= SMALL_MAX => Claim::Small,
            Work::Append { .. } => Claim::Large,
        }
    }

    /// Bytes that it has to leave to others.
    pub(crate) fn leaves(self, options: &StoreOptions) -> u64 {
        let reserve = reserve_bytes(options);
        match self {
            Claim::Large => reserve,
            Claim::Small => reserve / 2,
            Claim::Progress => 0,
        }
    }
}

/// Bytes of the file in reserve.
pub(crate) fn reserve_bytes(options: &StoreOptions) -> u64 {
    RESERVE_BYTES.min(options.file_bytes_max).max(FILE_HEADER_LEN as u64)
}

/// Whether `error` says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// How much of a file is reserved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reserved {
    /// Bytes from the file's start; all there can be where the file system cannot reserve.
    bytes: u64,
}

impl Reserved {
    /// A file of which `bytes` are there.
    pub(crate) fn of(bytes: u64) -> Reserved {
        Reserved { bytes }
    }

    /// A new file, reserved up to `bytes` if there is room for that, else up to `least`.
    pub(crate) fn begin(file: &dyn DiskFile, bytes: u64, least: u64) -> io::Result<Reserved> {
        let mut reserved = Reserved { bytes: 0 };
        reserved.grow(file, &[bytes, least])?;
        Ok(reserved)
    }

    /// Sees to it that `end` bytes are reserved; a file that is to have `file_max` bytes gets more
    /// than that at once, if there is room, and one that gets longer a quarter of that.
    pub(crate) fn extend(
        &mut self,
        file: &dyn DiskFile,
        end: u64,
        file_max: u64,
    ) -> io::Result<()> {
        if end <= self.bytes {
            return Ok(());
        }
        let step = if end <= file_max {
            end.saturating_add(STEP).min(file_max)
        } else {
            end.saturating_add(file_max / 4)
        };
        self.grow(file, &[step, end])
    }

    /// Reserves the first of `ends` that there is room for.
    fn grow(&mut self, file: &dyn DiskFile, ends: &[u64]) -> io::Result<()> {
        let mut outcome = Ok(());
        for end in ends {
            match file.preallocate(*end) {
                Ok(()) => {
                    self.bytes = *end;
                    return Ok(());
                }
                Err(error) if is_full(&error) => {
                    // What was reserved in part is given back.
                    if file.len().is_ok_and(|len| len > self.bytes) {
                        let _ = file.set_len(self.bytes);
                    }
                    outcome = Err(error);
                }
                Err(error) => {
                    // Slower syncs, but a journal all the same.
                    tracing::debug!(%error, "a journal file cannot be reserved");
                    self.bytes = u64::MAX;
                    return Ok(());
                }
            }
        }
        outcome
    }

    /// Whether it is exactly `bytes`.
    pub(crate) fn is(&self, bytes: u64) -> bool {
        self.bytes == bytes
    }

    /// Whether the file system has said so, rather than being unable to.
    pub(crate) fn is_certain(&self) -> bool {
        self.bytes < u64::MAX
    }

    /// Bytes that may be written behind the first `end` if `leaves` are left.
    pub(crate) fn room(&self, end: u64, leaves: u64) -> u64 {
        self.bytes.saturating_sub(end).saturating_sub(leaves)
    }
}

/// Makes the file in reserve, unless it is there: a smaller one if there is room for no other. Not
/// to be called by two threads at once.
pub(crate) fn keep_reserve(shared: &Shared) {
    let Shared { disk, options, reserve, .. } = shared;
    if reserve.load(Acquire) > 0 {
        return;
    }
    let (path, most) = (reserve_path(&options.dir), reserve_bytes(options));
    let found = disk.open(&path).and_then(|file| file.len()).unwrap_or(0);
    if (most / SHRINK_MAX..=most).contains(&found) {
        return reserve.store(found, Release);
    }
    let _ = disk.remove(&path);
    let made = disk.create(&path).and_then(|file| reserve_some(&*file, most));
    match made {
        Ok(bytes) => reserve.store(bytes, Release),
        Err(error) => {
            tracing::debug!(%error, "cannot keep a journal file in reserve");
            let _ = disk.remove(&path);
        }
    }
}

fn reserve_some(file: &dyn DiskFile, most: u64) -> io::Result<u64> {
    let mut bytes = most;
    loop {
        match file.preallocate(bytes) {
            Ok(()) => return Ok(bytes),
            Err(error) if is_full(&error) && bytes > most / SHRINK_MAX => {
                file.set_len(0)?;
                bytes /= 2;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Gives the file in reserve the name `temporary`, if it has room for `bytes`.
pub(crate) fn take_reserve(
    shared: &Shared,
    bytes: u64,
    temporary: &Path,
) -> io::Result<(Arc<dyn DiskFile>, Reserved)> {
    let Shared { disk, options, reserve, .. } = shared;
    let there = reserve.load(Acquire);
    if there < bytes {
        return Err(ErrorKind::NotFound.into());
    }
    reserve.store(0, Release);
    disk.rename(&reserve_path(&options.dir), temporary)?;
    // It must not come back under its former name with what is written to it now.
    disk.sync_dir(&options.dir)?;
    Ok((disk.open(temporary)?, Reserved::of(there)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::Incarnation;

    #[test]
    fn progress_goes_on_longest_and_large_appends_give_way_first() {
        let options = StoreOptions::new("/d", Incarnation(1));
        let left = Claim::ALL.map(|claim| claim.leaves(&options));
        assert!(left.is_sorted_by(|more, less| more > less), "{left:?}");
        assert_eq!(left[2], 0);
    }

    #[test]
    fn a_file_grows_by_more_than_it_needs_up_to_its_size_and_by_quarters_beyond() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("f");
        let options = &mut std::fs::File::options();
        let file = options.create_new(true).read(true).write(true).open(path).expect("made");
        let mut reserved = Reserved::begin(&file, 1000, 1).expect("room");
        let max = 3 * STEP;
        let longer = max + 1 + max / 4;
        for (end, len) in [(900, 1000), (1001, 1001 + STEP), (2 * STEP + 1, max), (max + 1, longer)]
        {
            reserved.extend(&file, end, max).expect("room");
            assert_eq!((DiskFile::len(&file).expect("len"), reserved.bytes), (len, len));
        }
        assert_eq!(reserved.room(max, 0), 1 + max / 4);
    }
}
