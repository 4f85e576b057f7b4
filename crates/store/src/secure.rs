//! Making durable what a crashed process left in the newest journal file.
//!
//! Its last sync may have failed, after which the kernel takes pages for written that are not, and
//! a sync that succeeds now says nothing of them. So what counts is copied into a new file, with a
//! mark at its end, that takes the old one's name once it is durable.
//!
//! Law: the old file keeps its name until the copy is durable.

use crate::disk::{Disk, read_available};
use crate::error::OpenError;
use crate::frame::{FrameHeader, FrameKind, NO_TOPIC};
use crate::header::{journal_copy_path, journal_path};
use crate::journal::Tip;
use crate::listing::Found;
use crate::room::is_full;
use std::io::{self, IoSlice};
use std::path::Path;

/// Bytes copied at once.
const CHUNK: u64 = 1 << 20;

/// The mark that everything up to `tip` is durable; `lost` if a power loss may have taken
/// acknowledged messages before it.
pub(crate) fn mark(tip: Tip, lost: bool) -> FrameHeader {
    FrameHeader {
        payload_crc: 0,
        payload_len: 0,
        lsn: tip.lsn,
        first: 0,
        topic: NO_TOPIC,
        epoch: 0,
        count: 0,
        previous: tip.topic,
        kind: FrameKind::Mark,
        jump: lost,
        synced_mode: false,
        extras: false,
        previous_extras: tip.extras,
        unsynced: 0,
        time: 0,
    }
}

/// A journal file of which the kernel may have more than the disk has.
#[derive(Debug)]
pub(crate) struct Unsecured {
    /// The newest one, or the one before it if that has no name.
    pub file: Found,
    /// Byte where what counts of it ends.
    pub end: u64,
    /// Whether it has to stay as it is: it is damaged, or all that counts of it is known to be durable.
    /// Then it is only synced, so that what was cut off behind its end cannot come back.
    pub stays: bool,
    /// The mark to be put there, if it is the newest.
    pub mark: Option<FrameHeader>,
}

impl Unsecured {
    /// Puts a durable copy of what counts in the place of it. Where there is no room for one the
    /// file itself is synced: that says nothing where an earlier sync of it has failed, but a full
    /// disk must not keep a broker from starting.
    ///
    /// # Errors
    /// [`OpenError`]: the disk refused.
    pub(crate) fn secure(self, disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
        let path = &self.file.path;
        if !self.stays {
            match self.replace(disk, dir) {
                Err(error) if is_full(&error) => {
                    let path = path.display();
                    tracing::warn!(%path, %error, "no room to copy the newest journal file; syncing it as it is");
                }
                replaced => return replaced.map_err(|error| OpenError::io("copy", path, &error)),
            }
        }
        let synced = disk.open(path).and_then(|file| file.sync_data());
        let named = synced.and_then(|()| self.name(disk, dir));
        named.map_err(|error| OpenError::io("sync", path, &error))
    }

    /// Sees to it that the file itself has its name.
    fn name(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        let path = journal_path(dir, self.file.sequence);
        if path == self.file.path {
            return Ok(());
        }
        disk.rename(&self.file.path, &path)?;
        disk.sync_dir(dir)
    }

    fn replace(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        let temporary = journal_copy_path(dir);
        let mark = self.mark.as_ref();
        let _ = disk.remove(&temporary);
        let mut copied = copy(disk, &temporary, &self.file, self.end, mark);
        if copied.as_ref().is_err_and(is_full) {
            // What was reserved and not used is given back, for the copy or for what comes.
            let _ = disk.remove(&temporary);
            disk.open(&self.file.path)?.set_len(self.end)?;
            copied = copy(disk, &temporary, &self.file, self.end, mark);
        }
        if copied.is_err() {
            let _ = disk.remove(&temporary);
        }
        copied?;
        let path = journal_path(dir, self.file.sequence);
        disk.rename(&temporary, &path)?;
        disk.sync_dir(dir)?;
        if path != self.file.path {
            let _ = disk.remove(&self.file.path);
        }
        Ok(())
    }
}

fn copy(
    disk: &dyn Disk,
    temporary: &Path,
    found: &Found,
    len: u64,
    mark: Option<&FrameHeader>,
) -> io::Result<()> {
    let from = disk.open(&found.path)?;
    let to = disk.create(temporary)?;
    let mark = mark.map(|mark| mark.encode(found.sequence));
    let mark: &[u8] = mark.as_ref().map_or(&[], |mark| mark);
    if let Err(error) = to.preallocate(len + mark.len() as u64)
        && is_full(&error)
    {
        // Rather than fill the disk to its last byte and then fail.
        return Err(error);
    }
    let mut at = 0;
    while at < len {
        let mut bytes = vec![0; CHUNK.min(len - at) as usize];
        let filled = read_available(&*from, at, &mut bytes)?;
        if filled < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_at(at, &mut [IoSlice::new(&bytes)])?;
        at += filled as u64;
    }
    if !mark.is_empty() {
        to.write_at(at, &mut [IoSlice::new(mark)])?;
    }
    to.sync_data()
}
