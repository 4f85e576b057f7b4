//! The thread that reads from the disk what memory no longer has.
//!
//! What it reads stays out of the tail cache, so a reader of old history takes no memory from
//! those who follow the end; it reads ahead on its own account.
//!
//! Law: no byte leaves here unless its checksums hold and it is what the index meant. What does
//! not hold stops the topic; but what was moved elsewhere meanwhile is read there.

use crate::disk::{DiskFile, read_available};
use crate::error::{Damage, ReadError};
use crate::extras;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, split_messages};
use crate::header::{FILE_HEADER_LEN, FileHeader, journal_new_path};
use crate::segment::{OpenSegment, SegmentFault, SegmentId, SegmentRef};
use crate::shared::{Read, Shared, Wanted, answer};
use crate::topic::{Batch, Plan, Topic};
use crate::topic_log::{ReadBatch, ReadLimit};
use bytes::Bytes;
use danube_core::Offset;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// Most journal files kept open between reads.
const OPEN_MAX: usize = 16;
/// Most segments kept open between reads, each with its index and what was read ahead.
const SEGMENTS_MAX: usize = 16;
/// Bytes between two batches of a topic up to which both are read at once.
const GAP_MAX: u64 = 16 << 10;
/// Bytes of the journal read at once for several batches.
const RUN_MAX: u64 = 1 << 20;

/// Why something cannot be read just now that a failed sync has left in doubt.
const MOVING: &str = "it is being written again elsewhere";

/// State of the reader thread.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    files: JournalFiles,
    /// Segments used last, the latest at the back.
    segments: VecDeque<(SegmentId, OpenSegment)>,
}

/// Journal files kept open.
pub(crate) struct JournalFiles {
    shared: Arc<Shared>,
    /// How often files had been written again when these were opened.
    rewrites: u64,
    /// Files used last, the latest at the back.
    open: VecDeque<(u64, Arc<dyn DiskFile>)>,
}

/// Why something could not be read, and where.
pub(crate) struct Failure {
    offset: u64,
    path: PathBuf,
    position: u64,
    what: What,
}

/// Kinds of [`Failure`].
pub(crate) enum What {
    /// The disk refused.
    Io(io::Error),
    /// The bytes are not those that were written.
    Damaged(&'static str),
}

impl Reader {
    /// A reader with no file open.
    pub(crate) fn new(shared: Arc<Shared>) -> Reader {
        let files = JournalFiles::new(Arc::clone(&shared));
        Reader { shared, files, segments: VecDeque::new() }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while let Some(reads) = self.shared.reads.drain(usize::MAX) {
            for Read { topic, wanted } in reads {
                match wanted {
                    Wanted::Messages { from, limit, done } => {
                        let outcome = self.read(&topic, from, limit);
                        answer(Some(done), outcome);
                    }
                    Wanted::OffsetAt { time, done } => {
                        let outcome = self.offset_at(&topic, time).map(Offset);
                        answer(Some(done), outcome);
                    }
                }
            }
        }
    }

    fn read(&mut self, topic: &Topic, from: u64, limit: ReadLimit) -> Result<ReadBatch, ReadError> {
        let (mut plan, mut next) = plan(topic, from, limit)?;
        loop {
            match self.carry_out(topic, from, limit, &plan, next) {
                Ok(answer) => return Ok(answer),
                Err(failure) => {
                    // It may have moved from the journal to a segment, or be gone for good.
                    let (now, end) = self::plan(topic, from, limit)?;
                    if now == plan {
                        return Err(explain(&self.shared, topic, failure));
                    }
                    (plan, next) = (now, end);
                }
            }
        }
    }

    fn carry_out(
        &mut self,
        topic: &Topic,
        from: u64,
        limit: ReadLimit,
        plan: &Plan,
        next: u64,
    ) -> Result<ReadBatch, Failure> {
        let mut answer = ReadBatch::begin(from);
        match plan {
            Plan::Segment(segment) => self.read_segment(topic, segment, limit, &mut answer)?,
            Plan::Journal(batches) => {
                if batches.is_empty() {
                    // All of it is gone: what there was to read is behind.
                    answer.next = Offset(next.max(from));
                }
                let mut run = Run::default();
                for batch in batches {
                    match self.files.batch(topic, batch, batches, &mut run) {
                        Ok(records) => {
                            if !answer.take(batch.first, &records, limit) {
                                break;
                            }
                        }
                        // What was read is good; the next read meets the failure first.
                        Err(_) if !answer.records.is_empty() => break,
                        Err(failure) => return Err(failure),
                    }
                }
            }
        }
        answer.start = answer.records.first().map_or(answer.next, |(offset, _)| *offset);
        Ok(answer)
    }

    fn read_segment(
        &mut self,
        topic: &Topic,
        segment: &SegmentRef,
        limit: ReadLimit,
        answer: &mut ReadBatch,
    ) -> Result<(), Failure> {
        let from = answer.next.0;
        let mut whole = true;
        let read = self.segment(topic, segment).and_then(|open| {
            open.read(from, &mut |block| {
                whole = answer.take(block.header.first, &block.records, limit);
                whole
            })
        });
        match read {
            // What follows up to its end was finished and not kept.
            Ok(()) if whole => answer.next = Offset(segment.end.max(answer.next.0)),
            Ok(()) => {}
            Err(_) if !answer.records.is_empty() => {}
            Err(fault) => return Err(self.segment_failure(topic, segment, from, fault)),
        }
        Ok(())
    }

