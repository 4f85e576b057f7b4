//! Segments being written from batches of the journal and from older segments.
//!
//! Law: what is copied has its checksums checked; what is damaged stops its topic.

use super::ArchiveError;
use super::plan::Work;
use crate::batch::RecordBatch;
use crate::disk::Disk;
use crate::error::ReadError;
use crate::reader::{Failure, JournalFiles};
use crate::runs::Run;
use crate::segment::{BlockHeader, OpenSegment, SegmentId, SegmentRef, SegmentWriter, write_taken};
use crate::shared::Shared;
use crate::tend::Pace;
use crate::topic::{Batch, Topic};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Segments being written.
pub(super) struct Copy<'a> {
    shared: &'a Arc<Shared>,
    topic: &'a Topic,
    generation: u64,
    pace: &'a mut Pace,
    pub open: Option<SegmentWriter>,
    pub made: Vec<SegmentRef>,
    /// Whether a segment that was to be written again is damaged.
    pub spoilt: bool,
    /// About how many bytes are still to come.
    rest: u64,
}

impl<'a> Copy<'a> {
    /// Nothing yet, of about `rest` bytes.
    pub fn new(
        shared: &'a Arc<Shared>,
        topic: &'a Topic,
        generation: u64,
        pace: &'a mut Pace,
        rest: u64,
    ) -> Copy<'a> {
        let (open, made, spoilt) = (None, Vec::new(), false);
        Copy { shared, topic, generation, pace, open, made, spoilt, rest }
    }

    /// Copies everything that is kept.
    pub fn all(&mut self, work: &Work, files: &mut JournalFiles) -> Result<(), ArchiveError> {
        let mut follows = 0;
        for (at, segment) in &work.merged {
            if *at != follows {
                // What lies between stays, so what is made must not reach over it.
                self.close()?;
            }
            self.segment(work, segment)?;
            if self.spoilt {
                return Ok(());
            }
            follows = at + 1;
        }
        if follows != work.segments {
            self.close()?;
        }
        let mut run = Run::default();
        for part in work.batches.chunk_by(|a, b| a.file == b.file) {
            if work.taken.contains(&part[0].file) {
                self.take_over(part)?;
                continue;
            }
            for batch in part {
                if work.next_kept(batch.first) >= batch.end() {
                    continue;
                }
                match files.batch(self.topic, batch, &work.batches, &mut run) {
                    Ok(read) => self.messages(work, batch.first, batch.time, &read)?,
                    Err(failure) => self.lost(failure)?,
                }
            }
        }
        Ok(())
    }

    /// Leaves `part`, batches of one journal file, where they are.
    fn take_over(&mut self, part: &[Batch]) -> Result<(), ArchiveError> {
        self.close()?;
        let Shared { disk, options, .. } = &**self.shared;
        let (base, sequence) = (part[0].first, part[0].file);
        let id = SegmentId { topic: self.topic.id, base, generation: self.generation };
        let taken = write_taken(&**disk, &options.dir, id, sequence, part);
        let path = || id.path(&options.dir);
        self.made.push(taken.map_err(|error| ArchiveError { path: path(), error })?);
        Ok(())
    }

    fn segment(&mut self, work: &Work, segment: &SegmentRef) -> Result<(), ArchiveError> {
        let kept = work.next_kept(segment.base);
        if kept >= segment.end {
            return Ok(());
        }
        let id = SegmentId::new(self.topic.id, segment);
        let Shared { disk, options, .. } = &**self.shared;
        let mut refused = Ok(());
        let opened = OpenSegment::open(&**disk, &options.dir, id, segment);
        let read = opened.and_then(|mut open| {
            open.read(kept, &mut |block| {
                let BlockHeader { first, time, .. } = block.header;
                refused = self.messages(work, first, time, &block.batch);
                refused.is_ok()
            })
        });
        refused?;
        match read {
            Ok(()) => Ok(()),
            Err(fault) => {
                self.lost(Failure::of_segment(&options.dir, &id, segment.base, fault))?;
                self.spoilt = true;
                Ok(())
            }
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

    /// Copies what is kept of `batch`, run by run.
    fn messages(
        &mut self,
        work: &Work,
        first: u64,
        time: u64,
        batch: &RecordBatch,
    ) -> Result<(), ArchiveError> {
        let end = first + batch.len() as u64;
        let mut from = work.next_kept(first);
        while from < end {
            let until = work.kept_until(from, end);
            let mut at = (from - first) as usize;
            while at < (until - first) as usize {
                let left = self.left()?;
                let count = batch.within(at, left).min((until - first) as usize - at);
                self.run(first + at as u64, time, batch, at..at + count)?;
                at += count;
            }
            from = work.next_kept(until);
        }
        Ok(())
    }

    /// Bytes that the open segment may take, or the next one.
    fn left(&mut self) -> Result<usize, ArchiveError> {
        let max = self.shared.options.segment_bytes_max;
        if self.open.as_ref().is_some_and(|open| open.len() >= max) {
            self.close()?;
        }
        let len = self.open.as_ref().map_or(0, SegmentWriter::len);
        Ok(usize::try_from(max.saturating_sub(len)).unwrap_or(usize::MAX))
    }

    fn run(
        &mut self,
        first: u64,
        time: u64,
        batch: &RecordBatch,
        range: Range<usize>,
    ) -> Result<(), ArchiveError> {
        let options = &self.shared.options;
        let id = SegmentId { topic: self.topic.id, base: first, generation: self.generation };
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
        let before = open.len();
        open.write_from(self.pace.unit());
        open.push(first, time, batch, range).map_err(fail)?;
        self.pace.copied(open.len() - before);
        Ok(())
    }

    /// Ends the open segment.
    pub fn close(&mut self) -> Result<(), ArchiveError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.rest = self.rest.saturating_sub(open.len());
        let path = open.id().path(&self.shared.options.dir);
        let disk: &dyn Disk = &*self.shared.disk;
        self.made.push(open.finish(disk).map_err(|error| ArchiveError { path, error })?);
        Ok(())
    }
}
