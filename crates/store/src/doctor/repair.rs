//! What can be repaired: a torn end is cut, a hole in the journal is filled with frames of nobody
//! so that its topics go on behind it, what holds of a damaged segment is written again without the
//! rest, a checkpoint is written again or built from what there is.
//!
//! Law: before a byte changes, it is in `quarantine/`; what a repair cannot do safely it leaves
//! alone and says so.

use super::hole::{self, Hole};
use super::look::LookOnly;
use super::{Report, examine_locked};
use crate::checkpoint::{self, Checkpoint, TopicPoint};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::header::journal_path;
use crate::listing::{Found, find};
use crate::lock::DirLock;
use crate::segment::{SegmentRef, frames_sequence};
use danube_core::TopicId;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod quarantine;
mod segments;
mod survey;

/// What a repair did.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// What there was.
    pub before: Report,
    /// What was done, in words.
    pub done: Vec<String>,
    /// What could not be done, and why.
    pub left: Vec<String>,
    /// What there is now.
    pub after: Report,
}

/// Repairs what is wrong in `dir`, which must not be in use.
///
/// # Errors
/// As [`examine`](super::examine), and when the disk refuses a change. What was changed before
/// that is whole, and another repair goes on from there.
pub fn repair(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Repaired, OpenError> {
    disk.list(dir).map_err(|error| OpenError::io("list", dir, &error))?;
    let _lock = DirLock::take(&**disk, dir)?;
    let mut before = examine_locked(disk, dir)?;
    let mut surgery =
        Surgery { disk: &**disk, dir, done: Vec::new(), left: Vec::new(), kept: BTreeMap::new() };
    if !before.problems.is_empty() {
        if surgery.checkpoints()? {
            // What a new checkpoint names could not be looked at before.
            before.problems.extend(examine_locked(disk, dir)?.problems);
        }
        let listing = find(&LookOnly(Arc::clone(disk)), dir);
        match listing.and_then(|listing| surgery.holes(&listing.journal)) {
            Ok(()) => surgery.segments(&before)?,
            Err(error @ OpenError::Io { .. }) => return Err(error),
            Err(error) => surgery.left.push(error.to_string()),
        }
    }
    let Surgery { done, left, .. } = surgery;
    let after = examine_locked(disk, dir)?;
    Ok(Repaired { before, done, left, after })
}

struct Surgery<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    done: Vec<String>,
    left: Vec<String>,
    /// Files that are in quarantine as they were, and where.
    kept: BTreeMap<PathBuf, PathBuf>,
}

