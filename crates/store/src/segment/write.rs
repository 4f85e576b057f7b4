//! Writing a segment, front to back.
//!
//! Law: the file has its name only once all of it is durable.

use super::{
    BLOCK_HEADER_LEN, BlockHeader, FOOTER_LEN, Footer, HEADER_LEN, IndexEntry, SegmentId,
    SegmentRef, encode_index,
};
use crate::disk::{Disk, DiskFile};
use crate::frame::RECORD_LEN_BYTES;
use crate::room::is_full;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Payload bytes from which on a block takes no further message.
const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of blocks from one index entry to the next.
const INDEX_STEP: u64 = 64 << 10;
/// Size from which on room is reserved before anything is written, in bytes.
const RESERVE_MIN: u64 = 64 << 10;
/// Bytes written before they are made durable.
const SYNC_BYTES: u64 = 1 << 20;
/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 512 << 10;

/// A segment being written, under a name of its own until it is whole.
pub(crate) struct SegmentWriter {
    id: SegmentId,
    temporary: PathBuf,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Bytes of the file that are written.
    written: u64,
    /// Bytes of those that are durable.
    synced: u64,
    buffer: Vec<u8>,
    /// Where in `buffer` the open block begins, and what its header is to say.
    block: Option<(usize, BlockHeader)>,
    index: Vec<IndexEntry>,
    end: u64,
    records: u64,
    first_time: u64,
    last_time: u64,
}

impl SegmentWriter {
    /// Begins segment `id` in data directory `dir`, in place of one that was left half written.
    /// It will have about `bytes`: where there is not that much room, it is not begun.
    pub(crate) fn begin(
        disk: &dyn Disk,
        dir: &Path,
        id: SegmentId,
        bytes: u64,
    ) -> io::Result<SegmentWriter> {
        let path = id.path(dir);
        let temporary = path.with_extension("new");
        let _ = disk.remove(&temporary);
        let file = disk.create(&temporary)?;
        let reserved = if bytes < RESERVE_MIN { Ok(()) } else { file.preallocate(bytes) };
        if let Err(error) = reserved
            && is_full(&error)
        {
            let _ = disk.remove(&temporary);
            return Err(error);
        }
        Ok(SegmentWriter {
            id,
            temporary,
            path,
            file,
            written: 0,
            synced: 0,
            buffer: id.encode_header().to_vec(),
            block: None,
            index: Vec::new(),
            end: id.base,
            records: 0,
            first_time: 0,
            last_time: 0,
        })
    }

    /// Which segment it is.
    pub(crate) fn id(&self) -> SegmentId {
        self.id
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Adds a message. Offsets rise; times do not fall.
    pub(crate) fn push(&mut self, offset: u64, time: u64, record: &[u8]) -> io::Result<()> {
        let fits = |(begin, block): &(usize, BlockHeader)| {
            let follows = block.first + u64::from(block.count) == offset && block.time == time;
            follows && self.buffer.len() - begin < BLOCK_BYTES + BLOCK_HEADER_LEN
        };
        if !self.block.as_ref().is_some_and(fits) {
            self.close_block();
            if self.buffer.len() >= WRITE_BYTES {
                self.flush()?;
            }
            self.open_block(offset, time);
        }
        let Some((_, block)) = &mut self.block else { return Ok(()) };
        block.count += 1;
        // A frame's limit keeps a record far below 4 GiB.
        self.buffer.extend((record.len() as u32).to_le_bytes());
        self.buffer.extend(record);
        debug_assert_eq!(RECORD_LEN_BYTES, 4);
        if self.records == 0 {
            self.first_time = time;
        }
        (self.end, self.records, self.last_time) = (offset + 1, self.records + 1, time);
        Ok(())
    }

    fn open_block(&mut self, first: u64, time: u64) {
        let position = self.len();
        let due = self.index.last().is_none_or(|last| position - last.position >= INDEX_STEP);
        if due {
            self.index.push(IndexEntry { first, time, position });
        }
        let header = BlockHeader { payload_crc: 0, payload_len: 0, count: 0, first, time };
        self.block = Some((self.buffer.len(), header));
        self.buffer.extend([0; BLOCK_HEADER_LEN]);
    }

    fn close_block(&mut self) {
        let Some((begin, mut header)) = self.block.take() else { return };
        let payload = &self.buffer[begin + BLOCK_HEADER_LEN..];
        header.payload_len = payload.len() as u32;
        header.payload_crc = crc32c::crc32c(payload);
        self.buffer[begin..begin + BLOCK_HEADER_LEN].copy_from_slice(&header.encode(&self.id));
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(self.written, &mut [IoSlice::new(&self.buffer)])?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        if self.written - self.synced >= SYNC_BYTES {
            // A little at a time, so that the journal's syncs never wait behind a lot.
            self.file.sync_data()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Removes what there is of it.
    pub(crate) fn discard(self, disk: &dyn Disk) {
        let temporary = &self.temporary;
        if let Err(error) = disk.remove(temporary) {
            tracing::warn!(path = %temporary.display(), %error, "cannot remove half a segment");
        }
    }

    /// Writes index and footer, makes all of it durable and gives the file its name. The name
    /// is durable after a sync of the directory. On an error nothing is left of it.
    pub(crate) fn finish(mut self, disk: &dyn Disk) -> io::Result<SegmentRef> {
        let ended = self.end().and_then(|()| disk.rename(&self.temporary, &self.path));
        if let Err(error) = ended {
            self.discard(disk);
            return Err(error);
        }
        Ok(SegmentRef {
            base: self.id.base,
            end: self.end,
            generation: self.id.generation,
            bytes: self.written,
            records: self.records,
            first_time: self.first_time,
            last_time: self.last_time,
        })
    }

    fn end(&mut self) -> io::Result<()> {
        self.close_block();
        let index_at = self.len();
        let index = encode_index(&self.index);
        let footer = Footer {
            index_crc: crc32c::crc32c(&index),
            index_at,
            entries: self.index.len() as u32,
            end: self.end,
            records: self.records,
            first_time: self.first_time,
            last_time: self.last_time,
        };
        self.buffer.extend(index);
        self.buffer.extend(footer.encode(&self.id));
        self.flush()?;
        debug_assert!(self.written >= (HEADER_LEN + FOOTER_LEN) as u64);
        if self.file.len()? != self.written {
            // More was reserved than it took.
            self.file.set_len(self.written)?;
        }
        self.file.sync_data()
    }
}
