//! What a repair does with damaged segments: what holds of each is written again, in its place.
//!
//! First the new segments are written, then the damaged files copied into quarantine, then a
//! checkpoint names the new ones, then the damaged files take the place of their copies. So
//! whatever comes between two steps, a checkpoint has either the one or the other, and what it does
//! not have is a leftover. What holds is for [`salvage`] to say; segments where no checkpoint says
//! which count are looked for in [`survey`](super::survey).
//!
//! Law: until a checkpoint names what replaces it, a damaged file is where it was; a journal file
//! that another segment needs stays where it is.

use super::super::{Report, refusal};
use super::Surgery;
use crate::checkpoint::{self, Checkpoint, TopicPoint};
use crate::error::OpenError;
use crate::header::{journal_path, journal_sequence};
use crate::listing::find;
use crate::segment::{
    Block, BlockHeader, SEGMENT_DIR, SegmentId, SegmentRef, SegmentWriter, frames_path,
    frames_sequence, salvage,
};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Segments of a checkpoint, each with its name.
type Segments = Vec<(SegmentId, SegmentRef)>;

impl Surgery<'_> {
    /// Replaces segments that do not hold by what holds of them.
    pub(super) fn segments(&mut self, before: &Report) -> Result<(), OpenError> {
        let journal = find(self.disk, self.dir)?.journal;
        let newest = checkpoint::load(self.disk, self.dir, &journal)?.newest;
        let Some(checkpoint) = newest else { return Ok(()) };
        let points = checkpoint.topics.iter();
        let all = points.flat_map(|(id, point)| {
            point.segments.iter().map(|segment| (SegmentId::new(*id, segment), *segment))
        });
        let hit: Segments = all.filter(|(id, segment)| self.is_hit(before, id, segment)).collect();
        let mut changed = checkpoint.clone();
        for (id, point) in &mut changed.topics {
            let of_topic = hit.iter().filter(|(hit, _)| hit.topic == *id);
            let journals: BTreeSet<u64> = of_topic.filter_map(|(_, it)| it.journal).collect();
            forget_damage(point, &journals);
        }
        if hit.is_empty() && changed == checkpoint {
            return Ok(());
        }
        changed.id = self.generation(&checkpoint)?;
        let mut made = Vec::new();
        let replaced = self.replace(&hit, &mut changed, &mut made);
        if let Err(error) = replaced.and_then(|()| self.store(&changed)) {
            self.undo(&made, changed.id);
            return Err(error);
        }
        self.done.push(format!("wrote checkpoint {}", changed.id));
        self.retire(&hit, &changed)
    }

    /// Writes what holds of the segments that are `hit`, names it in `changed`, and sees to it that
    /// what does not hold is in quarantine. Files that were not there before are added to `made`.
    fn replace(
        &mut self,
        hit: &Segments,
        changed: &mut Checkpoint,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), OpenError> {
        for (id, segment) in hit {
            let new = SegmentId { generation: changed.id, ..*id };
            let written = self.write_again(id, segment, new, made)?;
            if let Some(point) = changed.topics.get_mut(&id.topic) {
                let at = point.segments.iter().position(|it| it == segment);
                at.map(|at| point.segments.splice(at..=at, written));
            }
            let path = id.path(self.dir);
            self.done.push(match written {
                Some(SegmentRef { records, base, .. }) => format!(
                    "wrote {records} of {} messages of {} again, to {}",
                    segment.records,
                    path.display(),
                    SegmentId { base, ..new }.path(self.dir).display()
                ),
                None => format!(
                    "left {} out of the checkpoint, as nothing of it holds; topic {} goes on \
                     without it",
                    path.display(),
                    id.topic
                ),
            });
        }
        if !made.is_empty() {
            let dir = self.dir.join(SEGMENT_DIR);
            self.disk.sync_dir(&dir).map_err(|error| self.fail("sync", &dir, &error))?;
        }
        for path in self.files(hit)? {
            let known = self.kept.contains_key(&path);
            let place = self.keep(&path)?;
            made.extend(Some(place).filter(|_| !known));
        }
        Ok(())
    }

    /// Writes what holds of `segment` as segment `new`, but for its base; `None` if nothing does.
    fn write_again(
        &self,
        id: &SegmentId,
        segment: &SegmentRef,
        new: SegmentId,
        made: &mut Vec<PathBuf>,
    ) -> Result<Option<SegmentRef>, OpenError> {
        let mut writer: Option<SegmentWriter> = None;
        let mut refused = Ok(());
        let room = self.room(id, segment);
        let mut write = |Block { header, batch }: Block| -> io::Result<()> {
            let BlockHeader { first, time, .. } = header;
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let id = SegmentId { base: first, ..new };
                    writer.insert(SegmentWriter::begin(self.disk, self.dir, id, room)?)
                }
            };
            writer.push(first, time, &batch, 0..batch.len())
        };
        let walked = salvage(self.disk, self.dir, *id, segment, &mut |block| {
            refused = write(block);
            refused.is_ok()
        });
        let walked = walked.map_err(|fault| refusal(self.dir, id, &fault));
        let refused = refused.map_err(|error| self.fail("write", &new.path(self.dir), &error));
        if let Err(error) = walked.and(refused) {
            if let Some(writer) = writer {
                writer.discard(self.disk);
            }
            return Err(error);
        }
        let Some(writer) = writer else { return Ok(None) };
        let path = writer.id().path(self.dir);
        let written = writer.finish(self.disk);
        let written = written.map_err(|error| self.fail("write", &path, &error))?;
        made.push(path);
        Ok(Some(written))
    }

    /// About how many bytes what holds of `segment` takes: no more than its files have.
    fn room(&self, id: &SegmentId, segment: &SegmentRef) -> u64 {
        let paths = segment.journal.map(|sequence| self.frames(sequence)).into_iter().flatten();
        let files = paths.chain([id.path(self.dir)]).filter_map(|path| self.disk.open(&path).ok());
        segment.bytes.min(files.filter_map(|file| file.len().ok()).sum())
    }

    /// Both names of journal file `sequence`.
    fn frames(&self, sequence: u64) -> [PathBuf; 2] {
        [frames_path(self.dir, sequence), journal_path(self.dir, sequence)]
    }

    /// The files of segments, as far as they are there.
    fn files(&self, segments: &Segments) -> Result<BTreeSet<PathBuf>, OpenError> {
        let journals = segments.iter().filter_map(|(_, segment)| segment.journal);
        let frames = journals.flat_map(|sequence| self.frames(sequence));
        let paths = segments.iter().map(|(id, _)| id.path(self.dir)).chain(frames);
        let mut files = BTreeSet::new();
        for path in paths {
            match self.disk.open(&path) {
                Ok(_) => drop(files.insert(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.fail("open", &path, &error)),
            }
        }
        Ok(files)
    }

    /// Above those of all checkpoints and segments, whole or not.
    fn generation(&self, checkpoint: &Checkpoint) -> Result<u64, OpenError> {
        let paths = self.list_segments()?.into_iter();
        let ids = paths.filter_map(|path| SegmentId::parse(&path.with_extension("seg")));
        let highest = ids.map(|id| id.generation).fold(checkpoint.id, u64::max);
        Ok(highest.saturating_add(1))
    }

    /// Removes what a repair made that did not come to its checkpoint.
    fn undo(&self, made: &[PathBuf], id: u64) {
        let journal = find(self.disk, self.dir).map(|listing| listing.journal);
        let newest = journal.and_then(|it| checkpoint::load(self.disk, self.dir, &it));
        // One copy may have come through, and it needs them.
        if newest.is_ok_and(|loaded| loaded.newest.is_some_and(|newest| newest.id < id)) {
            for path in made {
                // What stays is a leftover.
                let _ = self.disk.remove(path);
            }
        }
    }

    /// Moves the files of segments that the checkpoint has no more into quarantine, if nothing else
    /// needs them.
    fn retire(&mut self, gone: &Segments, checkpoint: &Checkpoint) -> Result<(), OpenError> {
        let needed = checkpoint.taken();
        for path in self.files(gone)? {
            let frames = frames_sequence(&path).or_else(|| journal_sequence(&path));
            // What still is a journal file stays one.
            let stays = |it: u64| it >= checkpoint.journal_from || needed.contains(&it);
            if frames.is_some_and(stays) {
                self.done.push(format!("copied {}, which is still needed", path.display()));
            } else {
                let place = self.take_out(&path)?;
                self.done.push(format!("moved {} to {}", path.display(), place.display()));
            }
        }
        Ok(())
    }

    /// Whether one of the problems is this segment's.
    fn is_hit(&self, before: &Report, id: &SegmentId, segment: &SegmentRef) -> bool {
        let path = id.path(self.dir);
        let frames = segment.journal.map(|sequence| frames_path(self.dir, sequence));
        before.problems.iter().any(|problem| {
            let mut lost = problem.lost.iter().filter(|lost| lost.topic == id.topic);
            problem.path == path
                || frames.as_ref() == Some(&problem.path)
                    && lost.any(|lost| segment.base <= lost.first && lost.end <= segment.end)
        })
    }
}

/// Lets go the memory of damage in segments, or in the journal files `journals` that they took
/// over: all of a checkpoint's segments hold now.
fn forget_damage(point: &mut TopicPoint, journals: &BTreeSet<u64>) {
    point.damage.take_if(|(file, ..)| {
        let file = Path::new(file);
        SegmentId::parse(file).is_some()
            || frames_sequence(file).is_some()
            || journal_sequence(file).is_some_and(|sequence| journals.contains(&sequence))
    });
}
