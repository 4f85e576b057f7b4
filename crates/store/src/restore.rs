//! From a checkpoint to the state of topics, before the journal is read.
//!
//! Law: a segment that the checkpoint names and the directory lacks stops its topic; a file that
//! no checkpoint names is a leftover, as what it holds is still in the journal.

use crate::checkpoint::Checkpoint;
use crate::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::segment::{SEGMENT_DIR, SegmentId, SegmentRef};
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
}

/// Takes up the topics of `checkpoint`.
pub(crate) fn topics(
    disk: &dyn Disk,
    dir: &Path,
    checkpoint: Option<&Checkpoint>,
) -> Result<Restored, OpenError> {
    let segment_dir = dir.join(SEGMENT_DIR);
    let listed = disk.list(&segment_dir);
    let listed = listed.map_err(|error| OpenError::io("list", &segment_dir, &error))?;
    let mut there: BTreeSet<PathBuf> = listed.into_iter().collect();
    let mut restored = Restored::default();
    for (id, point) in checkpoint.iter().flat_map(|checkpoint| &checkpoint.topics) {
        let mut state = point.clone().restore();
        state.damage = point.damage.as_ref().map(|(file, position, what)| Damage {
            topic: *id,
            file: match SegmentId::parse(Path::new(file)) {
                Some(id) => id.path(dir),
                None => dir.join(file),
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
        restored.topics.insert(*id, state);
    }
    let ours = |path: &PathBuf| {
        SegmentId::parse(path).is_some() || path.extension().is_some_and(|end| end == "new")
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
