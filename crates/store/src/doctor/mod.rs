//! The doctor: looks at the data directory of a stopped store, explains every file, finds damage,
//! and, asked to, repairs what can be repaired.
//!
//! Looking changes nothing: it runs the same recovery as a start does, on a disk that refuses
//! changes, so it cannot come to another opinion than the store. What it leaves to others: names
//! of topics (the catalog), and how all this is printed (the command).
//!
//! Law: looking never changes a byte; a repair never deletes one (what it changes or takes away
//! is in `quarantine/` as it was), and says whose messages are lost.

mod explain;
mod hole;
mod look;
mod repair;

use crate::disk::Disk;
use crate::error::OpenError;
use crate::listing::find;
use crate::lock::DirLock;
use crate::recovery::recover;
use crate::segment::{Flaw, SegmentFault, SegmentId, frames_sequence, salvage};
use crate::topic::TopicState;
use danube_core::{Incarnation, TopicId};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use hole::FILLER_TOPIC;
use look::LookOnly;
pub use repair::{Repaired, repair};

/// What is in a data directory.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Every file, in order of path.
    pub files: Vec<FileNote>,
    /// Every topic that the log has anything of, in order of id.
    pub topics: Vec<TopicNote>,
    /// What is wrong. Empty in health.
    pub problems: Vec<Problem>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNote {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it is, in a few words.
    pub what: String,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicNote {
    /// Its id in the catalog.
    pub id: TopicId,
    /// First readable offset.
    pub start: u64,
    /// One past the last readable offset.
    pub next: u64,
    /// Segments that it has.
    pub segments: usize,
    /// Subscriptions that have recorded progress.
    pub subscriptions: usize,
    /// What stopped it, if damage did.
    pub stopped: Option<String>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// In which file.
    pub path: PathBuf,
    /// At which byte of it, if at one.
    pub position: Option<u64>,
    /// What is wrong there.
    pub what: String,
    /// What this means, and for whom.
    pub means: String,
    /// Messages that are lost by it, as far as can be told.
    pub lost: Vec<Lost>,
    /// Whether anything that was promised is hit. A torn end is not.
    pub is_damage: bool,
}

/// Messages that cannot be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Whose.
    pub topic: TopicId,
    /// First lost offset.
    pub first: u64,
    /// One past the last lost offset.
    pub end: u64,
}

impl Report {
    /// Whether nothing that was promised is hit.
    pub fn is_healthy(&self) -> bool {
        !self.problems.iter().any(|problem| problem.is_damage)
    }
}

