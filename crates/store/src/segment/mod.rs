//! Segments: what has left the journal, one topic per file, written once.
//!
//! A segment holds messages of one topic in offset order, in blocks with checksums of their own,
//! then a sparse index by offset and time, then a footer. Or its messages are in a journal file that was
//! taken over as it is, and it has an index of the frames there. Offsets that are in no block were
//! finished and not worth keeping. Which segments count is said by the checkpoint, not by the
//! directory. The layout is in `docs/formats/segment.md`; a golden file pins it.
//!
//! Law: what these decoders return is whole: its checksum held, and it belongs to this segment.

mod blocks;
mod read;
mod salvage;
mod search;
mod taken;
mod write;

pub(crate) use read::{Block, OpenSegment, SegmentFault, survey};
pub(crate) use salvage::{Flaw, salvage};
pub(crate) use taken::{
    decode_taken, encode_taken, frames_path, frames_sequence, open_frames, write_taken,
};
pub(crate) use write::SegmentWriter;

use danube_core::TopicId;
use std::path::{Path, PathBuf};

/// Bytes of the header; the first block begins here.
pub(crate) const HEADER_LEN: usize = 64;
/// Bytes of the footer.
pub(crate) const FOOTER_LEN: usize = 64;
/// Bytes of a block before its payload.
pub(crate) const BLOCK_HEADER_LEN: usize = 32;
/// Bytes of an index entry.
pub(crate) const INDEX_ENTRY_LEN: usize = 24;
/// Format version of segments with blocks.
const BLOCKS_VERSION: u32 = 1;
/// Format version of segments that took a journal file over.
pub(crate) const TAKEN_VERSION: u32 = 2;
/// Newest format version that this code writes and reads; it does the earlier ones, too.
pub const SEGMENT_VERSION: u32 = TAKEN_VERSION;
/// Directory of the segments, within that of the journal.
pub(crate) const SEGMENT_DIR: &str = "segments";

const MAGIC: &[u8; 8] = b"DANUBESG";
const FOOTER_MAGIC: &[u8; 8] = b"DANUBESF";

/// A segment as its topic and the checkpoint know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentRef {
    /// Offset of its first message.
    pub base: u64,
    /// One past the offset of its last message.
    pub end: u64,
    /// Number of the checkpoint that first had it; tells it from others with the same base.
    pub generation: u64,
    /// Size of the file in bytes, and of its frames in the journal file that it took over.
    pub bytes: u64,
    /// Messages.
    pub records: u64,
    /// Time of its first message, in milliseconds since the Unix epoch.
    pub first_time: u64,
    /// Time of its last message.
    pub last_time: u64,
    /// Sequence of the journal file that has its messages; `None` if it has them itself.
    pub journal: Option<u64>,
}

/// Which segment a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId {
    /// Whose.
    pub topic: TopicId,
    /// Offset of its first message.
    pub base: u64,
    /// As in [`SegmentRef`].
    pub generation: u64,
}

impl SegmentId {
    /// The segment of `topic` that `segment` speaks of.
    pub(crate) fn new(topic: TopicId, segment: &SegmentRef) -> SegmentId {
        SegmentId { topic, base: segment.base, generation: segment.generation }
    }

    /// Its path in data directory `dir`.
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        let SegmentId { topic, base, generation } = self;
        dir.join(SEGMENT_DIR).join(format!("{:010}-{base:020}-{generation:020}.seg", topic.0))
    }

    /// Which segment a path names; `None` for any other file.
    pub(crate) fn parse(path: &Path) -> Option<SegmentId> {
        let name = path.file_name()?.to_str()?.strip_suffix(".seg")?;
        let mut parts = name.split('-').map(|part| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then_some(part)
        });
        let mut next = |len| parts.next().flatten().filter(|part| part.len() == len);
        let (topic, base, generation) = (next(10)?, next(20)?, next(20)?);
        let id = SegmentId {
            topic: TopicId(topic.parse().ok()?),
            base: base.parse().ok()?,
            generation: generation.parse().ok()?,
        };
        parts.next().is_none().then_some(id)
    }

    /// What the checksums of its blocks begin with, so that a block of another segment is never
    /// taken for one of this.
    fn seed(&self) -> u32 {
        let crc = crc32c::crc32c(&self.topic.0.to_le_bytes());
        let crc = crc32c::crc32c_append(crc, &self.base.to_le_bytes());
        crc32c::crc32c_append(crc, &self.generation.to_le_bytes())
    }

    /// The header as it stands in the file of a segment that has taken over `journal`, if one.
    pub(crate) fn encode_header(&self, journal: Option<u64>) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let version = if journal.is_some() { TAKEN_VERSION } else { BLOCKS_VERSION };
        bytes[..8].copy_from_slice(MAGIC);
        bytes[12..16].copy_from_slice(&version.to_le_bytes());
        bytes[40..48].copy_from_slice(&journal.unwrap_or(0).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.base.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.topic.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Version, identity and, from version 2 on, journal file in a header; `None` when magic or
    /// checksum do not hold.
    pub(crate) fn decode_header(bytes: &[u8; HEADER_LEN]) -> Option<(u32, SegmentId, u64)> {
        if bytes[..8] != *MAGIC || u32_at(bytes, 8) != crc32c::crc32c(&bytes[12..]) {
            return None;
        }
        let topic = TopicId(u32_at(bytes, 32));
        let id = SegmentId { topic, base: u64_at(bytes, 16), generation: u64_at(bytes, 24) };
        Some((u32_at(bytes, 12), id, u64_at(bytes, 40)))
    }
}

