//! Segments of the first kind: messages in blocks.
//!
//! Law: no bytes make it panic, stand still or take more memory than a chunk; nothing leaves here
//! whose checksum does not hold.

use super::read::{damaged, read_footer};
use super::{
    BLOCK_HEADER_LEN, Block, BlockHeader, FOOTER_LEN, INDEX_ENTRY_LEN, IndexEntry, SegmentFault,
    SegmentId, SegmentRef, decode_index,
};
use crate::batch::RecordBatch;
use crate::disk::{DiskFile, read_available};
use crate::frame::FRAME_PAYLOAD_MAX;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Bytes read at once where a read begins.
const CHUNK_FIRST: usize = 128 << 10;
/// Bytes read at once where reads go on in order.
pub(super) const CHUNK_NEXT: usize = 1 << 20;

/// An open segment with its index, and the bytes read ahead.
pub(crate) struct Blocks {
    id: SegmentId,
    file: Arc<dyn DiskFile>,
    index: Vec<IndexEntry>,
    /// Byte where the blocks end.
    blocks_end: u64,
    ahead: Bytes,
    ahead_at: u64,
    /// Where the last read ended: offset and byte.
    left_off: (u64, u64),
}

impl Blocks {
    /// Reads footer and index of `file`, which is to be `segment` of its topic.
    pub(super) fn open(
        file: Arc<dyn DiskFile>,
        id: SegmentId,
        segment: &SegmentRef,
    ) -> Result<Blocks, SegmentFault> {
        let footer_at = segment.bytes.saturating_sub(FOOTER_LEN as u64);
        let footer = read_footer(&*file, &id, footer_at)?;
        let len = u64::from(footer.entries) * INDEX_ENTRY_LEN as u64;
        let fits = footer.index_at.checked_add(len) == Some(footer_at);
        if !fits || (footer.end, footer.records) != (segment.end, segment.records) {
            return Err(damaged(footer_at, "its footer is another segment's"));
        }
        let mut bytes = vec![0; len as usize];
        let filled = read_available(&*file, footer.index_at, &mut bytes)?;
        let holds = filled == bytes.len() && crc32c::crc32c(&bytes) == footer.index_crc;
        let index = decode_index(&bytes).filter(|_| holds);
        let index = index.ok_or_else(|| damaged(footer.index_at, "its index does not hold"))?;
        let blocks_end = footer.index_at;
        let (ahead, left_off) = (Bytes::new(), (0, 0));
        Ok(Blocks { id, file, index, blocks_end, ahead, ahead_at: 0, left_off })
    }

    /// What there is of segment `id` in `file`, where footer or index do not hold: its blocks can
    /// be walked, and not searched.
    pub(super) fn bare(
        file: Arc<dyn DiskFile>,
        id: SegmentId,
        segment: &SegmentRef,
    ) -> Result<Blocks, SegmentFault> {
        let len = file.len()?;
        let blocks_end =
            match read_footer(&*file, &id, segment.bytes.saturating_sub(FOOTER_LEN as u64)) {
                Ok(footer) => footer.index_at.min(len),
                // What is behind the last block is no block.
                Err(SegmentFault::Damaged { .. }) => len,
                Err(fault) => return Err(fault),
            };
        let (ahead, left_off) = (Bytes::new(), (0, 0));
        Ok(Blocks { id, file, index: Vec::new(), blocks_end, ahead, ahead_at: 0, left_off })
    }

    /// Byte where the blocks end.
    pub(super) fn end(&self) -> u64 {
        self.blocks_end
    }

    /// As [`OpenSegment::read`](super::OpenSegment::read).
    pub(super) fn read(
        &mut self,
        from: u64,
        take: &mut dyn FnMut(Block) -> bool,
    ) -> Result<(), SegmentFault> {
        let at = self.index.partition_point(|entry| entry.first <= from).saturating_sub(1);
        let mut position = self.index[at].position;
        let goes_on = self.left_off.0 <= from && self.left_off.1 > position;
        if goes_on {
            position = self.left_off.1;
        }
        let mut chunk = if goes_on { CHUNK_NEXT } else { CHUNK_FIRST };
        while position < self.blocks_end {
            let header = self.header(position, chunk)?;
            chunk = CHUNK_NEXT;
            let end = header.first + u64::from(header.count);
            if end > from {
                let batch = self.batch(position, &header)?;
                if !take(Block { header, batch }) {
                    return Ok(());
                }
            }
            position += header.block_len();
            // A block that was taken in part only is not behind the next read.
            self.left_off = (end, position);
        }
        Ok(())
    }

