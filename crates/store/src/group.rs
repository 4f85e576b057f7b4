//! The frames of a group, ready for the disk.
//!
//! Law: nothing is done here record by record: a batch is laid out and its checksum known when it
//! comes.

use crate::batch::RecordBatch;
use crate::frame::FrameHeader;
use crate::gather::Gather;
use std::io::IoSlice;

/// The frames of a group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    bytes: Gather,
    frames: u64,
}

impl Group {
    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len()
    }

    /// Frames so far.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Adds a frame of messages; length and checksum of `header` are filled in, and it is
    /// returned.
    pub(crate) fn messages(
        &mut self,
        mut header: FrameHeader,
        batch: &RecordBatch,
        file: u64,
    ) -> FrameHeader {
        header.payload_crc = batch.crc();
        // A frame's limit keeps it far below 4 GiB.
        header.payload_len = batch.byte_len() as u32;
        self.bytes.copy(&header.encode(file));
        self.bytes.share(batch.payload());
        self.frames += 1;
        header
    }

    /// Adds a frame with `payload`; length and checksum of `header` are filled in, and it is
    /// returned.
    pub(crate) fn payload(
        &mut self,
        mut header: FrameHeader,
        payload: &[u8],
        file: u64,
    ) -> FrameHeader {
        header.payload_crc = crc32c::crc32c(payload);
        header.payload_len = payload.len() as u32;
        self.bytes.copy(&header.encode(file));
        self.bytes.copy(payload);
        self.frames += 1;
        header
    }

    /// The bytes as slices for one write.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        self.bytes.slices()
    }

    /// Makes room for the next group; memory for a large one is kept if that is `due` already.
    pub(crate) fn clear(&mut self, due: bool) {
        self.bytes.clear(due);
        self.frames = 0;
    }
}
