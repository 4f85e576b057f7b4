//! Writing a segment, front to back.
//!
//! Law: the file has its name only once all of it is durable.

use super::{
    BLOCK_HEADER_LEN, BlockHeader, FOOTER_LEN, Footer, HEADER_LEN, IndexEntry, SegmentId,
    SegmentRef, encode_index,
};
use crate::aligned::AlignedBuffer;
use crate::batch::RecordBatch;
use crate::disk::{DIRECT_ALIGN, Disk, DiskFile};
use crate::room::is_full;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most payload bytes of a block with more than one message.
const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of blocks from one index entry to the next.
const INDEX_STEP: u64 = 64 << 10;
/// Size from which on room is reserved before anything is written, and writes go past the operating
/// system's cache, in bytes: what is old is not to take the place of what is new there.
const LARGE_MIN: u64 = 64 << 10;
/// Bytes written before they are made durable.
const SYNC_BYTES: u64 = 4 << 20;
/// Most bytes gathered before they are written: few, so that the journal's syncs never wait long
/// behind them.
const WRITE_BYTES: usize = 128 << 10;

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
    /// Bytes gathered before they are written.
    write_from: usize,
    buffer: AlignedBuffer,
    /// Whether writes have to be of whole units.
    direct: bool,
    block: Option<OpenBlock>,
    index: Vec<IndexEntry>,
    end: u64,
    records: u64,
    first_time: u64,
    last_time: u64,
}

/// The block that messages are added to.
struct OpenBlock {
    /// Where its header is in the buffer.
    place: usize,
    /// What that is to say.
    header: BlockHeader,
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
        let direct = bytes >= LARGE_MIN;
        let file = disk.create(&temporary)?;
        let reserved = if direct { file.preallocate(bytes) } else { Ok(()) };
        if let Err(error) = reserved
            && is_full(&error)
        {
            let _ = disk.remove(&temporary);
            return Err(error);
        }
        let most = WRITE_BYTES + BLOCK_BYTES + DIRECT_ALIGN;
        let expected = usize::try_from(bytes).map_or(most, |bytes| bytes.min(most));
        let mut buffer = AlignedBuffer::with_capacity(expected);
        buffer.push(&id.encode_header(None));
        Ok(SegmentWriter {
            id,
            temporary,
            path,
            file,
            written: 0,
            synced: 0,
            write_from: WRITE_BYTES,
            buffer,
            direct,
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

    /// From now on, writes what is gathered where that is `bytes` or more.
    pub(crate) fn write_from(&mut self, bytes: u64) {
        self.write_from = usize::try_from(bytes).map_or(WRITE_BYTES, |it| it.min(WRITE_BYTES));
    }

    /// Adds messages that follow one another: those of `range` of `batch`, the first of which has
    /// offset `first`. Offsets rise; times do not fall.
    pub(crate) fn push(
        &mut self,
        mut first: u64,
        time: u64,
        batch: &RecordBatch,
        range: Range<usize>,
    ) -> io::Result<()> {
        let mut at = range.start;
        while at < range.end {
            let goes_on = |open: &OpenBlock| {
                let OpenBlock { header, .. } = open;
                let follows = header.first + u64::from(header.count) == first;
                follows && header.time == time && (header.payload_len as usize) < BLOCK_BYTES
            };
            if !self.block.as_ref().is_some_and(goes_on) {
                self.close_block();
                if self.buffer.len() >= self.write_from {
                    self.flush()?;
                }
            }
            let block = match &mut self.block {
                Some(block) => block,
                None => self.open_block(first, time),
            };
            let room = BLOCK_BYTES.saturating_sub(block.header.payload_len as usize);
            let count = batch.within(at, room).min(range.end - at);
            let run = batch.run(at..at + count);
            // A frame's limit keeps count and length far below 2^32.
            block.header.count += count as u32;
            block.header.payload_len += run.len() as u32;
            block.header.payload_crc = crc32c::crc32c_append(block.header.payload_crc, &run);
            self.buffer.push(&run);
            if self.records == 0 {
                self.first_time = time;
            }
            (at, first) = (at + count, first + count as u64);
            (self.end, self.records, self.last_time) = (first, self.records + count as u64, time);
        }
        Ok(())
    }

    fn open_block(&mut self, first: u64, time: u64) -> &mut OpenBlock {
        let position = self.len();
        let due = self.index.last().is_none_or(|last| position - last.position >= INDEX_STEP);
        if due {
            self.index.push(IndexEntry { first, time, position });
        }
        let header = BlockHeader { payload_crc: 0, payload_len: 0, count: 0, first, time };
        let place = self.buffer.push(&[0; BLOCK_HEADER_LEN]);
        self.block.insert(OpenBlock { place, header })
    }

    fn close_block(&mut self) {
        let Some(OpenBlock { place, header }) = self.block.take() else { return };
        self.buffer.amend(place, &header.encode(&self.id));
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.direct {
            let whole = self.buffer.whole();
            self.file.write_direct_at(self.written, whole)?;
            self.written += self.buffer.clear_whole() as u64;
        } else {
            self.file.write_at(self.written, &mut [self.buffer.all()])?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        if self.written - self.synced >= SYNC_BYTES {
            // A little at a time, for the same reason.
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
            journal: None,
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
        self.buffer.push(&index);
        self.buffer.push(&footer.encode(&self.id));
        let len = self.len();
        debug_assert!(len >= (HEADER_LEN + FOOTER_LEN) as u64);
        if self.direct {
            self.buffer.pad();
        }
        self.flush()?;
        if self.file.len()? != len {
            // More was reserved than it took, or a whole unit was written at its end.
            self.file.set_len(len)?;
        }
        self.written = len;
        self.file.sync_data()
    }
}
