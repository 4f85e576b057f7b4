//! From full journal files into segments, one topic at a time.
//!
//! Small segments at a topic's end are written again together with what follows, so that a topic
//! that gets little has few files, and no message is copied often. One in which almost everything
//! is finished, and may go, is written again without that.
//!
//! Law: a message leaves the journal only into a segment that is durable, or because every
//! subscription has finished it and the topic's retention lets it go, or by age or size.

use crate::reader::JournalFiles;
use crate::segment::{SegmentId, SegmentRef};
use crate::shared::Shared;
use crate::tend::Pace;
use crate::topic::Topic;
use danube_core::WallMs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

mod copy;
mod plan;

use copy::Copy;
use plan::{Work, plan};

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

/// Moves what `topic` has in journal files below `settle_below` into segments of `generation`,
/// and lets go what its retention does not keep. Segments that are not the topic's any more are
/// added to `replaced`; they are needed until the next checkpoint. Returns whether it wrote any.
pub(crate) fn archive(
    shared: &Arc<Shared>,
    means: &mut Means,
    topic: &Topic,
    settle_below: u64,
    generation: u64,
    now: WallMs,
    replaced: &mut Vec<PathBuf>,
) -> Result<bool, ArchiveError> {
    let Some(work) = plan(shared, topic, settle_below, now) else { return Ok(false) };
    let rest = work.bytes();
    let Means { files, pace } = means;
    let mut copy = Copy { shared, topic, generation, pace, open: None, made: Vec::new(), rest };
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
