//! Journal files that segments have taken over: when they get their other name, and when they go.
//!
//! What this leaves to others: which files those are ([`archive`](crate::archive)), and that the
//! checkpoint that says so is durable (`release`).
//!
//! Law: while a segment of the newest checkpoint needs a file, it is there under one of its two names,
//! and nothing else is ever written to it or gets its name.

use super::remove;
use crate::archive::is_thin;
use crate::segment::{SEGMENT_DIR, frames_path, open_frames};
use crate::shared::Shared;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

/// Journal files that segments have taken over, as far as they are not gone.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// All of them.
    pub all: BTreeSet<u64>,
    /// Those that are no journal files any more, and still have their names as such.
    pub unmoved: BTreeSet<u64>,
    /// Their sizes, as far as those were wanted.
    pub lens: BTreeMap<u64, u64>,
}

impl Taken {
    /// Whether some still have to get their other name.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.unmoved.is_empty()
    }

    /// Where journal file `sequence` is, which is none any more.
    pub(super) fn path(&self, shared: &Shared, sequence: u64) -> PathBuf {
        if self.all.contains(&sequence) && !self.unmoved.contains(&sequence) {
            frames_path(&shared.options.dir, sequence)
        } else {
            shared.path(sequence)
        }
    }

    /// Those of which segments have so little that what they have is better written again.
    pub(super) fn thin(&mut self, shared: &Shared) -> BTreeSet<u64> {
        if self.all.is_empty() {
            return BTreeSet::new();
        }
        let Shared { disk, options, .. } = shared;
        let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
        for topic in shared.each_topic() {
            for segment in &topic.state.lock().segments {
                if let Some(sequence) = segment.journal {
                    let bytes = wanted.entry(sequence).or_default();
                    *bytes = bytes.saturating_add(segment.bytes);
                }
            }
        }
        let Taken { lens, .. } = self;
        wanted.retain(|sequence, bytes| {
            let known = lens.get(sequence).copied();
            let len = known.or_else(|| {
                let opened = open_frames(&**disk, &options.dir, *sequence);
                // What cannot be looked at is told by whoever reads it.
                let len = opened.and_then(|file| file.len()).ok()?;
                lens.insert(*sequence, len);
                Some(len)
            });
            len.is_some_and(|len| is_thin(len, *bytes))
        });
        wanted.into_keys().collect()
    }

    /// Goes by a checkpoint that is durable and whose segments `need` such files: `released` of them
    /// are no journal files any more. What is needed no more goes, unless it was `kept` elsewhere.
    pub(super) fn settle(
        &mut self,
        shared: &Shared,
        need: &BTreeSet<u64>,
        released: Vec<u64>,
        kept: &[PathBuf],
    ) {
        let before = self.all.len();
        self.all.extend(need);
        let added = self.all.len() - before;
        shared.counters.files_adopted.fetch_add(added as u64, Relaxed);
        self.unmoved.extend(released);
        for sequence in self.all.difference(need).copied().collect::<Vec<_>>() {
            let path = self.path(shared, sequence);
            self.all.remove(&sequence);
            self.unmoved.remove(&sequence);
            self.lens.remove(&sequence);
            // As a journal file it goes with the others.
            if !shared.files.lock().contains_key(&sequence) && !kept.contains(&path) {
                remove(shared, vec![path]);
            }
        }
        self.rename(shared);
    }

    fn rename(&mut self, shared: &Shared) {
        let Shared { disk, options, .. } = shared;
        let unmoved = self.unmoved.len();
        self.unmoved.retain(|sequence| {
            let (from, to) = (shared.path(*sequence), frames_path(&options.dir, *sequence));
            match disk.rename(&from, &to) {
                Ok(()) => false,
                // It has it already, or it is lost, which a reader tells.
                Err(error) if error.kind() == ErrorKind::NotFound => false,
                Err(error) => {
                    tracing::warn!(path = %from.display(), %error, "cannot move a journal file to the segments; they are read where it is");
                    true
                }
            }
        });
        if self.unmoved.len() < unmoved
            && let Err(error) = disk.sync_dir(&options.dir.join(SEGMENT_DIR))
        {
            // A power loss may give them their old names back; the next start moves them again.
            tracing::debug!(%error, "cannot make the names of journal files among segments durable");
        }
    }
}
