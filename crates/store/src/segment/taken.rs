//! Segments of the second kind: a topic's part of a journal file that was taken over as it is.
//!
//! Such a segment is an index with an entry for each frame, and has no blocks. When to write one is
//! decided in [`archive`](crate::archive); when the journal file gets its other name, and when it goes,
//! in [`tend`](crate::tend).
//!
//! Law: an entry leads to its frame or to an error. The journal file is found under either name.

use super::read::damaged;
use super::search::search;
use super::{
    Block, BlockHeader, FOOTER_LEN, Footer, HEADER_LEN, SEGMENT_DIR, SegmentFault, SegmentId,
    SegmentRef, u32_at, u64_at,
};
use crate::disk::{Disk, DiskFile, put_whole, read_available};
use crate::frame::FRAME_PAYLOAD_MAX;
use crate::header::{FILE_HEADER_LEN, journal_path};
use crate::runs::{RUN_MAX, Run, frame_len, frame_records};
use crate::topic::Batch;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of an entry.
pub(crate) const TAKEN_ENTRY_LEN: usize = 32;
/// Bytes read at once where a read begins.
const RUN_FIRST: u64 = 128 << 10;

/// Path of journal file `sequence` once segments have taken it over and nothing else needs it.
pub(crate) fn frames_path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(SEGMENT_DIR).join(format!("{sequence:020}.frames"))
}

/// Which journal file a path names that segments have taken over; `None` for any other file.
pub(crate) fn frames_sequence(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".frames")?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

/// Opens journal file `sequence`, which segments have taken over, under the name that it has now.
pub(crate) fn open_frames(
    disk: &dyn Disk,
    dir: &Path,
    sequence: u64,
) -> io::Result<Arc<dyn DiskFile>> {
    let is_missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
    let mut opened = disk.open(&frames_path(dir, sequence));
    // It gets that name only once, so the third look finds what was moved between the first two.
    for path in [journal_path(dir, sequence), frames_path(dir, sequence)] {
        if opened.as_ref().is_err_and(is_missing) {
            opened = disk.open(&path);
        }
    }
    opened
}

/// The index as bytes.
pub(crate) fn encode_taken(batches: &[Batch]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(batches.len() * TAKEN_ENTRY_LEN);
    for batch in batches {
        let numbers = [batch.first, batch.time, batch.position];
        bytes.extend(numbers.map(u64::to_le_bytes).concat());
        bytes.extend([batch.count, batch.payload_len].map(u32::to_le_bytes).concat());
    }
    bytes
}

/// The index in `bytes`, of journal file `file`; `None` when their number does not fit, the order is
/// wrong, or an entry cannot be that of a frame.
pub(crate) fn decode_taken(bytes: &[u8], file: u64) -> Option<Vec<Batch>> {
    let (entries, rest) = bytes.as_chunks::<TAKEN_ENTRY_LEN>();
    let entry = |bytes: &[u8; TAKEN_ENTRY_LEN]| Batch {
        first: u64_at(bytes, 0),
        file,
        position: u64_at(bytes, 16),
        time: u64_at(bytes, 8),
        count: u32_at(bytes, 24),
        payload_len: u32_at(bytes, 28),
    };
    let batches: Vec<Batch> = entries.iter().map(entry).collect();
    let is_one = |batch: &Batch| {
        batch.count > 0
            && batch.first.checked_add(batch.count.into()).is_some()
            && batch.payload_len as usize <= FRAME_PAYLOAD_MAX
            && batch.position >= FILE_HEADER_LEN as u64
            && batch.position.checked_add(frame_len(batch)).is_some()
    };
    let whole = rest.is_empty() && !batches.is_empty() && batches.iter().all(is_one);
    let follows =
        |a: &Batch, b: &Batch| a.end() <= b.first && a.position + frame_len(a) <= b.position;
    (whole && batches.is_sorted_by(follows)).then_some(batches)
}

