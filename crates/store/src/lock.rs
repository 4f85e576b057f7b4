//! One process per data directory.
//!
//! The lock is the operating system's, on an open file, so it ends with the process however that
//! ends; the file itself stays and means nothing.

use crate::disk::Disk;
use crate::error::OpenError;
use std::io::ErrorKind;
use std::path::Path;

/// Name of the file that carries the lock.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// Held as long as this process may write in the directory.
pub(crate) struct DirLock(
    #[expect(dead_code, reason = "its being held is the lock")] Box<dyn Send + Sync>,
);

impl DirLock {
    /// Takes the lock of `dir`, or says who is in the way.
    pub(crate) fn take(disk: &dyn Disk, dir: &Path) -> Result<DirLock, OpenError> {
        let path = dir.join(LOCK_FILE);
        match disk.lock(&path) {
            Ok(held) => Ok(DirLock(held)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(OpenError::Locked { dir: dir.to_path_buf() })
            }
            Err(error) => Err(OpenError::io("lock", &path, &error)),
        }
    }
}