/// Looks at `dir`, which must not be in use.
///
/// # Errors
/// [`OpenError::Locked`] when a process has it, [`OpenError::Io`] when it cannot be read. What the
/// store would not open for is a [`Problem`], not an error.
pub fn examine(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Report, OpenError> {
    // A directory that is not there must not be made by looking at it.
    disk.list(dir).map_err(|error| OpenError::io("list", dir, &error))?;
    let _lock = DirLock::take(&**disk, dir)?;
    examine_locked(disk, dir)
}

fn examine_locked(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Report, OpenError> {
    let look = LookOnly(Arc::clone(disk));
    let mut report = Report { files: explain::files(&look, dir)?, ..Report::default() };
    report.problems.extend(explain::odd_files(&look, dir)?);
    let recovered = match recover(&look, dir, Incarnation(u32::MAX), &mut |_| {}) {
        Ok(recovered) => recovered,
        Err(error @ (OpenError::Io { .. } | OpenError::Locked { .. })) => return Err(error),
        Err(error) => {
            report.problems.push(Problem {
                path: path_of(&error, dir),
                position: None,
                what: error.to_string(),
                means: "the store does not open; no topic can be used".into(),
                lost: Vec::new(),
                is_damage: true,
            });
            return Ok(report);
        }
    };
    let listing = find(&look, dir)?;
    let holes = hole::find(&look, dir, &listing.journal)?;
    report.problems.extend(holes.iter().map(hole::Hole::problem));
    for (id, state) in &recovered.topics {
        report.problems.extend(segments(&look, dir, *id, state)?);
    }
    // A stopped topic whose damage is in none of the places above was stopped earlier.
    for (id, state) in &recovered.topics {
        let Some(damage) = &state.damage else { continue };
        // A journal file that several segments have taken over has places of several topics.
        let shared = frames_sequence(&damage.file).is_some();
        let known = report.problems.iter().any(|problem| {
            let its_own = !shared || problem.lost.iter().any(|lost| lost.topic == *id);
            problem.is_damage && problem.path == damage.file && its_own
        });
        if !known {
            report.problems.push(Problem {
                path: damage.file.clone(),
                position: Some(damage.position),
                what: damage.what.clone(),
                means: format!("topic {id} is stopped; others are not hit"),
                lost: Vec::new(),
                is_damage: true,
            });
        }
    }
    let topics = recovered.topics.iter().filter(|(id, _)| id.0 != FILLER_TOPIC);
    report.topics = topics.map(|(id, state)| note(*id, state)).collect();
    report.topics.sort_by_key(|topic| topic.id);
    report.problems.sort_by(|a, b| (&a.path, a.position).cmp(&(&b.path, b.position)));
    Ok(report)
}

fn note(id: TopicId, state: &TopicState) -> TopicNote {
    TopicNote {
        id,
        start: state.start(),
        next: state.next,
        segments: state.segments.len(),
        subscriptions: state.progress.len(),
        stopped: state.damage.as_ref().map(|damage| damage.what.clone()),
    }
}

fn path_of(error: &OpenError, dir: &Path) -> PathBuf {
    match error {
        OpenError::Locked { dir } => dir.clone(),
        OpenError::Io { path, .. }
        | OpenError::Version { path, .. }
        | OpenError::OtherCatalog { path, .. }
        | OpenError::Checkpoint { path, .. }
        | OpenError::Misnamed { path, .. } => path.clone(),
        #[allow(unreachable_patterns, reason = "a new way not to open concerns the directory")]
        _ => dir.to_path_buf(),
    }
}

/// Reads everything in a topic's segments, as a repair does.
fn segments(
    disk: &dyn Disk,
    dir: &Path,
    id: TopicId,
    state: &TopicState,
) -> Result<Vec<Problem>, OpenError> {
    let mut problems = Vec::new();
    for segment in &state.segments {
        let segment_id = SegmentId::new(id, segment);
        let flaws = salvage(disk, dir, segment_id, segment, &mut |_| true);
        let flaws = flaws.map_err(|fault| refusal(dir, &segment_id, &fault))?;
        problems.extend(flaws.into_iter().map(|flaw| problem(dir, &segment_id, flaw)));
    }
    Ok(problems)
}

/// That the disk refuses to read a segment.
fn refusal(dir: &Path, id: &SegmentId, fault: &SegmentFault) -> OpenError {
    let error = match fault {
        SegmentFault::Io { error, .. } => error.to_string(),
        SegmentFault::Damaged { what, .. } => (*what).to_owned(),
    };
    OpenError::Io { action: "read", path: fault.path(dir, id), error }
}

fn problem(dir: &Path, id: &SegmentId, flaw: Flaw) -> Problem {
    let Flaw { fault, lost } = flaw;
    let (path, topic) = (fault.path(dir, id), id.topic);
    let (position, what) = match fault {
        SegmentFault::Io { error, .. } => (None, error.to_string()),
        SegmentFault::Damaged { position, what, .. } => (Some(position), what.to_owned()),
    };
    let means = if lost.is_empty() {
        format!("topic {topic} cannot be read there; no message is lost by it")
    } else {
        format!("topic {topic} cannot be read there; a repair keeps what is around it")
    };
    let lost = Some(lost).filter(|lost| !lost.is_empty());
    let lost = lost.map(|Range { start, end }| Lost { topic, first: start, end });
    Problem { path, position, what, means, lost: lost.into_iter().collect(), is_damage: true }
}

#[cfg(test)]
mod tests;
