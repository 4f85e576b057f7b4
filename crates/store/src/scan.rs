//! Reading one journal file forward, whatever its bytes are.
//!
//! Law: no bytes make it panic, take more memory than one frame, or stand still.

use crate::disk::{DiskFile, read_available};
use crate::frame::{FRAME_HEADER_LEN, FRAME_MAGIC, FrameHeader};
use std::io;
use std::sync::Arc;

/// Bytes read at once.
const WINDOW: usize = 256 << 10;
static ZEROS: [u8; 4096] = [0; 4096];

/// A file being read.
pub(crate) struct Scan {
    file: Arc<dyn DiskFile>,
    sequence: u64,
    len: u64,
    /// Frames with other log sequence numbers are not this file's, or void.
    lsn: std::ops::Range<u64>,
    window: Vec<u8>,
    window_at: u64,
}

/// What stands at a position.
pub(crate) enum Seen<'a> {
    /// A whole frame.
    Frame(FrameHeader, &'a [u8]),
    /// A whole header whose payload does not hold.
    BadPayload(FrameHeader),
    /// Anything else.
    Unreadable,
    /// The file's end.
    End,
}

impl Scan {
    /// Reads `file`, journal file `sequence`.
    pub(crate) fn new(file: Arc<dyn DiskFile>, sequence: u64) -> io::Result<Scan> {
        let len = file.len()?;
        Ok(Scan { file, sequence, len, lsn: 0..u64::MAX, window: Vec::new(), window_at: 0 })
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Takes only frames with these log sequence numbers from now on.
    pub(crate) fn accept(&mut self, lsn: std::ops::Range<u64>) {
        self.lsn = lsn;
    }

    /// Up to `want` bytes from `at`; fewer only at the end of the file.
    pub(crate) fn bytes(&mut self, at: u64, want: usize) -> io::Result<&[u8]> {
        let held = at.checked_sub(self.window_at).map(|skip| skip as usize);
        let enough = held.is_some_and(|skip| skip + want <= self.window.len());
        if !enough {
            let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
            self.window.resize(want.max(WINDOW).min(left), 0);
            self.window.shrink_to(WINDOW.max(want));
            let filled = read_available(&*self.file, at, &mut self.window)?;
            self.window.truncate(filled);
            self.window_at = at;
        }
        let skip = (at - self.window_at) as usize;
        let end = (skip + want).min(self.window.len());
        Ok(&self.window[skip..end])
    }

    /// The whole header at `at`, if there is one of the accepted frames.
    pub(crate) fn header(&mut self, at: u64) -> io::Result<Option<FrameHeader>> {
        let (sequence, lsn) = (self.sequence, self.lsn.clone());
        let bytes = self.bytes(at, FRAME_HEADER_LEN)?;
        let header = bytes.first_chunk().and_then(|bytes| FrameHeader::decode(bytes, sequence));
        Ok(header.filter(|header| lsn.contains(&header.lsn)))
    }

    /// Whether nothing but zeros stands where a header would be: so a group ends that nothing comes
    /// behind, in a new file and in one that is used again.
    pub(crate) fn is_blank(&mut self, at: u64) -> io::Result<bool> {
        Ok(self.bytes(at, FRAME_HEADER_LEN)?.iter().all(|byte| *byte == 0))
    }

    /// Looks at `at`.
    pub(crate) fn see(&mut self, at: u64) -> io::Result<Seen<'_>> {
        if at >= self.len {
            return Ok(Seen::End);
        }
        let Some(header) = self.header(at)? else { return Ok(Seen::Unreadable) };
        let payload = self.bytes(at + FRAME_HEADER_LEN as u64, header.payload_len as usize)?;
        if header.holds(payload) {
            Ok(Seen::Frame(header, payload))
        } else {
            Ok(Seen::BadPayload(header))
        }
    }

    /// Searches from `at` on for the next whole header.
    pub(crate) fn next_frame(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        while at < self.len {
            let bytes = self.ahead(at)?;
            let len = bytes.len() as u64;
            if len == 0 {
                break;
            }
            if bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()]) {
                at += len;
                continue;
            }
            let found = bytes.windows(FRAME_MAGIC.len()).position(|bytes| bytes == FRAME_MAGIC);
            match found {
                Some(skip) => {
                    at += skip as u64;
                    if self.header(at)?.is_some() {
                        return Ok(Some(at));
                    }
                    at += 1;
                }
                // The magic may begin in the window's last bytes.
                None => at += len.saturating_sub(FRAME_MAGIC.len() as u64 - 1).max(1),
            }
        }
        Ok(None)
    }

    /// All bytes from `at` on that are in memory; reads only when a header would not fit in them.
    fn ahead(&mut self, at: u64) -> io::Result<&[u8]> {
        self.bytes(at, FRAME_HEADER_LEN)?;
        Ok(&self.window[(at - self.window_at) as usize..])
    }
}
