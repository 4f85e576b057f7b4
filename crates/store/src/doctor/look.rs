//! A disk that lets itself be looked at and refuses every change.
//!
//! Recovery tidies up as it goes (a file never begun, a second copy of the checkpoint) and goes
//! on when it cannot; so on this disk it only says what it sees.

use crate::disk::{Disk, DiskFile};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk behind it, unchanged.
pub(crate) struct LookOnly(pub Arc<dyn Disk>);

struct LookFile(Arc<dyn DiskFile>);

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::PermissionDenied.into())
}

impl Disk for LookOnly {
    fn create(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        refused()
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(LookFile(self.0.open(path)?)))
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        match self.0.list(dir) {
            // A directory without segments was never filled.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn make_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send + Sync>> {
        refused()
    }

    fn boot_id(&self) -> Option<[u8; 16]> {
        self.0.boot_id()
    }
}

impl DiskFile for LookFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(at, buffer)
    }

    fn write_at(&self, _: u64, _: &mut [IoSlice<'_>]) -> io::Result<()> {
        refused()
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn preallocate(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}
