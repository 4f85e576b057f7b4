//! Reading past the operating system's cache: for what is read once, in order, and much of it.
//!
//! Law: what is read is what an ordinary read would give.

use super::{DIRECT_ALIGN, DiskFile};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A file opened for such reads.
pub trait PastCache: Send + Sync {
    /// Fills `buffer` from byte `at` on; returns less than its length only at the end of the file.
    /// `at`, and address and length of `buffer`, are multiples of [`DIRECT_ALIGN`].
    ///
    /// # Errors
    /// As the file system says; `InvalidInput` where it can do no such reads.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Whether byte `at` would be read from memory by an ordinary read, as far as that is known.
    fn is_in_cache(&self, at: u64) -> bool;
}

/// A file of a disk that has no such reads: it reads as ever.
impl PastCache for Arc<dyn DiskFile> {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(at, buffer)
    }

    fn is_in_cache(&self, _at: u64) -> bool {
        false
    }
}

/// A file of the operating system.
struct OsPastCache {
    direct: File,
    /// Open for ordinary reads, and never read ahead.
    ordinary: File,
}

/// Opens the file `path`.
#[cfg(target_os = "linux")]
pub(super) fn open(path: &Path) -> io::Result<Arc<dyn PastCache>> {
    use rustix::fs::{Advice, OFlags, fadvise};
    use std::os::unix::fs::OpenOptionsExt;
    let ordinary = File::open(path)?;
    fadvise(&ordinary, 0, None, Advice::Random)?;
    let flags = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
    let direct = File::options().read(true).custom_flags(flags).open(path)?;
    Ok(Arc::new(OsPastCache { direct, ordinary }))
}

/// Elsewhere there is no such thing.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(_path: &Path) -> io::Result<Arc<dyn PastCache>> {
    Err(io::ErrorKind::Unsupported.into())
}

impl PastCache for OsPastCache {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match FileExt::read_at(&self.direct, &mut buffer[filled..], at + filled as u64) {
                Ok(count) => {
                    filled += count;
                    // What is no whole unit is the end of the file.
                    if count == 0 || filled % DIRECT_ALIGN != 0 {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    #[cfg(target_os = "linux")]
    fn is_in_cache(&self, at: u64) -> bool {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};
        let mut byte = [0];
        let into = &mut [io::IoSliceMut::new(&mut byte)];
        // Where nobody can tell, ordinary reads are the safe choice.
        preadv2(&self.ordinary, into, at, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
    }

    #[cfg(not(target_os = "linux"))]
    fn is_in_cache(&self, _at: u64) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OsDisk};
    use crate::large::{LARGE_BYTES, Large};
    use std::fs;

    #[test]
    fn reads_past_the_cache_see_what_was_just_written_up_to_the_end() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("f");
        let bytes: Vec<u8> = (0..3 * DIRECT_ALIGN + 5).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &bytes).expect("writes");
        let Ok(file) = OsDisk.open_past_cache(&path) else {
            // A file system without such reads says so when it is asked for them.
            return assert!(OsDisk.open(&path).is_ok());
        };
        assert!(file.is_in_cache(0), "it was just written");
        let mut memory = Large::new().expect("memory");
        let into = memory.bytes_mut(LARGE_BYTES);
        let filled = file.read_at(DIRECT_ALIGN as u64, into).expect("reads");
        assert_eq!(filled, 2 * DIRECT_ALIGN + 5);
        assert!(into[..filled] == bytes[DIRECT_ALIGN..]);
        let behind = file.read_at(8 * DIRECT_ALIGN as u64, into).expect("reads");
        assert_eq!(behind, 0);
    }
}
