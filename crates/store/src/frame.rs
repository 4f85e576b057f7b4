//! The frame: what one append, one recording of progress or one forgotten topic is on disk.
//!
//! The header has a checksum of its own, so that a reader can step over a damaged payload and
//! knows whose it was. The header's checksum starts from the file's sequence number, so that a
//! journal's bytes inside a message, or a file under a wrong name, are never taken for frames.
//! The layout is in `docs/formats/journal.md`; a golden file pins it.
//!
//! Law: a header that this module returns is whole: its checksum held, its version and kind are
//! known, its payload is within the limit.

/// Bytes of a frame before its payload.
pub(crate) const FRAME_HEADER_LEN: usize = 64;
/// Most payload bytes of one frame: an append with all its records, each with its length.
pub const FRAME_PAYLOAD_MAX: usize = 32 << 20;
/// What every frame begins with.
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"DNF1";
/// Version of the frame layout.
const FRAME_VERSION: u8 = 2;
/// Stands for the topic of the previous frame where there is none.
pub(crate) const NO_TOPIC: u32 = u32::MAX;
/// Bytes before each record of a messages frame.
pub(crate) const RECORD_LEN_BYTES: usize = 4;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Messages `first .. first + count`.
    Messages,
    /// `count` progress records.
    Progress,
    /// The topic is deleted; everything of it in the journal is void.
    TopicForgotten,
    /// Nothing but its header: what came before it is durable. Written by a clean close.
    Mark,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            FrameKind::Messages => 1,
            FrameKind::Progress => 2,
            FrameKind::TopicForgotten => 3,
            FrameKind::Mark => 4,
        }
    }

    fn parse(code: u8) -> Option<FrameKind> {
        use FrameKind::{Mark, Messages, Progress, TopicForgotten};
        [Messages, Progress, TopicForgotten, Mark].into_iter().find(|kind| kind.code() == code)
    }
}

/// Everything of a frame but its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// CRC-32C of the payload.
    pub payload_crc: u32,
    /// Bytes of the payload.
    pub payload_len: u32,
    /// Log sequence number: one more than that of the frame before.
    pub lsn: u64,
    /// First offset of the messages; 0 in other kinds.
    pub first: u64,
    /// Whose frame it is.
    pub topic: u32,
    /// The topic's epoch when it was written.
    pub epoch: u32,
    /// Messages or progress records.
    pub count: u32,
    /// Topic of the frame before, so that a damaged header still has a witness; [`NO_TOPIC`] if
    /// the writer knew of none.
    pub previous: u32,
    /// What the payload is.
    pub kind: FrameKind,
    /// The offsets between the topic's frame before and this one were promised but never
    /// written, so their absence is no damage.
    pub jump: bool,
    /// It was acknowledged after a sync only, and so was everything of the topic in its group.
    pub synced_mode: bool,
    /// What is beside the messages comes before them in the payload.
    pub extras: bool,
    /// The frame before has extras too, so other topics than [`previous`](Self::previous) may have
    /// lost something with it.
    pub previous_extras: bool,
    /// Its log sequence number minus the first one that was not known to be durable when it was
    /// framed; saturating, which only says that less was known.
    pub unsynced: u32,
    /// When it was framed, in milliseconds since the Unix epoch; never less than that of the
    /// topic's frame before.
    pub time: u64,
}

impl FrameHeader {
    /// Bytes as they stand in journal file `file`.
    pub(crate) fn encode(&self, file: u64) -> [u8; FRAME_HEADER_LEN] {
        let mut bytes = [0; FRAME_HEADER_LEN];
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[8..12].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.lsn.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.topic.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.count.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.previous.to_le_bytes());
        bytes[48] = self.kind.code();
        bytes[49] = u8::from(self.jump)
            | u8::from(self.synced_mode) << 1
            | u8::from(self.extras) << 2
            | u8::from(self.previous_extras) << 3;
        bytes[50] = FRAME_VERSION;
        bytes[52..56].copy_from_slice(&self.unsynced.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.time.to_le_bytes());
        let crc = header_crc(&bytes, file);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header of journal file `file`; `None` for anything that is not a whole one.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_LEN], file: u64) -> Option<FrameHeader> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes[..4] != FRAME_MAGIC || u32_at(4) != header_crc(bytes, file) {
            return None;
        }
        let known = bytes[50] == FRAME_VERSION && bytes[49] <= 15 && bytes[51] == 0;
        if !known || u32_at(12) as usize > FRAME_PAYLOAD_MAX {
            return None;
        }
        Some(FrameHeader {
            payload_crc: u32_at(8),
            payload_len: u32_at(12),
            lsn: u64_at(16),
            first: u64_at(24),
            topic: u32_at(32),
            epoch: u32_at(36),
            count: u32_at(40),
            previous: u32_at(44),
            kind: FrameKind::parse(bytes[48])?,
            jump: bytes[49] & 1 != 0,
            synced_mode: bytes[49] & 2 != 0,
            extras: bytes[49] & 4 != 0,
            previous_extras: bytes[49] & 8 != 0,
            unsynced: u32_at(52),
            time: u64_at(56),
        })
    }

    /// Everything below this log sequence number was durable when this frame was written.
    pub(crate) fn durable_below(&self) -> u64 {
        self.lsn.saturating_sub(u64::from(self.unsynced))
    }

    /// Bytes of the whole frame.
    pub(crate) fn frame_len(&self) -> u64 {
        FRAME_HEADER_LEN as u64 + u64::from(self.payload_len)
    }

    /// Whether `payload` is what was written.
    pub(crate) fn holds(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_len as usize && crc32c::crc32c(payload) == self.payload_crc
    }
}

fn header_crc(bytes: &[u8; FRAME_HEADER_LEN], file: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&file.to_le_bytes()), &bytes[8..])
}

/// Whether `payload` is exactly `count` records, each behind its length, and not none.
pub(crate) fn messages_are_whole(mut payload: &[u8], count: u32) -> bool {
    for _ in 0..count {
        let Some((len, rest)) = payload.split_first_chunk::<RECORD_LEN_BYTES>() else {
            return false;
        };
        let Some(rest) = rest.get(u32::from_le_bytes(*len) as usize..) else { return false };
        payload = rest;
    }
    count > 0 && payload.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FrameHeader {
        FrameHeader {
            payload_crc: 0x0102_0304,
            payload_len: 9,
            lsn: 10,
            first: 11,
            topic: 12,
            epoch: 13,
            count: 14,
            previous: 15,
            kind: FrameKind::Messages,
            jump: false,
            synced_mode: true,
            extras: true,
            previous_extras: true,
            unsynced: 3,
            time: 16,
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed_and_so_is_a_wrong_file() {
        let bytes = header().encode(5);
        assert_eq!(FrameHeader::decode(&bytes, 5), Some(header()));
        assert_eq!(FrameHeader::decode(&bytes, 6), None);
        for bit in 0..FRAME_HEADER_LEN * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::decode(&damaged, 5), None, "bit {bit}");
        }
    }
}