impl Surgery<'_> {
    fn fail(&self, action: &'static str, path: &Path, error: &io::Error) -> OpenError {
        OpenError::io(action, path, error)
    }

    fn store(&self, checkpoint: &Checkpoint) -> Result<(), OpenError> {
        checkpoint::store(self.disk, self.dir, checkpoint)
            .map(drop)
            .map_err(|error| self.fail("write the checkpoint into", self.dir, &error))
    }

    /// Sees to it that both copies of the checkpoint hold. Returns whether one had to be built.
    fn checkpoints(&mut self) -> Result<bool, OpenError> {
        let listing = find(self.disk, self.dir);
        let journal = match listing {
            Ok(listing) => listing.journal,
            Err(error @ OpenError::Io { .. }) => return Err(error),
            // Said by whoever looks afterwards.
            Err(_) => return Ok(false),
        };
        let damaged: Vec<PathBuf> = super::explain::odd_files(self.disk, self.dir)?
            .into_iter()
            .map(|problem| problem.path)
            .collect();
        match checkpoint::load(self.disk, self.dir, &journal) {
            Ok(loaded) => {
                let Some(newest) = loaded.newest.filter(|_| !damaged.is_empty()) else {
                    return Ok(false);
                };
                for path in &damaged {
                    self.keep(path)?;
                }
                self.store(&newest)?;
                self.done
                    .push(format!("wrote checkpoint {} again, from its other copy", newest.id));
            }
            Err(OpenError::Checkpoint { needed, .. }) => {
                for path in &damaged {
                    self.keep(path)?;
                }
                return self.rebuild(&journal, needed);
            }
            Err(error @ OpenError::Io { .. }) => return Err(error),
            Err(error) => self.left.push(error.to_string()),
        }
        Ok(false)
    }

    /// Builds a checkpoint from the segments and the journal that there are, if it can.
    fn rebuild(&mut self, journal: &[Found], needed: u64) -> Result<bool, OpenError> {
        // A journal file is moved there only once nothing before it, and nothing in it, counts as
        // journal any more.
        let taken = self.list_segments()?;
        let settled = taken.iter().filter_map(|path| frames_sequence(path)).max();
        let settled = settled.map_or(0, |sequence| sequence.saturating_add(1));
        let (from, lsn) = match journal.iter().find(|file| file.sequence >= settled) {
            None => (settled, 0),
            Some(Found { sequence, header: Some(header), .. }) => (*sequence, header.start_lsn),
            Some(first) => {
                let path = first.path.display();
                self.left
                    .push(format!("no checkpoint can be built: the header of {path} is damaged"));
                return Ok(false);
            }
        };
        let found = self.find_segments()?;
        let generation = found.iter().map(|(id, _)| id.generation).max().unwrap_or(0);
        let incarnation = journal.iter().filter_map(|file| file.header);
        let mut topics: BTreeMap<TopicId, TopicPoint> = BTreeMap::new();
        for (id, segment) in found {
            let point = topics.entry(id.topic).or_default();
            let apart = |other: &SegmentRef| other.end <= segment.base || segment.end <= other.base;
            if point.segments.iter().all(apart) {
                point.settled = point.settled.max(segment.end);
                point.segments.push(segment);
                point.segments.sort_by_key(|segment| segment.base);
            }
        }
        let count = topics.len();
        let checkpoint = Checkpoint {
            id: needed.max(generation).max(1),
            incarnation: incarnation.map(|header| header.incarnation).max().unwrap_or(0),
            journal_from: from,
            journal_lsn: lsn,
            topics,
        };
        self.store(&checkpoint)?;
        self.strays(&checkpoint)?;
        self.done.push(format!(
            "built checkpoint {} from the segments of {count} topics; how far subscriptions had \
             come before journal file {from} is lost, so they receive again what is still kept",
            checkpoint.id
        ));
        Ok(true)
    }

    /// Fills holes and cuts the torn end.
    fn holes(&mut self, journal: &[Found]) -> Result<(), OpenError> {
        let holes = hole::find(self.disk, self.dir, journal)?;
        for hole in &holes {
            if hole.is_torn {
                self.cut(hole)?;
            } else if hole.can_be_filled() {
                self.fill(hole)?;
            } else {
                self.left.push(format!(
                    "{} from byte {} on cannot be filled, as nobody can tell how many frames are \
                     missing; restore the file from a copy, or delete the topics that it stops",
                    hole.path.display(),
                    hole.at
                ));
            }
        }
        let filled: BTreeSet<PathBuf> = holes
            .iter()
            .filter(|hole| hole.can_be_filled())
            .map(|hole| hole.path.clone())
            .collect();
        self.change_checkpoint(|dir, id, point| {
            let file = point.damage.as_ref().map(|(file, ..)| dir.join(file));
            if file.is_some_and(|file| filled.contains(&file)) {
                point.damage = None;
            }
            let _ = id;
        })
    }

    fn cut(&mut self, hole: &Hole) -> Result<(), OpenError> {
        let behind = hole::has_frames_behind(self.disk, hole);
        if behind.map_err(|error| self.fail("read", &hole.path, &error))? {
            // The next start learns from it which offsets may have been given.
            return Ok(());
        }
        self.keep(&hole.path)?;
        let cut = self.disk.open(&hole.path).and_then(|file| {
            file.set_len(hole.at)?;
            file.sync_data()
        });
        cut.map_err(|error| self.fail("cut", &hole.path, &error))?;
        let (path, bytes) = (hole.path.display(), hole.end - hole.at);
        self.done.push(format!("cut a torn end of {bytes} bytes off {path}"));
        Ok(())
    }

    fn fill(&mut self, hole: &Hole) -> Result<(), OpenError> {
        self.keep(&hole.path)?;
        for (file, ..) in &hole.behind {
            self.keep(&journal_path(self.dir, *file))?;
        }
        let filled = self.disk.open(&hole.path).and_then(|file| {
            hole.fill(&*file)?;
            file.sync_data()
        });
        filled.map_err(|error| self.fail("fill", &hole.path, &error))?;
        for (file, position, header) in &hole.behind {
            let path = journal_path(self.dir, *file);
            let header = crate::frame::FrameHeader { jump: true, ..*header }.encode(*file);
            let marked = self.disk.open(&path).and_then(|file| {
                file.write_at(*position, &mut [IoSlice::new(&header)])?;
                file.sync_data()
            });
            marked.map_err(|error| self.fail("write", &path, &error))?;
        }
        let path = hole.path.display();
        self.done
            .push(format!("filled bytes {} to {} of {path}; its topics go on", hole.at, hole.end));
        Ok(())
    }

    fn change_checkpoint(
        &mut self,
        change: impl Fn(&Path, TopicId, &mut TopicPoint),
    ) -> Result<(), OpenError> {
        let journal = find(self.disk, self.dir)?.journal;
        let Some(newest) = checkpoint::load(self.disk, self.dir, &journal)?.newest else {
            return Ok(());
        };
        let mut changed = newest.clone();
        for (id, point) in &mut changed.topics {
            change(self.dir, *id, point);
        }
        if changed == newest {
            return Ok(());
        }
        changed.id += 1;
        self.store(&changed)?;
        self.done.push(format!("wrote checkpoint {}", changed.id));
        Ok(())
    }
}
