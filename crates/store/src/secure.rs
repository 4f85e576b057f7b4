//! Making durable what a crashed process left in the newest journal file.
//!
//! Its last sync may have failed, after which the kernel takes pages for written that are not, and
//! a sync that succeeds now says nothing of them. So what counts is copied into a new file, with a
//! mark at its end, that takes the old one's name once it is durable.
//!
//! Law: the old file keeps its name until the copy is durable.

use crate::disk::{Disk, read_available};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, NO_TOPIC};
use crate::header::journal_new_path;
use crate::listing::Found;
use std::io::{self, IoSlice};
use std::path::Path;

/// Bytes copied at once.
const CHUNK: u64 = 1 << 20;

/// The mark that everything below `lsn` is durable; `lost` if a power loss may have taken
/// acknowledged messages before it.
pub(crate) fn mark(lsn: u64, previous: u32, lost: bool) -> FrameHeader {
    FrameHeader {
        payload_crc: 0,
        payload_len: 0,
        lsn,
        first: 0,
        topic: NO_TOPIC,
        epoch: 0,
        count: 0,
        previous,
        kind: FrameKind::Mark,
        jump: lost,
        synced_mode: false,
        unsynced: 0,
        time: 0,
    }
}

/// Puts the first `len` bytes of `found`, and `mark` behind them, in the place of it.
pub(crate) fn secure(
    disk: &dyn Disk,
    dir: &Path,
    found: &Found,
    len: u64,
    mark: &FrameHeader,
) -> io::Result<()> {
    let temporary = journal_new_path(dir);
    let _ = disk.remove(&temporary);
    let from = disk.open(&found.path)?;
    let to = disk.create(&temporary)?;
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
    let bytes: [u8; FRAME_HEADER_LEN] = mark.encode(found.sequence);
    to.write_at(at, &mut [IoSlice::new(&bytes)])?;
    to.sync_data()?;
    disk.rename(&temporary, &found.path)?;
    disk.sync_dir(dir)
}
