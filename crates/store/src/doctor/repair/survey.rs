//! Segments where no checkpoint says which of them count: what each file says of itself, or what
//! holds of it.
//!
//! Law: what is not taken for a segment goes into quarantine, as the next start would remove it.

use super::super::refusal;
use super::Surgery;
use crate::checkpoint::Checkpoint;
use crate::error::OpenError;
use crate::segment::{
    BlockHeader, OpenSegment, SEGMENT_DIR, SegmentFault, SegmentId, SegmentRef, frames_sequence,
    salvage, survey,
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

    /// All segments of which something holds, the newest generation first.
    pub(super) fn find_segments(&self) -> Result<Vec<(SegmentId, SegmentRef)>, OpenError> {
        let mut found = Vec::new();
        for path in self.list_segments()? {
            let Some(id) = SegmentId::parse(&path) else { continue };
            let said = survey(self.disk, self.dir, id).and_then(|segment| {
                OpenSegment::open(self.disk, self.dir, id, &segment).map(|_| segment)
            });
            let segment = match said {
                Ok(segment) => Some(segment),
                Err(SegmentFault::Damaged { .. }) => self.size_up(id)?,
                Err(SegmentFault::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                    None
                }
                Err(fault) => return Err(refusal(self.dir, &id, &fault)),
            };
            found.extend(segment.filter(|it| it.base < it.end).map(|segment| (id, segment)));
        }
        found.sort_by_key(|(id, _)| (std::cmp::Reverse(id.generation), id.topic, id.base));
        Ok(found)
    }

    /// What segment `id` is by its blocks alone; `None` if none of them holds. Frames of one whose
    /// index is damaged are not looked for, as nobody says any more up to where they are its own.
    fn size_up(&self, id: SegmentId) -> Result<Option<SegmentRef>, OpenError> {
        let path = id.path(self.dir);
        let len = self.disk.open(&path).and_then(|file| file.len());
        let bytes = len.map_err(|error| self.fail("read", &path, &error))?;
        let SegmentId { base, generation, .. } = id;
        let (first_time, last_time) = (0, 0);
        let (end, records, journal) = (u64::MAX, u64::MAX, None);
        let any =
            SegmentRef { base, end, generation, bytes, records, first_time, last_time, journal };
        let mut sized = SegmentRef { end: base, ..any };
        let walked = salvage(self.disk, self.dir, id, &any, &mut |block| {
            let BlockHeader { first, count, time, .. } = block.header;
            if sized.end == base {
                sized.first_time = time;
            }
            (sized.end, sized.last_time) = (first.saturating_add(count.into()), time);
            true
        });
        walked.map_err(|fault| refusal(self.dir, &id, &fault))?;
        // Those that do not hold are among them, so that they are told.
        sized.records = sized.end - base;
        Ok(Some(sized).filter(|sized| sized.records > 0))
    }

    /// Takes out what `checkpoint` does not name of what is among the segments.
    pub(super) fn strays(&mut self, checkpoint: &Checkpoint) -> Result<(), OpenError> {
        let points = checkpoint.topics.iter();
        let named = points.flat_map(|(id, point)| {
            point.segments.iter().map(|segment| SegmentId::new(*id, segment))
        });
        let named: BTreeSet<SegmentId> = named.collect();
        let taken = checkpoint.taken();
        for path in self.list_segments()? {
            let segment = SegmentId::parse(&path).filter(|id| !named.contains(id));
            let frames = frames_sequence(&path).filter(|sequence| !taken.contains(sequence));
            if segment.is_some() || frames.is_some() {
                let place = self.take_out(&path)?;
                let (path, place) = (path.display(), place.display());
                self.done.push(format!(
                    "moved {path} to {place}, as the new checkpoint does not name it; messages \
                     that are missing may be in there"
                ));
            }
        }
        Ok(())
    }
}
