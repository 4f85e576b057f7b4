//! The checkpoint: what the log knows of all topics beside the messages themselves, so that
//! journal files before it can go and a restart need not read them.
//!
//! There are two copies of it, `checkpoint.1` and `checkpoint.2`. Journal files are released only
//! once both are durable. The layout is in `docs/formats/checkpoint.md`; a golden file pins it.
//!
//! Law: a checkpoint that is needed and cannot be read is never guessed at; opening is refused.

mod codec;

use crate::disk::{Disk, put_whole, read_available};
use crate::error::OpenError;
use crate::listing::Found;
use crate::room::is_full;
use crate::segment::{SEGMENT_DIR, SegmentId, SegmentRef, frames_sequence};
use crate::topic::Tracked;
use crate::topic::{Topic, TopicState};
use danube_core::sequence::Sequences;
use danube_core::{SubscriptionId, TopicId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub(crate) use codec::{decode, encode};

/// Format version that this code writes; it reads version 2, too.
pub const CHECKPOINT_VERSION: u32 = 3;
/// What the room kept for checkpoints is a multiple of, in bytes.
const RESERVE_STEP: u64 = 4 << 10;
/// Copies of each checkpoint.
pub(crate) const COPIES: u32 = 2;

/// Everything a checkpoint says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checkpoint {
    /// Its number: one more than that of the one before; the first is 1.
    pub id: u64,
    /// Process start that wrote it.
    pub incarnation: u32,
    /// First journal file that is still needed.
    pub journal_from: u64,
    /// Log sequence number of that file's first frame.
    pub journal_lsn: u64,
    /// Topics, by id.
    pub topics: BTreeMap<TopicId, TopicPoint>,
}

impl Checkpoint {
    /// Journal files that its segments have taken over.
    pub(crate) fn taken(&self) -> BTreeSet<u64> {
        let segments = self.topics.values().flat_map(|point| &point.segments);
        segments.filter_map(|segment| segment.journal).collect()
    }
}

/// What a checkpoint says of one topic. Progress may be newer than the journal's place: taking
/// records once more changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TopicPoint {
    /// As in [`TopicState`].
    pub epoch: u32,
    /// As in [`TopicState`].
    pub settled: u64,
    /// As in [`TopicState`].
    pub floor: u64,
    /// As in [`TopicState`].
    pub time: u64,
    /// As in [`TopicState`].
    pub tail_lost: bool,
    /// As in [`TopicState`].
    pub synced_mode: bool,
    /// As in [`TopicState`].
    pub segments: Vec<SegmentRef>,
    /// As in [`TopicState`].
    pub progress: BTreeMap<SubscriptionId, Tracked>,
    /// As in [`TopicState`].
    pub sequences: Sequences,
    /// What stopped the topic: file name, byte, and what is wrong there.
    pub damage: Option<(String, u64, String)>,
}

impl TopicPoint {
    /// What there is to say of `topic`; `None` when nothing of it was ever recorded.
    pub(crate) fn of(topic: &Topic) -> Option<TopicPoint> {
        let state = topic.state.lock();
        if !state.recorded || state.forgotten {
            return None;
        }
        let lives = |id: &SubscriptionId| {
            let known = state.subscriptions.as_ref();
            // The reserved numbers are the broker's own, and in no catalog.
            id.is_reserved() || known.is_none_or(|known| known.contains_key(id))
        };
        let progress = state.progress.iter().filter(|(id, _)| lives(id));
        Some(TopicPoint {
            epoch: state.epoch,
            settled: state.settled,
            floor: state.floor,
            time: state.time,
            tail_lost: state.tail_lost,
            synced_mode: state.synced_mode,
            segments: state.segments.iter().copied().collect(),
            progress: progress.map(|(id, tracked)| (*id, tracked.clone())).collect(),
            sequences: state.sequences.clone(),
            damage: state.damage.as_ref().map(|damage| {
                let file = damage.file.file_name().unwrap_or_default();
                let file = file.to_string_lossy().into_owned();
                (file, damage.position, damage.what.clone())
            }),
        })
    }

    /// The topic's state before the journal is read.
    pub(crate) fn restore(self) -> TopicState {
        TopicState {
            epoch: self.epoch,
            next: self.settled,
            framed: self.settled,
            settled: self.settled,
            floor: self.floor,
            time: self.time,
            tail_lost: self.tail_lost,
            synced_mode: self.synced_mode,
            segments: self.segments.into(),
            progress: self.progress,
            sequences: self.sequences,
            recorded: true,
            ..TopicState::default()
        }
    }
}

/// Path of copy `copy`, counted from 0.
pub(crate) fn path(dir: &Path, copy: u32) -> PathBuf {
    dir.join(format!("checkpoint.{}", copy + 1))
}