    fn segment(
        &mut self,
        topic: &Topic,
        segment: &SegmentRef,
    ) -> Result<&mut OpenSegment, SegmentFault> {
        let id = SegmentId::new(topic.id, segment);
        let entry = match self.segments.iter().position(|(open, _)| *open == id) {
            Some(at) => self.segments.remove(at).expect("found just now"),
            None => {
                let file = self.shared.disk.open(&id.path(&self.shared.options.dir))?;
                if self.segments.len() >= SEGMENTS_MAX {
                    self.segments.pop_front();
                }
                (id, OpenSegment::open(file, id, segment)?)
            }
        };
        self.segments.push_back(entry);
        Ok(&mut self.segments.back_mut().expect("pushed just now").1)
    }

    fn segment_failure(
        &mut self,
        topic: &Topic,
        segment: &SegmentRef,
        offset: u64,
        fault: SegmentFault,
    ) -> Failure {
        let id = SegmentId::new(topic.id, segment);
        self.segments.retain(|(open, _)| *open != id);
        Failure::of_segment(id.path(&self.shared.options.dir), offset, fault)
    }

    fn offset_at(&mut self, topic: &Topic, time: u64) -> Result<u64, ReadError> {
        loop {
            let state = topic.state.lock();
            check(topic, &state)?;
            let at = state.segments.partition_point(|segment| segment.last_time < time);
            let Some(segment) = state.segments.get(at).copied() else {
                return Ok(state.offset_at(time));
            };
            drop(state);
            match self.segment(topic, &segment).and_then(|open| open.offset_at(time)) {
                Ok(found) => return Ok(found.unwrap_or(segment.end)),
                Err(fault) => {
                    let failure = self.segment_failure(topic, &segment, segment.base, fault);
                    if topic.state.lock().segments.contains(&segment) {
                        return Err(explain(&self.shared, topic, failure));
                    }
                }
            }
        }
    }
}

impl JournalFiles {
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
    ) -> Result<Vec<Bytes>, Failure> {
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
                let mut bytes = vec![0; run_len(batch, all) as usize];
                let filled = read_available(&*self.file(batch.file)?, batch.position, &mut bytes)?;
                bytes.truncate(filled);
                *run = Run { file: batch.file, at: batch.position, bytes: Bytes::from(bytes) };
                0
            }
        };
        Ok(run.bytes.slice(skip.min(run.bytes.len())..(skip + len).min(run.bytes.len())))
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

fn frame_records(topic: &Topic, batch: &Batch, frame: Bytes) -> Result<Vec<Bytes>, &'static str> {
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
    let payload = if header.extras { extras::skip(payload) } else { Some(payload) };
    let records = payload.and_then(|payload| split_messages(payload, header.count));
    records.ok_or("a frame's records do not fit")
}

fn check(topic: &Topic, state: &crate::topic::TopicState) -> Result<(), ReadError> {
    if state.forgotten {
        return Err(ReadError::Forgotten(topic.id));
    }
    match &state.damage {
        Some(damage) => Err(ReadError::Damaged(damage.clone())),
        None => Ok(()),
    }
}

/// What to read for a read of `from`, and the end of the topic.
fn plan(topic: &Topic, from: u64, limit: ReadLimit) -> Result<(Plan, u64), ReadError> {
    let state = topic.state.lock();
    check(topic, &state)?;
    Ok((state.plan_read(from, limit), state.next))
}

impl Failure {
    /// That of a segment.
    pub(crate) fn of_segment(path: PathBuf, offset: u64, fault: SegmentFault) -> Failure {
        match fault {
            // A segment that is not there any more is damage, and no state of the disk.
            SegmentFault::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                Failure { offset, path, position: 0, what: What::Damaged("the segment is missing") }
            }
            SegmentFault::Io(error) => Failure { offset, path, position: 0, what: What::Io(error) },
            SegmentFault::Damaged { position, what } => {
                Failure { offset, path, position, what: What::Damaged(what) }
            }
        }
    }

    /// What the disk said, if it is its fault.
    pub(crate) fn io(&self) -> Option<(&PathBuf, &io::Error)> {
        match &self.what {
            What::Io(error) => Some((&self.path, error)),
            What::Damaged(_) => None,
        }
    }
}

/// Tells why, and stops the topic if its bytes are damaged.
pub(crate) fn explain(shared: &Shared, topic: &Topic, failure: Failure) -> ReadError {
    let Failure { offset, path, position, what } = failure;
    let mut state = topic.state.lock();
    if state.forgotten {
        return ReadError::Forgotten(topic.id);
    }
    let what = match what {
        What::Damaged(_) if shared.is_unsafe(&path) || !state.is_at(offset, &path, position) => {
            // After a failed sync the kernel may have dropped what is in memory and elsewhere.
            What::Io(io::Error::other(MOVING))
        }
        what => what,
    };
    match what {
        What::Io(error) => ReadError::Io {
            topic: topic.id,
            offset: Offset(offset),
            path,
            error: error.to_string(),
        },
        What::Damaged(what) => {
            let what = format!("{what}, offset {offset}");
            let damage = Damage { topic: topic.id, file: path, position, what };
            tracing::error!(%damage, "damage found in the log");
            state.damage.get_or_insert(damage.clone());
            ReadError::Damaged(damage)
        }
    }
}