/// Messages whose offsets follow one another and that have one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// CRC-32C of the payload.
    pub payload_crc: u32,
    /// Bytes of the payload: records with their lengths, as in a journal frame.
    pub payload_len: u32,
    /// Messages.
    pub count: u32,
    /// Offset of the first one.
    pub first: u64,
    /// Time of all of them.
    pub time: u64,
}

impl BlockHeader {
    /// Bytes as they stand in segment `id`.
    pub(crate) fn encode(&self, id: &SegmentId) -> [u8; BLOCK_HEADER_LEN] {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        bytes[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.count.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.time.to_le_bytes());
        let crc = crc32c::crc32c_append(id.seed(), &bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Offset of the first message in `bytes`, if those are a header.
    fn first_in(bytes: &[u8; BLOCK_HEADER_LEN]) -> u64 {
        u64_at(bytes, 16)
    }

    /// Reads the header of a block of segment `id`.
    pub(crate) fn decode(bytes: &[u8; BLOCK_HEADER_LEN], id: &SegmentId) -> Option<BlockHeader> {
        let whole = u32_at(bytes, 0) == crc32c::crc32c_append(id.seed(), &bytes[4..]);
        whole.then(|| BlockHeader {
            payload_crc: u32_at(bytes, 4),
            payload_len: u32_at(bytes, 8),
            count: u32_at(bytes, 12),
            first: u64_at(bytes, 16),
            time: u64_at(bytes, 24),
        })
    }

    /// Bytes of the whole block.
    pub(crate) fn block_len(&self) -> u64 {
        BLOCK_HEADER_LEN as u64 + u64::from(self.payload_len)
    }
}

/// Where some block begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Offset of its first message.
    pub first: u64,
    /// Its time.
    pub time: u64,
    /// Byte of the file.
    pub position: u64,
}

/// The index as bytes.
pub(crate) fn encode_index(index: &[IndexEntry]) -> Vec<u8> {
    let numbers = index.iter().flat_map(|entry| [entry.first, entry.time, entry.position]);
    numbers.flat_map(u64::to_le_bytes).collect()
}

/// The index in `bytes`; `None` when their number does not fit or the order is wrong.
pub(crate) fn decode_index(bytes: &[u8]) -> Option<Vec<IndexEntry>> {
    let (entries, rest) = bytes.as_chunks::<INDEX_ENTRY_LEN>();
    let entry = |bytes: &[u8; INDEX_ENTRY_LEN]| IndexEntry {
        first: u64_at(bytes, 0),
        time: u64_at(bytes, 8),
        position: u64_at(bytes, 16),
    };
    let index: Vec<IndexEntry> = entries.iter().map(entry).collect();
    let rises = index.is_sorted_by(|a, b| a.first < b.first && a.position < b.position);
    (rest.is_empty() && rises && !index.is_empty()).then_some(index)
}

/// The end of a segment: where the index is, and what the blocks hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    /// CRC-32C of the index.
    pub index_crc: u32,
    /// Byte where the blocks end and the index begins.
    pub index_at: u64,
    /// Entries of the index.
    pub entries: u32,
    /// As in [`SegmentRef`].
    pub end: u64,
    /// As in [`SegmentRef`].
    pub records: u64,
    /// As in [`SegmentRef`].
    pub first_time: u64,
    /// As in [`SegmentRef`].
    pub last_time: u64,
}

impl Footer {
    /// Bytes as they stand in segment `id`.
    pub(crate) fn encode(&self, id: &SegmentId) -> [u8; FOOTER_LEN] {
        let mut bytes = [0; FOOTER_LEN];
        bytes[..8].copy_from_slice(FOOTER_MAGIC);
        bytes[12..16].copy_from_slice(&self.index_crc.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.index_at.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.end.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.records.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_time.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.last_time.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.entries.to_le_bytes());
        let crc = crc32c::crc32c_append(id.seed(), &bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the footer of segment `id`.
    pub(crate) fn decode(bytes: &[u8; FOOTER_LEN], id: &SegmentId) -> Option<Footer> {
        let crc = crc32c::crc32c_append(id.seed(), &bytes[12..]);
        let whole = bytes[..8] == *FOOTER_MAGIC && u32_at(bytes, 8) == crc;
        whole.then(|| Footer {
            index_crc: u32_at(bytes, 12),
            index_at: u64_at(bytes, 16),
            end: u64_at(bytes, 24),
            records: u64_at(bytes, 32),
            first_time: u64_at(bytes, 40),
            last_time: u64_at(bytes, 48),
            entries: u32_at(bytes, 56),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests;
