//! From a checkpoint to the state of topics, before the journal is read.
//!
//! Law: a segment that the checkpoint names and the directory lacks stops its topic, and so does the
//! journal file that it has taken over; a file that no checkpoint names is a leftover, as what it holds
//! is still in the journal.

use crate::checkpoint::Checkpoint;
use crate::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::listing::Found;
use crate::segment::{SEGMENT_DIR, SegmentId, SegmentRef, frames_path, frames_sequence};
use crate::tend::Taken;
use crate::topic::TopicState;
use danube_core::TopicId;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// What a checkpoint and the directory of segments say.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// State of each topic in the checkpoint.
    pub topics: HashMap<TopicId, TopicState>,
    /// Files that nothing needs.
    pub leavings: Vec<PathBuf>,
    /// Journal files that segments have taken over.
    pub taken: Taken,
}

/// Takes up the topics of `checkpoint`; `journal` are the journal files that there are under such
/// names.
pub(crate) fn topics(
    disk: &dyn Disk,
    dir: &Path,
    checkpoint: Option<&Checkpoint>,
    journal: &[Found],
) -> Result<Restored, OpenError> {
    let segment_dir = dir.join(SEGMENT_DIR);
    let listed = disk.list(&segment_dir);
    let listed = listed.map_err(|error| OpenError::io("list", &segment_dir, &error))?;
    let mut there: BTreeSet<PathBuf> = listed.into_iter().collect();
    let mut restored = Restored::default();
    let journal: BTreeSet<u64> = journal.iter().map(|file| file.sequence).collect();
    let from = checkpoint.map_or(0, |checkpoint| checkpoint.journal_from);
    let mut lost = BTreeSet::new();
    for sequence in checkpoint.map(Checkpoint::taken).unwrap_or_default() {
        restored.taken.all.insert(sequence);
        match (there.remove(&frames_path(dir, sequence)), journal.contains(&sequence)) {
            (true, _) => {}
            // A crash came before it was moved.
            (false, true) if sequence < from => drop(restored.taken.unmoved.insert(sequence)),
            (false, true) => {}
            (false, false) => drop(lost.insert(sequence)),
        }
    }
    for (id, point) in checkpoint.iter().flat_map(|checkpoint| &checkpoint.topics) {
        let mut state = point.clone().restore();
        state.damage = point.damage.as_ref().map(|(file, position, what)| Damage {
            topic: *id,
            file: match (SegmentId::parse(Path::new(file)), frames_sequence(Path::new(file))) {
                (Some(id), _) => id.path(dir),
                (_, Some(sequence)) => frames_path(dir, sequence),
                (None, None) => dir.join(file),
            },
            position: *position,
            what: what.clone(),
        });
        for path in paths(dir, *id, &point.segments) {
            if !there.remove(&path) {
                let what = "the segment is missing".to_owned();
                let damage = Damage { topic: *id, file: path, position: 0, what };
                state.damage.get_or_insert(damage);
            }
        }
        let mut taken = point.segments.iter().filter_map(|segment| segment.journal);
        if let Some(sequence) = taken.find(|sequence| lost.contains(sequence)) {
            let what = "the journal file that has the segment's messages is missing".to_owned();
            let file = frames_path(dir, sequence);
            state.damage.get_or_insert(Damage { topic: *id, file, position: 0, what });
        }
        restored.topics.insert(*id, state);
    }
    let ours = |path: &PathBuf| {
        SegmentId::parse(path).is_some()
            || frames_sequence(path).is_some()
            || path.extension().is_some_and(|end| end == "new")
    };
    restored.leavings = there.into_iter().filter(ours).collect();
    Ok(restored)
}

/// Paths of segments of one topic.
pub(crate) fn paths<'a>(
    dir: &Path,
    topic: TopicId,
    segments: impl IntoIterator<Item = &'a SegmentRef>,
) -> Vec<PathBuf> {
    segments.into_iter().map(|segment| SegmentId::new(topic, segment).path(dir)).collect()
}
