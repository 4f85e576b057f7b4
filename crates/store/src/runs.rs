//! Frames of one topic, read from a journal file: those that are near each other at once.
//!
//! A place in the index of a topic, or of a segment that took a journal file over, says where a frame
//! is; this reads it. Which file that is, and under which name, it leaves to others.
//!
//! Law: what is returned is the frame that the index meant, whole.

use crate::batch::RecordBatch;
use crate::disk::{DiskFile, read_available, read_new_available};
use crate::extras;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind};
use crate::topic::Batch;
use bytes::Bytes;
use danube_core::TopicId;
use std::io;
use std::sync::Arc;

/// Bytes between two batches of a topic up to which both are read at once.
const GAP_MAX: u64 = 16 << 10;
/// Bytes of the journal read at once for several batches.
pub(crate) const RUN_MAX: u64 = 1 << 20;

/// Bytes of a journal file read for several batches at once.
#[derive(Default)]
pub(crate) struct Run {
    file: u64,
    at: u64,
    bytes: Bytes,
}

impl Run {
    /// Bytes of `batch` to be skipped in what is held, if that has all of it.
    fn skip(&self, batch: &Batch) -> Option<u64> {
        (self.file == batch.file)
            .then(|| batch.position.checked_sub(self.at))
            .flatten()
            .filter(|skip| skip + frame_len(batch) <= self.bytes.len() as u64)
    }

    /// Whether `batch` was read with an earlier one.
    pub(crate) fn has(&self, batch: &Batch) -> bool {
        self.skip(batch).is_some()
    }

    /// Whether `batch` comes next, so that whoever reads it reads on.
    pub(crate) fn ends_before(&self, batch: &Batch) -> bool {
        let end = self.at + self.bytes.len() as u64;
        let follows = batch.position >= end && batch.position - end < GAP_MAX;
        self.file == batch.file && !self.bytes.is_empty() && follows
    }

    /// The frame of `batch`, one of `all` that are read in order, as far as the file that `open`
    /// gives has it; with up to `most` bytes of those that follow it.
    pub(crate) fn frame(
        &mut self,
        open: impl FnOnce() -> io::Result<Arc<dyn DiskFile>>,
        batch: &Batch,
        all: &[Batch],
        most: u64,
    ) -> io::Result<Bytes> {
        let len = frame_len(batch) as usize;
        let skip = match self.skip(batch) {
            Some(skip) => skip as usize,
            None => {
                let len = run_len(batch, all, most) as usize;
                // The memory of what was read before, if nobody holds on to it.
                let former = std::mem::take(&mut self.bytes).try_into_mut();
                let bytes = match former {
                    Ok(mut bytes) if bytes.capacity() >= len => {
                        bytes.resize(len, 0);
                        let filled = read_available(&*open()?, batch.position, &mut bytes)?;
                        bytes.truncate(filled);
                        bytes.freeze()
                    }
                    _ => read_new_available(&*open()?, batch.position, len)?.into(),
                };
                *self = Run { file: batch.file, at: batch.position, bytes };
                0
            }
        };
        Ok(self.bytes.slice(skip.min(self.bytes.len())..(skip + len).min(self.bytes.len())))
    }
}

/// Bytes of the whole frame of `batch`.
pub(crate) fn frame_len(batch: &Batch) -> u64 {
    FRAME_HEADER_LEN as u64 + u64::from(batch.payload_len)
}

/// How much to read for `batch` so that those after it that are near come along.
fn run_len(batch: &Batch, all: &[Batch], most: u64) -> u64 {
    let mut end = batch.position + frame_len(batch);
    let at = all.partition_point(|other| other.first <= batch.first);
    for next in &all[at..] {
        let near = next.file == batch.file && next.position >= end && next.position - end < GAP_MAX;
        let next_end = next.position + frame_len(next);
        if !near || next_end - batch.position > most {
            break;
        }
        end = next_end;
    }
    end - batch.position
}

/// The records in `frame`, which is to be that of `batch`; else what is wrong with it.
pub(crate) fn frame_records(
    topic: TopicId,
    batch: &Batch,
    frame: Bytes,
) -> Result<RecordBatch, &'static str> {
    if (frame.len() as u64) < frame_len(batch) {
        return Err("the file ends within a frame");
    }
    let header = frame
        .first_chunk()
        .and_then(|bytes| FrameHeader::decode(bytes, batch.file))
        .ok_or("a frame's header does not hold")?;
    let meant = header.kind == FrameKind::Messages
        && (header.topic, header.first, header.count) == (topic.0, batch.first, batch.count);
    if !meant {
        return Err("another frame than the one written");
    }
    let payload = frame.slice(FRAME_HEADER_LEN..);
    if !header.holds(&payload) {
        return Err("a frame's payload does not match its checksum");
    }
    let front = if header.extras { extras::front_len(&payload) } else { Some(0) };
    front
        .and_then(|front| RecordBatch::parse(payload, front, header.count, header.payload_crc))
        .ok_or("a frame's records do not fit")
}
