//! From full journal files into segments, one topic at a time.
//!
//! Small segments at a topic's end are written again together with what follows, so that a topic
//! that gets little has few files, and no message is copied often. One in which almost everything
//! is finished, and may go, is written again without that.
//!
//! Law: a message leaves the journal only into a segment that is durable, or because every
//! subscription has finished it and the topic's retention lets it go, or by age or size.

use crate::disk::Disk;
use crate::error::ReadError;
use crate::reader::{Failure, JournalFiles, Run};
use crate::segment::{OpenSegment, SegmentId, SegmentRef, SegmentWriter};
use crate::shared::Shared;
use crate::topic::{Batch, Topic, TopicState};
use crate::trim::{Extent, Finished, is_done, is_sparse, keep_from};
use danube_core::{Retention, WallMs};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Segments up to this size are always written again with what follows, in bytes.
const SMALL_BYTES: u64 = 64 << 10;
/// A larger one is if it is no larger than this many times what follows.
const GROWTH: u64 = 2;

/// Bytes that a segment has beside those of a batch's payload.
const BATCH_BYTES: u64 = 64;

/// Why a topic could not be archived now.
#[derive(Debug)]
pub(crate) struct ArchiveError {
    /// On which file.
    pub path: PathBuf,
    /// What the operating system said.
    pub error: io::Error,
}

/// What is to become of a topic.
struct Work {
    /// Segments that are written again or go, each with its place among the topic's.
    merged: Vec<(usize, SegmentRef)>,
    /// Segments that the topic has.
    segments: usize,
    /// Batches that leave the journal.
    batches: Vec<Batch>,
    /// Offset below which age and size let everything go.
    keep_from: u64,
    retention: Retention,
    finished: Finished,
    /// Whether anything may be left out at all.
    trims: bool,
}

/// Moves what `topic` has in journal files below `settle_below` into segments of `generation`,
/// and lets go what its retention does not keep. Segments that are not the topic's any more are
/// added to `replaced`; they are needed until the next checkpoint. Returns whether it wrote any.
pub(crate) fn archive(
    shared: &Arc<Shared>,
    files: &mut JournalFiles,
    topic: &Topic,
    settle_below: u64,
    generation: u64,
    now: WallMs,
    replaced: &mut Vec<PathBuf>,
) -> Result<bool, ArchiveError> {
    let Some(work) = plan(shared, topic, settle_below, now) else { return Ok(false) };
    let rest = work.bytes();
    let mut copy = Copy { shared, topic, generation, open: None, made: Vec::new(), rest };
    let copied = copy.all(&work, files);
    let made = match copied.and_then(|()| copy.close()) {
        Ok(()) => copy.made,
        Err(error) => {
            if let Some(open) = copy.open.take() {
                open.discard(&*shared.disk);
            }
            let made = copy.made.iter().map(|it| SegmentId::new(topic.id, it));
            shared.leavings.lock().extend(made.map(|id| id.path(&shared.options.dir)));
            return Err(error);
        }
    };
    let wrote = !made.is_empty();
    swap(shared, topic, &work, made, replaced);
    Ok(wrote)
}

fn plan(shared: &Shared, topic: &Topic, settle_below: u64, now: WallMs) -> Option<Work> {
    let state = topic.state.lock();
    if state.forgotten {
        return None;
    }
    let due = state.index.partition_point(|batch| batch.file < settle_below);
    let batches: Vec<Batch> = state.index.range(..due).copied().collect();
    if batches.is_empty() && (state.segments.is_empty() || state.retention.is_none()) {
        return None;
    }
    let trims =
        state.retention.is_some() && state.subscriptions.is_some() && state.damage.is_none();
    let retention = state.retention.filter(|_| trims).unwrap_or(Retention::FOREVER);
    let finished = Finished::new(progress(&state));
    let keep_from = if trims { keep_from(&retention, &extents(&state), &finished, now) } else { 0 };
    let touched = |it: &SegmentRef| {
        it.end <= keep_from
            || is_done(&retention, &extent_of(it), &finished)
            || is_sparse(&retention, &extent_of(it), it.records, &finished)
    };
    let follows = batches.iter().map(|batch| u64::from(batch.payload_len)).sum();
    let segments: Vec<SegmentRef> = state.segments.iter().copied().collect();
    let merge = merge_from(&segments, follows, shared.options.segment_bytes_max);
    let placed = segments.into_iter().enumerate();
    let merged: Vec<_> = placed.filter(|(at, it)| *at >= merge || touched(it)).collect();
    if merged.is_empty() && batches.is_empty() {
        return None;
    }
    let segments = state.segments.len();
    Some(Work { merged, segments, batches, keep_from, retention, finished, trims })
}