/// Path of copy `copy` while it is written.
pub(crate) fn new_path(dir: &Path, copy: u32) -> PathBuf {
    path(dir, copy).with_added_extension("new")
}

/// Path of the file that keeps room for both copies on a full disk.
pub(crate) fn reserve_path(dir: &Path) -> PathBuf {
    dir.join("checkpoint.reserve")
}

/// As [`store`]; where there is no room, that which is kept for it is given back first.
pub(crate) fn store_tight(disk: &dyn Disk, dir: &Path, checkpoint: &Checkpoint) -> io::Result<u64> {
    store(disk, dir, checkpoint).or_else(|error| {
        if !is_full(&error) {
            return Err(error);
        }
        disk.remove(&reserve_path(dir))?;
        store(disk, dir, checkpoint)
    })
}

/// Keeps room for both copies of a checkpoint of `bytes`, if there is so much.
pub(crate) fn keep_reserve(disk: &dyn Disk, dir: &Path, bytes: u64) {
    let path = reserve_path(dir);
    // Twice, and as much again as it may grow.
    let wanted = (4 * bytes).max(1).next_multiple_of(RESERVE_STEP);
    let len = disk.open(&path).and_then(|file| file.len()).unwrap_or(0);
    if len >= wanted / 2 {
        return;
    }
    let _ = disk.remove(&path);
    if let Err(error) = disk.create(&path).and_then(|file| file.preallocate(wanted)) {
        tracing::debug!(%error, "cannot keep room for a checkpoint");
        let _ = disk.remove(&path);
    }
}

/// Writes both copies; they are durable when this returns. Returns the bytes of one.
pub(crate) fn store(disk: &dyn Disk, dir: &Path, checkpoint: &Checkpoint) -> io::Result<u64> {
    let bytes = encode(checkpoint);
    for copy in 0..COPIES {
        put_whole(disk, &path(dir, copy), &new_path(dir, copy), &bytes)?;
        disk.sync_dir(dir)?;
    }
    Ok(bytes.len() as u64)
}

/// What [`load`] found.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The newest checkpoint, if there is one.
    pub newest: Option<Checkpoint>,
    /// Number of the checkpoint that either copy has at least; 0 if only one copy holds.
    pub safe_id: u64,
}

/// Reads the newest copy that holds. `files` are the journal files that there are.
pub(crate) fn load(disk: &dyn Disk, dir: &Path, files: &[Found]) -> Result<Loaded, OpenError> {
    let mut newest: Option<Checkpoint> = None;
    let mut ids = [0; COPIES as usize];
    let mut damaged = None;
    for copy in 0..COPIES {
        let path = path(dir, copy);
        let bytes = match read(disk, &path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(OpenError::io("read", &path, &error)),
        };
        match decode(&bytes) {
            Some((_, Some(found))) => {
                ids[copy as usize] = found.id;
                if newest.as_ref().is_none_or(|newest| newest.id < found.id) {
                    newest = Some(found);
                }
            }
            Some((version, None)) if !codec::is_read(version) => {
                return Err(OpenError::Version { path, version, supported: CHECKPOINT_VERSION });
            }
            _ => {
                tracing::warn!(path = %path.display(), "a checkpoint is damaged; using its copy");
                damaged = Some(path);
            }
        }
    }
    let needed = files.iter().filter_map(|file| file.header).map(|h| h.checkpoint).max();
    let needed = needed.unwrap_or(0);
    let found = newest.as_ref().map_or(0, |newest| newest.id);
    let whole = match &newest {
        Some(newest) => newest.id >= needed,
        // Everything is in the journal, from its first file on.
        None => needed == 0 && begins_at_the_beginning(disk, dir, files)?,
    };
    let path = damaged.unwrap_or_else(|| path(dir, 0));
    let safe_id = ids.into_iter().min().unwrap_or(0);
    if whole {
        Ok(Loaded { newest, safe_id })
    } else {
        Err(OpenError::Checkpoint { path, needed, found })
    }
}

fn begins_at_the_beginning(
    disk: &dyn Disk,
    dir: &Path,
    files: &[Found],
) -> Result<bool, OpenError> {
    if let Some(first) = files.first() {
        return Ok(first.sequence == 0);
    }
    let segments = dir.join(SEGMENT_DIR);
    let listed = disk.list(&segments);
    let listed = listed.map_err(|error| OpenError::io("list", &segments, &error))?;
    let is_ours =
        |path: &PathBuf| SegmentId::parse(path).is_some() || frames_sequence(path).is_some();
    Ok(!listed.iter().any(is_ours))
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
    let filled = read_available(&*file, 0, &mut bytes)?;
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