    /// As [`OpenSegment::offset_at`](super::OpenSegment::offset_at).
    pub(super) fn offset_at(&mut self, at: u64) -> Result<Option<u64>, SegmentFault> {
        // The entry before the first one that is late enough may have such a block behind it.
        let entry = self.index.partition_point(|entry| entry.time < at).saturating_sub(1);
        let mut position = self.index[entry].position;
        while position < self.blocks_end {
            let header = self.header(position, CHUNK_FIRST)?;
            if header.time >= at {
                return Ok(Some(header.first));
            }
            position += header.block_len();
        }
        Ok(None)
    }

    /// Searches from byte `at` on for the header of a block whose first message is one of
    /// `offsets`.
    pub(super) fn next_header(
        &mut self,
        mut at: u64,
        offsets: &Range<u64>,
    ) -> Result<Option<u64>, SegmentFault> {
        let id = self.id;
        let is_header = |bytes: &[u8]| {
            let bytes = bytes.first_chunk();
            // Checksums are dear where there is one for each byte of the file.
            let bytes = bytes.filter(|bytes| offsets.contains(&BlockHeader::first_in(bytes)));
            bytes.is_some_and(|bytes| BlockHeader::decode(bytes, &id).is_some())
        };
        while at + BLOCK_HEADER_LEN as u64 <= self.blocks_end {
            self.bytes(at, BLOCK_HEADER_LEN, CHUNK_NEXT)?;
            let ahead = &self.ahead[(at - self.ahead_at) as usize..];
            match ahead.windows(BLOCK_HEADER_LEN).position(is_header) {
                Some(skip) => return Ok(Some(at + skip as u64)),
                // A header may begin in the last bytes.
                None => at += (ahead.len() - BLOCK_HEADER_LEN + 1) as u64,
            }
        }
        Ok(None)
    }

    /// The header of the block at `position`; reads up to `chunk` bytes with it.
    pub(super) fn header(
        &mut self,
        position: u64,
        chunk: usize,
    ) -> Result<BlockHeader, SegmentFault> {
        let bytes = self.bytes(position, BLOCK_HEADER_LEN, chunk)?;
        let header = bytes.first_chunk().and_then(|bytes| BlockHeader::decode(bytes, &self.id));
        let header = header.ok_or_else(|| damaged(position, "a block's header does not hold"))?;
        let fits = header.payload_len as usize <= FRAME_PAYLOAD_MAX
            && position + header.block_len() <= self.blocks_end
            && header.count > 0
            && header.first.checked_add(u64::from(header.count)).is_some();
        if fits { Ok(header) } else { Err(damaged(position, "a block does not fit")) }
    }

    /// The records of the block at `position` that has `header`.
    pub(super) fn batch(
        &mut self,
        position: u64,
        header: &BlockHeader,
    ) -> Result<RecordBatch, SegmentFault> {
        let at = position + BLOCK_HEADER_LEN as u64;
        let payload = self.bytes(at, header.payload_len as usize, CHUNK_NEXT)?;
        if crc32c::crc32c(&payload) != header.payload_crc {
            return Err(damaged(position, "a block's payload does not match its checksum"));
        }
        RecordBatch::parse(payload, 0, header.count, header.payload_crc)
            .ok_or_else(|| damaged(position, "a block's records do not fit"))
    }

    /// `want` bytes from `at`, out of what was read ahead or with up to `chunk` bytes more.
    fn bytes(&mut self, at: u64, want: usize, chunk: usize) -> Result<Bytes, SegmentFault> {
        let held = at.checked_sub(self.ahead_at).map(|skip| skip as usize);
        let held = held.filter(|skip| skip + want <= self.ahead.len());
        if held.is_none() {
            let left = usize::try_from(self.blocks_end.saturating_sub(at)).unwrap_or(usize::MAX);
            let mut bytes = vec![0; want.max(chunk).min(left)];
            let filled = read_available(&*self.file, at, &mut bytes)?;
            bytes.truncate(filled);
            if filled < want {
                return Err(damaged(at, "the file ends within a block"));
            }
            (self.ahead, self.ahead_at) = (Bytes::from(bytes), at);
        }
        let skip = (at - self.ahead_at) as usize;
        Ok(self.ahead.slice(skip..skip + want))
    }
}