/// Index of the first segment that is to be written again together with `follows` new bytes.
fn merge_from(segments: &[SegmentRef], mut follows: u64, bytes_max: u64) -> usize {
    let mut at = segments.len();
    while at > 0 && follows > 0 {
        let bytes = segments[at - 1].bytes;
        let small = bytes <= SMALL_BYTES || bytes <= follows.saturating_mul(GROWTH);
        if !small || bytes + follows > bytes_max {
            break;
        }
        follows += bytes;
        at -= 1;
    }
    at
}

fn progress(state: &TopicState) -> Vec<danube_core::subscription::Progress> {
    let known = state.subscriptions.iter().flatten();
    known.map(|(id, start)| state.subscription(*id, *start)).collect()
}

fn extent_of(segment: &SegmentRef) -> Extent {
    let SegmentRef { base, end, bytes, last_time, .. } = *segment;
    Extent { base, end, bytes, last_time }
}

/// All that a topic has: its segments, then what each journal file has of it.
fn extents(state: &TopicState) -> Vec<Extent> {
    let mut extents: Vec<Extent> = state.segments.iter().map(extent_of).collect();
    let mut file = None;
    for batch in &state.index {
        let bytes = u64::from(batch.payload_len);
        match extents.last_mut() {
            Some(last) if file == Some(batch.file) => {
                (last.end, last.last_time) = (batch.end(), batch.time);
                last.bytes += bytes;
            }
            _ => {
                let (base, end, last_time) = (batch.first, batch.end(), batch.time);
                extents.push(Extent { base, end, bytes, last_time });
            }
        }
        file = Some(batch.file);
    }
    extents
}

impl Work {
    /// About how many bytes all of it takes.
    fn bytes(&self) -> u64 {
        let merged: u64 = self.merged.iter().map(|(_, segment)| segment.bytes).sum();
        let batches = self.batches.iter();
        let added: u64 = batches.map(|batch| u64::from(batch.payload_len) + BATCH_BYTES).sum();
        merged + added
    }

    /// The first offset from `offset` on that is kept.
    fn next_kept(&self, offset: u64) -> u64 {
        let offset = offset.max(self.keep_from);
        if self.trims && self.retention.drop_finished {
            self.finished.next_unfinished(offset)
        } else {
            offset
        }
    }
}

/// Segments being written.
struct Copy<'a> {
    shared: &'a Arc<Shared>,
    topic: &'a Topic,
    generation: u64,
    open: Option<SegmentWriter>,
    made: Vec<SegmentRef>,
    /// About how many bytes are still to come.
    rest: u64,
}

