//! Journal files kept open, and batches read from them.
//!
//! Law: what is returned is the frame that the index meant, whole.

use super::failure::{Failure, MOVING, What};
use crate::batch::RecordBatch;
use crate::disk::{DiskFile, read_available};
use crate::extras;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind};
use crate::header::{FILE_HEADER_LEN, FileHeader, journal_new_path};
use crate::shared::Shared;
use crate::topic::{Batch, Topic};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// Most journal files kept open between reads.
const OPEN_MAX: usize = 16;
/// Bytes between two batches of a topic up to which both are read at once.
const GAP_MAX: u64 = 16 << 10;
/// Bytes of the journal read at once for several batches.
const RUN_MAX: u64 = 1 << 20;

/// Journal files kept open.
pub(crate) struct JournalFiles {
    shared: Arc<Shared>,
    /// How often files had been written again when these were opened.
    rewrites: u64,
    /// Files used last, the latest at the back.
    open: VecDeque<(u64, Arc<dyn DiskFile>)>,
}

/// Bytes of a journal file read for several batches at once.
#[derive(Default)]
pub(crate) struct Run {
    file: u64,
    at: u64,
    bytes: Bytes,
}

impl JournalFiles {
    /// None of them open.
    pub(crate) fn new(shared: Arc<Shared>) -> JournalFiles {
        JournalFiles { shared, rewrites: 0, open: VecDeque::new() }
    }

    /// The records of `batch`, one of `all` that are read in order; `run` is what was read for
    /// earlier ones.
    pub(crate) fn batch(
        &mut self,
        topic: &Topic,
        batch: &Batch,
        all: &[Batch],
        run: &mut Run,
    ) -> Result<RecordBatch, Failure> {
        let path = self.shared.path(batch.file);
        let (offset, position) = (batch.first, batch.position);
        let fail = |what| Failure { offset, path: path.clone(), position, what };
        let frame = self.frame(batch, all, run).map_err(|error| fail(What::Io(error)))?;
        frame_records(topic, batch, frame).map_err(|what| fail(What::Damaged(what)))
    }

    fn frame(&mut self, batch: &Batch, all: &[Batch], run: &mut Run) -> io::Result<Bytes> {
        let len = frame_len(batch) as usize;
        let held = (run.file == batch.file)
            .then(|| batch.position.checked_sub(run.at))
            .flatten()
            .filter(|skip| skip + len as u64 <= run.bytes.len() as u64);
        let skip = match held {
            Some(skip) => skip as usize,
            None => {
                let len = run_len(batch, all) as usize;
                // The memory of what was read before, if nobody holds on to it.
                let former = std::mem::take(&mut run.bytes).try_into_mut();
                let mut bytes = former.unwrap_or_else(|_| BytesMut::with_capacity(len));
                bytes.resize(len, 0);
                let filled = read_available(&*self.file(batch.file)?, batch.position, &mut bytes)?;
                bytes.truncate(filled);
                *run = Run { file: batch.file, at: batch.position, bytes: bytes.freeze() };
                0
            }
        };
        Ok(run.bytes.slice(skip.min(run.bytes.len())..(skip + len).min(run.bytes.len())))
    }

    fn open_now(&self, sequence: u64) -> io::Result<Arc<dyn DiskFile>> {
        let Shared { disk, options, unnamed, .. } = &*self.shared;
        let was_unnamed = unnamed.load(Acquire) == sequence;
        if was_unnamed && let Ok(file) = disk.open(&journal_new_path(&options.dir)) {
            // By now it may be the one after.
            let mut bytes = [0; FILE_HEADER_LEN];
            file.read_at(0, &mut bytes)?;
            if FileHeader::decode(&bytes).is_some_and(|header| header.sequence == sequence) {
                return Ok(file);
            }
        }
        disk.open(&self.shared.path(sequence)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if was_unnamed => io::Error::other(MOVING),
            _ => error,
        })
    }

    fn file(&mut self, sequence: u64) -> io::Result<Arc<dyn DiskFile>> {
        let rewrites = self.shared.rewrites.load(Acquire);
        if std::mem::replace(&mut self.rewrites, rewrites) != rewrites {
            self.open.clear();
        }
        if let Some(at) = self.open.iter().position(|(open, _)| *open == sequence) {
            let entry = self.open.remove(at).expect("found just now");
            self.open.push_back(entry);
        } else {
            let file = self.open_now(sequence)?;
            if self.open.len() >= OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back((sequence, file));
        }
        Ok(Arc::clone(&self.open.back().expect("pushed just now").1))
    }
}

fn frame_len(batch: &Batch) -> u64 {
    FRAME_HEADER_LEN as u64 + u64::from(batch.payload_len)
}

/// How much to read for `batch` so that those after it that are near come along.
fn run_len(batch: &Batch, all: &[Batch]) -> u64 {
    let mut end = batch.position + frame_len(batch);
    let at = all.partition_point(|other| other.first <= batch.first);
    for next in &all[at..] {
        let near = next.file == batch.file && next.position >= end && next.position - end < GAP_MAX;
        let next_end = next.position + frame_len(next);
        if !near || next_end - batch.position > RUN_MAX {
            break;
        }
        end = next_end;
    }
    end - batch.position
}

fn frame_records(topic: &Topic, batch: &Batch, frame: Bytes) -> Result<RecordBatch, &'static str> {
    if (frame.len() as u64) < frame_len(batch) {
        return Err("the file ends within a frame");
    }
    let header = frame
        .first_chunk()
        .and_then(|bytes| FrameHeader::decode(bytes, batch.file))
        .ok_or("a frame's header does not hold")?;
    let meant = header.kind == FrameKind::Messages
        && (header.topic, header.first, header.count) == (topic.id.0, batch.first, batch.count);
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
