//! A checkpoint, and the files that it makes needless.
//!
//! Law: a file goes only once a durable checkpoint does without it, and is used again only once its
//! former name is gone for good.

use super::pace::flush;
use super::{Tender, remove};
use crate::checkpoint::{self, Checkpoint, TopicPoint};
use crate::error::TendError;
use crate::header::journal_sequence;
use crate::room::is_full;
use crate::segment::{frames_path, frames_sequence};
use crate::shared::Shared;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

impl Tender {
    /// Says what there is now, then gives back what is needed no more.
    pub(super) fn checkpoint(&mut self, settled: u64) -> Result<(), TendError> {
        let Shared { disk, options, counters, .. } = &*self.shared;
        let journal_lsn = self.shared.files.lock().get(&settled).copied();
        let topics: BTreeMap<_, _> = self
            .shared
            .each_topic()
            .iter()
            .filter_map(|topic| Some((topic.id, TopicPoint::of(topic)?)))
            .collect();
        // Nothing in it may be ahead of what a power loss leaves of the journal.
        let next_lsn = flush(&self.shared)?;
        let checkpoint = Checkpoint {
            id: self.generation,
            incarnation: options.incarnation.0,
            journal_from: settled,
            journal_lsn: journal_lsn.unwrap_or(next_lsn),
            topics,
        };
        let dir = &options.dir;
        let stored = checkpoint::store_tight(&**disk, dir, &checkpoint);
        let stored = stored.map_err(|error| {
            self.no_room = is_full(&error);
            TendError::io("write the checkpoint into", dir, &error)
        })?;
        counters.checkpoint.store(checkpoint.id, Relaxed);
        self.checkpoint_bytes = stored;
        self.dirty = false;
        remove(&self.shared, std::mem::take(&mut self.replaced));
        self.release(settled, &checkpoint.taken());
        Ok(())
    }

    /// Gives back journal files below `settled`, but for those that the checkpoint's segments `need`.
    fn release(&mut self, settled: u64, need: &BTreeSet<u64>) {
        let mut files = self.shared.files.lock();
        let rest = files.split_off(&settled);
        let released = std::mem::replace(&mut *files, rest);
        drop(files);
        let (taken, released): (Vec<u64>, Vec<u64>) =
            released.into_keys().partition(|sequence| need.contains(sequence));
        let damaged = self.keep_damaged(need);
        self.taken.settle(&self.shared, need, taken, &damaged);
        let mut spared = Vec::new();
        for sequence in released {
            let path = self.shared.path(sequence);
            if damaged.contains(&path) {
                continue;
            }
            match self.spare(&path, sequence, spared.len()) {
                Some(spare) => spared.push(spare),
                None => remove(&self.shared, vec![path]),
            }
        }
        // A file that is written again must not get its old name back from a power loss.
        let Shared { disk, options, spares, .. } = &*self.shared;
        match disk.sync_dir(&options.dir) {
            Ok(()) => spares.lock().extend(spared),
            Err(error) => tracing::warn!(%error, "journal files are not used again for now"),
        }
    }

    /// Sets journal files in which damage was found aside for whoever looks into it, unless segments
    /// `need` them.
    fn keep_damaged(&self, need: &BTreeSet<u64>) -> Vec<PathBuf> {
        let dir = &self.shared.options.dir;
        let mut kept = Vec::new();
        for topic in self.shared.each_topic() {
            let mut state = topic.state.lock();
            let Some(damage) = &mut state.damage else { continue };
            let named = journal_sequence(&damage.file).or_else(|| frames_sequence(&damage.file));
            let Some(sequence) = named else { continue };
            if self.shared.files.lock().contains_key(&sequence) {
                continue;
            }
            if need.contains(&sequence) {
                damage.file = frames_path(dir, sequence);
                continue;
            }
            let path = self.taken.path(&self.shared, sequence);
            let aside = self.shared.path(sequence).with_extension("damaged");
            if !kept.contains(&path) && self.shared.disk.rename(&path, &aside).is_err() {
                tracing::warn!(path = %path.display(), "cannot set a damaged journal file aside");
            }
            damage.file = aside;
            kept.push(path);
        }
        kept
    }
}