impl Copy<'_> {
    fn all(&mut self, work: &Work, files: &mut JournalFiles) -> Result<(), ArchiveError> {
        let mut follows = 0;
        for (at, segment) in &work.merged {
            if *at != follows {
                // What lies between stays, so what is made must not reach over it.
                self.close()?;
            }
            self.segment(work, segment)?;
            follows = at + 1;
        }
        if follows != work.segments {
            self.close()?;
        }
        let mut run = Run::default();
        for batch in &work.batches {
            if work.next_kept(batch.first) >= batch.end() {
                continue;
            }
            match files.batch(self.topic, batch, &work.batches, &mut run) {
                Ok(records) => self.records(work, batch.first, batch.time, &records)?,
                Err(failure) => self.lost(failure)?,
            }
        }
        Ok(())
    }

    fn segment(&mut self, work: &Work, segment: &SegmentRef) -> Result<(), ArchiveError> {
        let kept = work.next_kept(segment.base);
        if kept >= segment.end {
            return Ok(());
        }
        let id = SegmentId::new(self.topic.id, segment);
        let path = id.path(&self.shared.options.dir);
        let file = self.shared.disk.open(&path);
        let file = file.map_err(|error| ArchiveError { path: path.clone(), error })?;
        let mut refused = Ok(());
        let read = OpenSegment::open(file, id, segment).and_then(|mut open| {
            open.read(kept, &mut |block| {
                refused = self.records(work, block.header.first, block.header.time, &block.records);
                refused.is_ok()
            })
        });
        refused?;
        match read {
            Ok(()) => Ok(()),
            Err(fault) => self.lost(Failure::of_segment(path, segment.base, fault)),
        }
    }

    /// What the disk refuses now is tried again later; what is damaged stops the topic.
    fn lost(&mut self, failure: Failure) -> Result<(), ArchiveError> {
        if let Some((path, error)) = failure.io() {
            let error = io::Error::new(error.kind(), error.to_string());
            return Err(ArchiveError { path: path.clone(), error });
        }
        match crate::reader::explain(self.shared, self.topic, failure) {
            ReadError::Io { path, error, .. } => {
                Err(ArchiveError { path, error: io::Error::other(error) })
            }
            _ => Ok(()),
        }
    }

    fn records(
        &mut self,
        work: &Work,
        first: u64,
        time: u64,
        records: &[bytes::Bytes],
    ) -> Result<(), ArchiveError> {
        for (offset, record) in (first..).zip(records) {
            if work.next_kept(offset) == offset {
                self.record(offset, time, record)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, offset: u64, time: u64, record: &[u8]) -> Result<(), ArchiveError> {
        let options = &self.shared.options;
        if self.open.as_ref().is_some_and(|open| open.len() >= options.segment_bytes_max) {
            self.close()?;
        }
        let id = SegmentId { topic: self.topic.id, base: offset, generation: self.generation };
        let id = self.open.as_ref().map_or(id, SegmentWriter::id);
        let fail = |error| ArchiveError { path: id.path(&options.dir), error };
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let disk = &*self.shared.disk;
                let bytes = self.rest.min(options.segment_bytes_max);
                let begun = SegmentWriter::begin(disk, &options.dir, id, bytes).map_err(fail)?;
                self.open.insert(begun)
            }
        };
        open.push(offset, time, record).map_err(fail)
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.rest = self.rest.saturating_sub(open.len());
        let path = open.id().path(&self.shared.options.dir);
        let disk: &dyn Disk = &*self.shared.disk;
        self.made.push(open.finish(disk).map_err(|error| ArchiveError { path, error })?);
        Ok(())
    }
}

/// Puts what was made in the place of what it was made from.
fn swap(
    shared: &Shared,
    topic: &Topic,
    work: &Work,
    made: Vec<SegmentRef>,
    replaced: &mut Vec<PathBuf>,
) {
    let dir = &shared.options.dir;
    let path = |segment: &SegmentRef| SegmentId::new(topic.id, segment).path(dir);
    let mut state = topic.state.lock();
    if state.forgotten {
        replaced.extend(made.iter().map(path));
        return;
    }
    let merged: Vec<SegmentRef> = work.merged.iter().map(|(_, segment)| *segment).collect();
    replaced.extend(merged.iter().map(path));
    state.segments.retain(|segment| !merged.contains(segment));
    state.segments.extend(made);
    state.segments.make_contiguous().sort_by_key(|segment| segment.base);
    if let Some(last) = work.batches.last() {
        let settled = state.index.partition_point(|batch| batch.first <= last.first);
        state.index.drain(..settled);
        if state.index.capacity() > 4 * state.index.len() + 64 {
            state.index.shrink_to_fit();
        }
        state.settled = last.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_segments_at_the_end_are_written_again_with_what_follows() {
        let segment = |bytes| SegmentRef {
            base: 0,
            end: 1,
            generation: 1,
            bytes,
            records: 1,
            first_time: 0,
            last_time: 0,
        };
        let k = |kib: u64| kib << 10;
        let table: [(&[u64], u64, usize); 7] = [
            (&[], k(9), 0),
            (&[k(9)], 0, 1),
            (&[k(64), k(64)], 1, 0),
            (&[k(900), k(65)], k(1), 2),
            (&[k(900), k(65)], k(40), 1),
            (&[k(9000), k(900), k(300)], k(200), 1),
            (&[k(60_000), k(9_000)], k(60_000), 2),
        ];
        for (sizes, follows, expected) in table {
            let segments: Vec<SegmentRef> = sizes.iter().map(|bytes| segment(*bytes)).collect();
            assert_eq!(merge_from(&segments, follows, 64 << 20), expected, "{sizes:?} {follows}");
        }
    }
}
