//! One process per data directory.
//!
//! The lock is the operating system's, on an open file, so it ends with the process however that
//! ends; the file itself stays and means nothing.

use crate::error::OpenError;
use std::fs::{File, TryLockError};
use std::path::Path;

/// Name of the file that carries the lock.
const LOCK_FILE: &str = "LOCK";

/// Held as long as this process may write in the directory.
#[derive(Debug)]
pub(crate) struct DirLock(#[expect(dead_code, reason = "its being open is the lock")] File);

impl DirLock {
    /// Takes the lock of `dir`, or says who is in the way.
    pub(crate) fn take(dir: &Path) -> Result<DirLock, OpenError> {
        let path = dir.join(LOCK_FILE);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| OpenError::io("make", &path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(DirLock(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { dir: dir.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(OpenError::io("lock", &path, &error)),
        }
    }
}