/// Writes segment `id` of `batches`, all of them in journal file `sequence`. Its name is durable
/// after a sync of the directory. On an error nothing is left of it.
pub(crate) fn write_taken(
    disk: &dyn Disk,
    dir: &Path,
    id: SegmentId,
    sequence: u64,
    batches: &[Batch],
) -> io::Result<SegmentRef> {
    let (Some(first), Some(last)) = (batches.first(), batches.last()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let index = encode_taken(batches);
    let records = batches.iter().map(|batch| u64::from(batch.count)).sum();
    let footer = Footer {
        index_crc: crc32c::crc32c(&index),
        index_at: HEADER_LEN as u64,
        // A journal file has far fewer frames.
        entries: batches.len() as u32,
        end: last.end(),
        records,
        first_time: first.time,
        last_time: last.time,
    };
    let header = id.encode_header(Some(sequence));
    let bytes = [&header[..], &index, &footer.encode(&id)].concat();
    let (path, temporary) = (id.path(dir), id.path(dir).with_extension("new"));
    put_whole(disk, &path, &temporary, &bytes)?;
    Ok(segment_ref(&id, sequence, &footer, bytes.len() as u64, batches))
}

/// What footer and index say, in a file of `len` bytes.
fn segment_ref(
    id: &SegmentId,
    sequence: u64,
    footer: &Footer,
    len: u64,
    batches: &[Batch],
) -> SegmentRef {
    SegmentRef {
        base: id.base,
        end: footer.end,
        generation: id.generation,
        bytes: batches.iter().fold(len, |sum, batch| sum.saturating_add(frame_len(batch))),
        records: footer.records,
        first_time: footer.first_time,
        last_time: footer.last_time,
        journal: Some(sequence),
    }
}

/// The index of `file`, which is to be segment `id`, and the segment that it makes.
pub(super) fn read_index(
    file: &dyn DiskFile,
    id: &SegmentId,
    sequence: u64,
) -> Result<(SegmentRef, Vec<Batch>), SegmentFault> {
    let len = file.len()?;
    let footer_at = len.saturating_sub(FOOTER_LEN as u64);
    let footer = super::read::read_footer(file, id, footer_at)?;
    let index_len = footer_at.saturating_sub(HEADER_LEN as u64);
    let fits = footer.index_at == HEADER_LEN as u64
        && index_len == u64::from(footer.entries) * TAKEN_ENTRY_LEN as u64;
    if !fits {
        return Err(damaged(footer_at, "its footer is another segment's"));
    }
    let mut bytes = vec![0; index_len as usize];
    let filled = read_available(file, footer.index_at, &mut bytes)?;
    let holds = filled == bytes.len() && crc32c::crc32c(&bytes) == footer.index_crc;
    let batches = decode_taken(&bytes, sequence).filter(|_| holds);
    let batches = batches.ok_or_else(|| damaged(footer.index_at, "its index does not hold"))?;
    let meant = batches[0].first == id.base && batches.last().map(Batch::end) == Some(footer.end);
    if !meant {
        return Err(damaged(footer.index_at, "its index is another segment's"));
    }
    Ok((segment_ref(id, sequence, &footer, len, &batches), batches))
}

/// An open segment whose messages are in a journal file.
pub(crate) struct Taken {
    id: SegmentId,
    sequence: u64,
    file: Arc<dyn DiskFile>,
    batches: Vec<Batch>,
    run: Run,
}

impl Taken {
    /// Opens what `file` has the index of.
    pub(super) fn open(
        disk: &dyn Disk,
        dir: &Path,
        file: &dyn DiskFile,
        id: SegmentId,
        segment: &SegmentRef,
        sequence: u64,
    ) -> Result<Taken, SegmentFault> {
        debug_assert_eq!(segment.journal, Some(sequence), "its header was looked at");
        let (found, batches) = read_index(file, &id, sequence)?;
        if found != *segment {
            return Err(damaged(0, "it is another segment"));
        }
        let opened = open_frames(disk, dir, sequence);
        let file = opened.map_err(|error| SegmentFault::from(error).within(sequence))?;
        Ok(Taken { id, sequence, file, batches, run: Run::default() })
    }

    /// Opens segment `id` without its index: journal file `sequence` is searched for its frames.
    pub(super) fn searched(
        disk: &dyn Disk,
        dir: &Path,
        id: SegmentId,
        segment: &SegmentRef,
        sequence: u64,
    ) -> Result<Taken, SegmentFault> {
        let found = open_frames(disk, dir, sequence).and_then(|file| {
            let batches = search(Arc::clone(&file), id.topic, segment, sequence)?;
            Ok((file, batches))
        });
        let found = found.map_err(|error| SegmentFault::from(error).within(sequence));
        let (file, batches) = found?;
        Ok(Taken { id, sequence, file, batches, run: Run::default() })
    }

    /// Its frames, in order.
    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// As [`OpenSegment::read`](super::OpenSegment::read).
    pub(super) fn read(
        &mut self,
        from: u64,
        take: &mut dyn FnMut(Block) -> bool,
    ) -> Result<(), SegmentFault> {
        let Taken { batches, run, .. } = &*self;
        let begin = batches.partition_point(|batch| batch.end() <= from);
        // Who reads on wants what follows; who begins may want one message.
        let mut most = match batches.get(begin) {
            Some(batch) if !run.has(batch) && !run.ends_before(batch) => RUN_FIRST,
            _ => RUN_MAX,
        };
        for at in begin..self.batches.len() {
            if !take(self.block(at, most)?) {
                return Ok(());
            }
            most = RUN_MAX;
        }
        Ok(())
    }

    /// The frame that entry `at` means; reads up to `most` bytes for those behind it, too.
    pub(super) fn block(&mut self, at: usize, most: u64) -> Result<Block, SegmentFault> {
        let Taken { id, sequence, file, batches, run } = self;
        let batch = &batches[at];
        let frame = run.frame(|| Ok(Arc::clone(file)), batch, batches, most);
        let frame = frame.map_err(|error| SegmentFault::from(error).within(*sequence))?;
        let read = frame_records(id.topic, batch, frame)
            .map_err(|what| damaged(batch.position, what).within(*sequence))?;
        let header = BlockHeader {
            payload_crc: read.crc(),
            payload_len: batch.payload_len,
            count: batch.count,
            first: batch.first,
            time: batch.time,
        };
        Ok(Block { header, batch: read })
    }

    /// As [`OpenSegment::offset_at`](super::OpenSegment::offset_at).
    pub(super) fn offset_at(&self, at: u64) -> Option<u64> {
        let late = self.batches.partition_point(|batch| batch.time < at);
        self.batches.get(late).map(|batch| batch.first)
    }
}
