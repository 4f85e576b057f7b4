//! The thread that reads from the disk what memory no longer has.
//!
//! What it reads stays out of the tail cache, so a reader of old history takes no memory from
//! those who follow the end; it reads ahead on its own account (`ahead`).
//!
//! Law: no byte leaves here unless its checksums hold and it is what the index meant. What does
//! not hold stops the topic; but what was moved elsewhere meanwhile is read there.

use crate::disk::Disk;
use crate::error::ReadError;
use crate::read_batch::{ReadBatch, ReadLimit};
use crate::runs::Run;
use crate::segment::{OpenSegment, SegmentFault, SegmentId, SegmentRef};
use crate::shared::{Read, Shared, Wanted, answer};
use crate::topic::{Plan, Topic};
use danube_core::Offset;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most segments kept open between reads, each with its index and what was read ahead.
const SEGMENTS_MAX: usize = 16;
mod ahead;
mod failure;
mod journal_files;

use ahead::AheadDisk;
pub(crate) use failure::{Failure, explain};
pub(crate) use journal_files::JournalFiles;

/// State of the reader thread.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// For files that change no more.
    ahead: Arc<AheadDisk>,
    files: JournalFiles,
    /// What was read of them last.
    run: Run,
    /// Segments used last, the latest at the back.
    segments: VecDeque<(SegmentId, OpenSegment)>,
}

impl Reader {
    /// A reader with no file open.
    pub(crate) fn new(shared: Arc<Shared>) -> Reader {
        let (disk, background) = (Arc::clone(&shared.disk), shared.options.background);
        let ahead = Arc::new(AheadDisk::new(disk, background));
        let files = JournalFiles::new(Arc::clone(&shared), Arc::clone(&ahead) as Arc<dyn Disk>);
        let (run, segments) = (Run::default(), VecDeque::new());
        Reader { shared, ahead, files, run, segments }
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
                // Who reads on finds in it what the last read had no room for.
                let mut run = std::mem::take(&mut self.run);
                for batch in batches {
                    match self.files.batch(topic, batch, batches, &mut run) {
                        Ok(read) => {
                            if !answer.take(batch.first, &read, limit) {
                                break;
                            }
                        }
                        // What was read is good; the next read meets the failure first.
                        Err(_) if !answer.records.is_empty() => {
                            run = Run::default();
                            break;
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                self.run = run;
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
                whole = answer.take(block.header.first, &block.batch, limit);
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
                if self.segments.len() >= SEGMENTS_MAX {
                    self.segments.pop_front();
                }
                let dir = &self.shared.options.dir;
                (id, OpenSegment::open(&*self.ahead, dir, id, segment)?)
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
        Failure::of_segment(&self.shared.options.dir, &id, offset, fault)
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
