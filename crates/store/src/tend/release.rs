//! A checkpoint, and the files that it makes needless.
//!
//! Law: a file goes only once a durable checkpoint does without it, and is used again only once its
//! former name is gone for good.

use super::pace::flush;
use super::{Tender, remove};
use crate::checkpoint::{self, Checkpoint, TopicPoint};
use crate::error::TendError;
use crate::header::{journal_sequence, spare_path};
use crate::room::is_full;
use crate::segment::{frames_path, frames_sequence};
use crate::shared::Shared;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// How long more files wait to be used again than without load, in milliseconds.
const SPARES_MS: u64 = 30_000;

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

    /// Removes files that wait to be used again, once nobody has written for a while.
    pub(super) fn trim_spares(&mut self) {
        let Shared { options, counters, spares, .. } = &*self.shared;
        let (now, written) = (options.clock.tick(), counters.bytes.load(Relaxed));
        if std::mem::replace(&mut self.seen.0, written) != written {
            self.seen.1 = now;
        } else if now >= self.seen.1.after_ms(SPARES_MS) {
            let mut spares = spares.lock();
            let keep = options.spare_files_max.min(spares.len());
            let needless = spares.split_off(keep);
            drop(spares);
            remove(&self.shared, needless);
        }
    }

    /// Keeps a journal file for another life, if there is room for it beside `others`: under load
    /// as many as the journal may have, because what the kernel has of them in memory is used
    /// again with them, and new memory is dear.
    fn spare(&self, path: &Path, sequence: u64, others: usize) -> Option<PathBuf> {
        let Shared { disk, options, spares, files, .. } = &*self.shared;
        let most = match options.spare_files_max {
            0 => 0,
            least => least.max(options.journal_files_max.saturating_sub(files.lock().len())),
        };
        if spares.lock().len() + others >= most {
            return None;
        }
        let len = disk.open(path).and_then(|file| file.len());
        let spare = spare_path(&options.dir, sequence);
        let whole = len.is_ok_and(|len| len == options.file_bytes_max);
        (whole && disk.rename(path, &spare).is_ok()).then_some(spare)
    }
}
