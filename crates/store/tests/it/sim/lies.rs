//! Bugs planted on purpose, to show that the simulator finds them.
//!
//! Each stands for a mistake that a log can really make. They sit between the store and the disk,
//! or between the caller and the store, so the store itself has no switch for them.

use super::disk::SimDisk;
use danube_core::WalSyncMode;
use danube_store::disk::{Disk, DiskFile};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// What waits for a sync is acknowledged without it: a journal file is never synced.
    AckBeforeSync,
    /// Progress in `fsync_batch` is acknowledged after the write, before the sync.
    ProgressBeforeSync,
    /// The directory is never synced, so a new file's name may vanish with the power.
    NoDirSync,
    /// A failed sync is tried again on the same handle, where the kernel says that all is well.
    RetriedSync,
    /// A file is cut a little too short: a repair that takes what was acknowledged.
    DeepCut,
    /// A failed write is reported as done.
    IgnoredWriteError,
}

impl Lie {
    /// All of them.
    pub const ALL: [Lie; 6] = [
        Lie::AckBeforeSync,
        Lie::ProgressBeforeSync,
        Lie::NoDirSync,
        Lie::RetriedSync,
        Lie::DeepCut,
        Lie::IgnoredWriteError,
    ];

    /// The mode that the store is asked for in place of `mode`.
    pub fn mode(lie: Option<Lie>, mode: WalSyncMode, progress: bool) -> WalSyncMode {
        match (lie, mode) {
            (Some(Lie::ProgressBeforeSync), WalSyncMode::FsyncBatch) if progress => {
                WalSyncMode::OsCacheFlush
            }
            _ => mode,
        }
    }

    /// The disk that the store gets in place of `disk`.
    pub fn disk(lie: Option<Lie>, disk: SimDisk) -> Arc<dyn Disk> {
        match lie {
            Some(lie) => Arc::new(LyingDisk { disk, lie }),
            None => Arc::new(disk),
        }
    }
}

struct LyingDisk {
    disk: SimDisk,
    lie: Lie,
}

struct LyingFile {
    file: Arc<dyn DiskFile>,
    lie: Lie,
    is_journal: bool,
}

impl LyingDisk {
    fn wrap(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Arc::new(LyingFile { file, lie: self.lie, is_journal: name.starts_with("journal") })
    }
}

impl Disk for LyingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.lie == Lie::NoDirSync { Ok(()) } else { self.disk.sync_dir(dir) }
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        self.disk.boot_id()
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.make_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.disk.lock(path)
    }
}

impl DiskFile for LyingFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(at, buffer)
    }

    fn write_at(&self, at: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        match self.file.write_at(at, slices) {
            Err(_) if self.lie == Lie::IgnoredWriteError => Ok(()),
            outcome => outcome,
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.lie == Lie::AckBeforeSync && self.is_journal {
            return Ok(());
        }
        match self.file.sync_data() {
            Err(_) if self.lie == Lie::RetriedSync => self.file.sync_data(),
            outcome => outcome,
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self.lie {
            Lie::DeepCut => self.file.set_len(len.saturating_sub(8)),
            _ => self.file.set_len(len),
        }
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.file.preallocate(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
