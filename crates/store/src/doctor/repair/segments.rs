//! What a repair does with segments: it finds those that hold, and takes out those that do not,
//! with the journal files that they had taken over.
//!
//! Law: a journal file that another segment needs stays where it is.

use super::super::Report;
use super::Surgery;
use crate::checkpoint;
use crate::error::OpenError;
use crate::header::journal_path;
use crate::listing::find;
use crate::segment::{
    OpenSegment, SEGMENT_DIR, SegmentFault, SegmentId, SegmentRef, frames_path, survey,
};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

impl Surgery<'_> {
    /// Everything in the directory of segments.
    pub(super) fn list_segments(&self) -> Result<Vec<PathBuf>, OpenError> {
        let dir = self.dir.join(SEGMENT_DIR);
        match self.disk.list(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed.map_err(|error| self.fail("list", &dir, &error)),
        }
    }

    /// All segments that hold, the newest generation first.
    pub(super) fn find_segments(&self) -> Result<Vec<(SegmentId, SegmentRef)>, OpenError> {
        let mut found = Vec::new();
        for path in self.list_segments()? {
            let Some(id) = SegmentId::parse(&path) else { continue };
            let segment = match survey(self.disk, self.dir, id) {
                Ok(segment) => segment,
                Err(SegmentFault::Io { error, .. }) => return Err(self.fail("read", &path, &error)),
                Err(SegmentFault::Damaged { .. }) => continue,
            };
            let holds = || OpenSegment::open(self.disk, self.dir, id, &segment).is_ok();
            if segment.base < segment.end && holds() {
                found.push((id, segment));
            }
        }
        found.sort_by_key(|(id, _)| (std::cmp::Reverse(id.generation), id.topic, id.base));
        Ok(found)
    }

    /// Takes out segments that do not hold.
    pub(super) fn segments(&mut self, before: &Report) -> Result<(), OpenError> {
        let journal = find(self.disk, self.dir)?.journal;
        let newest = checkpoint::load(self.disk, self.dir, &journal)?.newest;
        let Some(checkpoint) = newest else { return Ok(()) };
        let points = checkpoint.topics.iter();
        let all = points.flat_map(|(id, point)| {
            point.segments.iter().map(|segment| (SegmentId::new(*id, segment), *segment))
        });
        let (gone, stays): (Vec<_>, Vec<_>) =
            all.partition(|(id, segment)| self.is_hit(before, id, segment));
        for (id, _) in &gone {
            let path = id.path(self.dir);
            if self.disk.open(&path).is_ok() {
                let place = self.take_out(&path)?;
                let (path, place) = (path.display(), place.display());
                self.done.push(format!("moved {path} to {place}; its topic goes on without it"));
            } else {
                self.done.push(format!("left {} out of the checkpoint", path.display()));
            }
        }
        let needed: BTreeSet<u64> = stays.iter().filter_map(|(_, it)| it.journal).collect();
        let taken: BTreeSet<u64> = gone.iter().filter_map(|(_, it)| it.journal).collect();
        // What still is a journal file stays one.
        for sequence in taken.into_iter().filter(|it| *it < checkpoint.journal_from) {
            self.taken(sequence, needed.contains(&sequence))?;
        }
        let gone: BTreeSet<SegmentId> = gone.into_iter().map(|(id, _)| id).collect();
        self.change_checkpoint(|_, id, point| {
            let is_gone = |segment: &SegmentRef| gone.contains(&SegmentId::new(id, segment));
            if point.segments.iter().any(is_gone) {
                point.segments.retain(|segment| !is_gone(segment));
                point.damage = None;
            }
        })
    }

    /// Whether one of the problems is this segment's.
    fn is_hit(&self, before: &Report, id: &SegmentId, segment: &SegmentRef) -> bool {
        let path = id.path(self.dir);
        let frames = segment.journal.map(|sequence| frames_path(self.dir, sequence));
        before.problems.iter().any(|problem| {
            let mut lost = problem.lost.iter();
            problem.path == path
                || frames.as_ref() == Some(&problem.path)
                    && lost.any(|lost| (lost.topic, lost.end) == (id.topic, segment.end))
        })
    }

    /// Puts what a segment that is taken out had in journal file `sequence` into quarantine.
    fn taken(&mut self, sequence: u64, needed: bool) -> Result<(), OpenError> {
        let names = [frames_path(self.dir, sequence), journal_path(self.dir, sequence)];
        let Some(path) = names.into_iter().find(|path| self.disk.open(path).is_ok()) else {
            return Ok(());
        };
        if needed {
            self.keep(&path)?;
            self.done.push(format!("copied {}, which other segments need", path.display()));
        } else {
            let place = self.take_out(&path)?;
            self.done.push(format!("moved {} to {}", path.display(), place.display()));
        }
        Ok(())
    }
}
