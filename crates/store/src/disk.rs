//! The narrow face between the log and the file system.
//!
//! [`OsDisk`] is the real one; tests put a failing one in its place. Paths are whole paths;
//! nothing here knows what the bytes mean.
//!
//! Law: a call that returns `Ok` did all of it. A short write is an error of the disk, not a
//! number for the caller to look at.

use std::fs::{self, File, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod past_cache;

pub use past_cache::PastCache;

/// Most slices of one `pwritev`; Linux refuses more than 1024.
const SLICES_MAX: usize = 1024;

/// What positions, lengths and addresses of direct writes are multiples of, in bytes.
pub const DIRECT_ALIGN: usize = 4096;

/// Where journal files live.
pub trait Disk: Send + Sync + 'static {
    /// Makes a file that must not exist yet, open for reading and writing.
    ///
    /// # Errors
    /// As the file system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// As the file system says.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file for reads that go past the operating system's cache, where that can be:
    /// for what is read once.
    ///
    /// # Errors
    /// As the file system says; `InvalidInput` or `Unsupported` where it has no such reads.
    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn PastCache>> {
        Ok(Arc::new(self.open(path)?))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As the file system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Paths of everything directly in `dir`, in no particular order.
    ///
    /// # Errors
    /// As the file system says.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Gives the file `from` the name `to`, in place of what had it; both are in one directory, or in
    /// two of one file system. A power loss leaves one of the two names.
    ///
    /// # Errors
    /// As the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    ///
    /// # Errors
    /// As the file system says.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes `dir` and what is missing above it.
    ///
    /// # Errors
    /// As the file system says.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the file `path` if it is absent and takes its lock, which is held until the answer
    /// is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// `WouldBlock` when somebody has it; else as the file system says.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;

    /// Which running of the machine this is, where that can be known. While it stays the same, no
    /// power was lost, so every write that succeeded is still there, synced or not.
    fn boot_id(&self) -> Option<[u8; 16]> {
        None
    }
}

/// One open file. All positions are bytes from its start.
pub trait DiskFile: Send + Sync {
    /// Fills as much of `buffer` as the file has from `at` on; less than its length only at the
    /// end of the file.
    ///
    /// # Errors
    /// As the file system says.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// What the file has from `at` on, at most `len` bytes; less only at the end of the file.
    ///
    /// # Errors
    /// As the file system says.
    fn read_new(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let filled = self.read_at(at, &mut bytes)?;
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Writes all of `slices` from `at` on. On an error, any part of them may be in the file.
    ///
    /// # Errors
    /// As the file system says.
    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// As [`write_at`](Self::write_at), past the operating system's cache where that can be: for what
    /// nobody is about to read. `at`, and address and length of `bytes`, are multiples of
    /// [`DIRECT_ALIGN`]. Meanwhile nothing else is done by this handle but syncs.
    ///
    /// # Errors
    /// As the file system says.
    fn write_direct_at(&self, at: u64, bytes: IoSlice<'_>) -> io::Result<()> {
        self.write_at(at, &mut [bytes])
    }

    /// Waits until the device has what was written (`fdatasync`). After an error the kernel may
    /// have dropped the bytes and forgotten that it did, so it must not be tried again on this
    /// handle.
    ///
    /// # Errors
    /// As the file system says.
    fn sync_data(&self) -> io::Result<()>;

    /// Cuts or extends (with zeros) the file to `len` bytes.
    ///
    /// # Errors
    /// As the file system says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves `len` bytes, reading as zeros, so that a later data sync need not touch metadata.
    ///
    /// # Errors
    /// As the file system says; some cannot reserve at all.
    fn preallocate(&self, len: u64) -> io::Result<()>;

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// As the file system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no byte.
    ///
    /// # Errors
    /// As the file system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Fills as much of `buffer` as `file` has from `at` on. Less than that is an error of the disk, and
/// no end of the file.
pub(crate) fn read_available(file: &dyn DiskFile, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let filled = file.read_at(at, buffer)?;
    check_short(file, at, filled, buffer.len())?;
    Ok(filled)
}

/// As [`read_available`], at most `len` bytes.
pub(crate) fn read_new_available(file: &dyn DiskFile, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let bytes = file.read_new(at, len)?;
    check_short(file, at, bytes.len(), len)?;
    Ok(bytes)
}

fn check_short(file: &dyn DiskFile, at: u64, filled: usize, wanted: usize) -> io::Result<()> {
    if filled < wanted && file.len()? > at + filled as u64 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "read less than there is"));
    }
    Ok(())
}

/// Puts a file of `bytes` in the place of `path`, by way of `temporary` in the same directory. The bytes
/// are durable before they get the name, and the name is after a sync of the directory. On an error
/// nothing is left of it.
pub(crate) fn put_whole(
    disk: &dyn Disk,
    path: &Path,
    temporary: &Path,
    bytes: &[u8],
) -> io::Result<()> {
    // One that a failure left there.
    let _ = disk.remove(temporary);
    let written = disk.create(temporary).and_then(|file| {
        file.write_at(0, &mut [IoSlice::new(bytes)])?;
        file.sync_data()
    });
    written.and_then(|()| disk.rename(temporary, path)).inspect_err(|_| {
        // Half of it is of no use, and the room may be.
        let _ = disk.remove(temporary);
    })
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::options().read(true).write(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::options().read(true).write(true).open(path)?))
    }

    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn PastCache>> {
        past_cache::open(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits = text.trim().replace('-', "");
        u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
    }
}

impl DiskFile for File {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match FileExt::read_at(self, &mut buffer[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn read_new(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        // Zeroing first what is overwritten at once would cost a tenth of reading it.
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let from = at + bytes.len() as u64;
            match rustix::io::pread(self, rustix::buffer::spare_capacity(&mut bytes), from) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // There may have been room for more.
        bytes.truncate(len);
        Ok(bytes)
    }

    fn write_at(&self, mut at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut rest = slices;
        // Leading empty slices would make a full write look like a write of nothing.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let count = match rustix::io::pwritev(self, &rest[..rest.len().min(SLICES_MAX)], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            at += count as u64;
            IoSlice::advance_slices(&mut rest, count);
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn write_direct_at(&self, at: u64, bytes: IoSlice<'_>) -> io::Result<()> {
        if set_direct(self, true).is_err() {
            // Some file systems know no such writes.
            return DiskFile::write_at(self, at, &mut [bytes]);
        }
        let written = DiskFile::write_at(self, at, &mut [IoSlice::new(&bytes)]);
        set_direct(self, false)?;
        match written {
            // A device with larger blocks than ours, for one.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                DiskFile::write_at(self, at, &mut [bytes])
            }
            written => written,
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(self, rustix::fs::FallocateFlags::empty(), 0, len)?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

#[cfg(target_os = "linux")]
fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, direct);
    Ok(fcntl_setfl(file, flags)?)
}
