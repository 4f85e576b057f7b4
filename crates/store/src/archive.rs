//! From full journal files into segments, one topic at a time.
//!
//! A file most of which is large frames that are all kept is not copied: what its topics get is an index
//! of their frames in it.
//!
//! Small segments at a topic's end are written again together with what follows, so that a topic
//! that gets little has few files, and no message is copied often. One in which almost everything
//! is finished, and may go, is written again without that.
//!
//! Law: a message leaves the journal only into a segment that is durable, or with the file that it is
//! in, or because every
//! subscription has finished it and the topic's retention lets it go, or by age or size.

use crate::header::journal_sequence;
use crate::reader::JournalFiles;
use crate::segment::{SegmentId, SegmentRef};
use crate::shared::Shared;
use crate::tend::Pace;
use crate::topic::Topic;
use danube_core::{TopicId, WallMs};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

mod adopt;
mod copy;
mod plan;

use adopt::{Part, decide};
use copy::Copy;
use plan::{Work, parts, plan};

pub(crate) use adopt::is_thin;
pub(crate) use plan::finished_in;

/// What copying takes: open files, and its pace.
pub(crate) struct Means {
    /// Journal files to read from.
    pub files: JournalFiles,
    /// When to rest.
    pub pace: Pace,
}

/// Why a topic could not be archived now.
#[derive(Debug)]
pub(crate) struct ArchiveError {
    /// On which file.
    pub path: PathBuf,
    /// What the operating system said.
    pub error: io::Error,
}

/// What all topics of one pass have in common.
pub(crate) struct Pass {
    /// Journal files below this sequence are full, and have nothing more after the pass.
    pub settle_below: u64,
    /// That of new segments.
    pub generation: u64,
    /// The time.
    pub now: WallMs,
    /// Which topics take over which of those files.
    pub takers: Takers,
    /// Files that were taken over and of which little is wanted any more.
    pub thin: BTreeSet<u64>,
}

/// Topics that take over their part of a journal file, by its sequence.
pub(crate) type Takers = BTreeMap<u64, BTreeSet<TopicId>>;

/// Decides which of the full journal files below `settle_below` are taken over, and by whom. A file
/// in which damage was found is not, so that it can be set aside.
pub(crate) fn takers(shared: &Shared, settle_below: u64, now: WallMs) -> Takers {
    let mut by_file: BTreeMap<u64, Vec<(TopicId, Part)>> = BTreeMap::new();
    let mut damaged = BTreeSet::new();
    for topic in shared.each_topic() {
        let damage = topic.state.lock().damage.as_ref().map(|damage| damage.file.clone());
        damaged.extend(damage.and_then(|path| journal_sequence(&path)));
        for (file, part) in parts(shared, &topic, settle_below, now) {
            by_file.entry(file).or_default().push((topic.id, part));
        }
    }
    let min = shared.options.adopt_frame_bytes_min;
    let taken = by_file.into_iter().filter_map(|(file, parts)| {
        // What cannot be opened is met again by whoever copies it.
        let len = shared.disk.open(&shared.path(file)).and_then(|file| file.len()).ok()?;
        Some((file, decide(len, &parts, min))).filter(|_| !damaged.contains(&file))
    });
    taken.filter(|(_, topics)| !topics.is_empty()).collect()
}

/// Moves what `topic` has in journal files that are to be settled into segments, and lets go what its
/// retention does not keep. Segments that are not the topic's any more are added to `replaced`; they
/// are needed until the next checkpoint. Returns whether it wrote any.
pub(crate) fn archive(
    shared: &Arc<Shared>,
    means: &mut Means,
    topic: &Topic,
    pass: &Pass,
    replaced: &mut Vec<PathBuf>,
) -> Result<bool, ArchiveError> {
    let Means { files, pace } = means;
    loop {
        let Some(work) = plan(shared, topic, pass) else { return Ok(false) };
        let mut copy = Copy::new(shared, topic, pass.generation, pace, work.bytes());
        let copied = copy.all(&work, files).and_then(|()| copy.close());
        let Copy { open, made, spoilt, .. } = copy;
        if copied.is_ok() && !spoilt {
            let wrote = !made.is_empty();
            swap(shared, topic, &work, made, replaced);
            return Ok(wrote);
        }
        if let Some(open) = open {
            open.discard(&*shared.disk);
        }
        let made = made.iter().map(|it| SegmentId::new(topic.id, it));
        shared.leavings.lock().extend(made.map(|id| id.path(&shared.options.dir)));
        copied?;
        // A segment that is damaged stays as it is, for whoever repairs it. The topic is stopped by
        // now, so that the next plan has only its batches.
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
