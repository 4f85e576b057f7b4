//! One vectored write in the making: the frames of a group, ready for the disk.
//!
//! Small records are copied side by side; large ones stay where they are and are only pointed
//! to, so a large message is not copied on its way to the kernel.

use crate::frame::{FRAME_HEADER_LEN, FrameHeader};
use bytes::Bytes;
use std::io::IoSlice;
use std::ops::Range;

/// Records from this size on are pointed to instead of copied, in bytes.
const SHARE_MIN: usize = 16 << 10;
/// Memory kept when there is nothing to do, in bytes.
const KEEP_MAX: usize = 256 << 10;

/// Most memory taken before the records are seen, in bytes: large ones are not copied.
const EXPECT_MAX: usize = 8 << 20;

/// The frames of a group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    arena: Vec<u8>,
    parts: Vec<Part>,
    len: u64,
}

#[derive(Debug)]
enum Part {
    Copied(Range<usize>),
    Shared(Bytes),
}

impl Group {
    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds a frame of messages, with `extras` before them; length and checksum of `header` are filled in, and it is returned.
    pub(crate) fn messages(
        &mut self,
        header: FrameHeader,
        extras: &[u8],
        records: &[Bytes],
        file: u64,
    ) -> FrameHeader {
        self.frame(header, file, |group| {
            group.copied(extras);
            for record in records {
                // The frame limit keeps a record far below 4 GiB.
                group.copied(&(record.len() as u32).to_le_bytes());
                if record.len() < SHARE_MIN {
                    group.copied(record);
                } else {
                    group.len += record.len() as u64;
                    group.parts.push(Part::Shared(record.clone()));
                }
            }
        })
    }

    /// Adds a frame with `payload`; length and checksum of `header` are filled in, and it is
    /// returned.
    pub(crate) fn payload(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        file: u64,
    ) -> FrameHeader {
        self.frame(header, file, |group| group.copied(payload))
    }

    fn frame(
        &mut self,
        mut header: FrameHeader,
        file: u64,
        fill: impl FnOnce(&mut Group),
    ) -> FrameHeader {
        let at = self.arena.len();
        self.copied(&[0; FRAME_HEADER_LEN]);
        let (begin, part) = (self.len, self.parts.len() - 1);
        fill(self);
        header.payload_crc = self.checksum(part, at + FRAME_HEADER_LEN);
        header.payload_len = (self.len - begin) as u32;
        self.arena[at..at + FRAME_HEADER_LEN].copy_from_slice(&header.encode(file));
        header
    }

    /// That of everything from byte `at` of the arena on, which is in part `part`: of as much at
    /// once as lies together, which is a good deal faster than record by record.
    fn checksum(&self, part: usize, at: usize) -> u32 {
        self.parts[part..].iter().fold(0, |crc, part| match part {
            Part::Copied(range) => {
                crc32c::crc32c_append(crc, &self.arena[range.start.max(at)..range.end])
            }
            Part::Shared(bytes) => crc32c::crc32c_append(crc, bytes),
        })
    }

    fn copied(&mut self, bytes: &[u8]) {
        let begin = self.arena.len();
        self.arena.extend_from_slice(bytes);
        let end = self.arena.len();
        match self.parts.last_mut() {
            Some(Part::Copied(range)) => range.end = end,
            _ => self.parts.push(Part::Copied(begin..end)),
        }
        self.len += bytes.len() as u64;
    }

    /// The bytes as slices for one write.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Copied(range) => IoSlice::new(&self.arena[range.clone()]),
                Part::Shared(bytes) => IoSlice::new(bytes),
            })
            .collect()
    }

    /// Takes memory for a group of about `bytes` at once.
    pub(crate) fn expect(&mut self, bytes: usize) {
        self.arena.reserve_exact(bytes.min(EXPECT_MAX));
    }

    /// Makes room for the next group; memory for a large one is kept if that is `due` already.
    pub(crate) fn clear(&mut self, due: bool) {
        self.arena.clear();
        if !due {
            self.arena.shrink_to(KEEP_MAX);
        }
        self.parts.clear();
        self.len = 0;
    }
}
