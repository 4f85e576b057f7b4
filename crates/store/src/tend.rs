//! The work behind the scenes: full journal files become segments, what retention does not keep
//! goes, a checkpoint says so, and what it makes needless is given back.
//!
//! Law: a file goes only once a durable checkpoint does without it.

use crate::archive::{archive, finished_in};
use crate::checkpoint::{self, Checkpoint, TopicPoint};
use crate::clock::SteadyWall;
use crate::error::{AppendError, TendError};
use crate::header::{journal_sequence, spare_path};
use crate::reader::JournalFiles;
use crate::room::{is_full, keep_reserve, reserve_bytes};
use crate::segment::SEGMENT_DIR;
use crate::shared::{Command, Shared};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc;
use std::time::Duration;

/// Longest time between two looks at what has become old.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most rounds that are left out where there was no room.
const PAUSE_MAX: u32 = 32;

/// State of the background work.
pub(crate) struct Tender {
    shared: Arc<Shared>,
    files: JournalFiles,
    wall: SteadyWall,
    /// Number of the latest attempt at a checkpoint.
    generation: u64,
    /// Files that the next checkpoint makes needless.
    replaced: Vec<PathBuf>,
    /// When everything was made durable last.
    synced_at: u64,
    /// Whether something changed that no checkpoint has.
    dirty: bool,
    /// Whether segments have names that are not durable.
    unsynced_names: bool,
    /// Bytes of the newest checkpoint.
    checkpoint_bytes: u64,
    /// Whether the last pass failed for want of room.
    no_room: bool,
    /// Rounds in which nothing is tried because of that.
    pause: u32,
    /// How long the next such pause will be.
    next_pause: u32,
}

impl Tender {
    /// Goes on after recovery; no file of a generation above `generation` exists.
    pub(crate) fn new(shared: Arc<Shared>, generation: u64) -> Tender {
        let files = JournalFiles::new(Arc::clone(&shared));
        let (wall, replaced) = (SteadyWall::default(), Vec::new());
        Tender {
            shared,
            files,
            wall,
            generation,
            replaced,
            synced_at: 0,
            dirty: false,
            unsynced_names: false,
            checkpoint_bytes: 0,
            no_room: false,
            pause: 0,
            next_pause: 1,
        }
    }

    /// How long the background thread waits when nothing rings.
    pub(crate) fn patience(shared: &Shared) -> Duration {
        match shared.options.sync_interval_ms {
            0 => PATIENCE,
            ms => PATIENCE.min(Duration::from_millis(ms)),
        }
    }

    /// Does what is due, as often as something rings or patience ends. Where there was no room, it
    /// is tried less and less often.
    pub(crate) fn round(&mut self) -> Result<(), TendError> {
        if self.pause > 0 {
            self.pause -= 1;
            return self.sync_if_due();
        }
        let done = self.pass();
        self.next_pause = if self.no_room { (2 * self.next_pause).min(PAUSE_MAX) } else { 1 };
        self.pause = if self.no_room { self.next_pause } else { 0 };
        done
    }

    /// Does all that is due.
    pub(crate) fn pass(&mut self) -> Result<(), TendError> {
        self.no_room = false;
        let done = self
            .sync_if_due()
            .and_then(|()| self.archive())
            .and_then(|settled| if self.dirty { self.checkpoint(settled) } else { Ok(()) });
        if done.is_err() {
            self.shared.counters.tend_failures.fetch_add(1, Relaxed);
        }
        if self.no_room {
            // What waits to be used again is better used for what has to be written now.
            let spares = std::mem::take(&mut *self.shared.spares.lock());
            remove(&self.shared, spares);
        } else {
            keep_reserve(&self.shared);
            let Shared { disk, options, .. } = &*self.shared;
            checkpoint::keep_reserve(&**disk, &options.dir, self.checkpoint_bytes);
        }
        self.leave_newest();
        done
    }

    /// On a full disk, sees to it that the newest file can go too, if most of it is finished.
    fn leave_newest(&self) {
        let newest = self.shared.files.lock().last_key_value().map(|(sequence, _)| *sequence);
        let Some(newest) = newest.filter(|_| self.shared.tight.load(Relaxed)) else { return };
        let each = self.shared.each_topic();
        let sums = each.iter().map(|topic| finished_in(topic, newest));
        let (all, gone) = sums.fold((0, 0), |(all, gone), it| (all + it.0, gone + it.1));
        if gone > reserve_bytes(&self.shared.options) && gone >= all / 2 {
            self.shared.commands.push_always(Command::Roll);
        }
    }

    /// Bounds the time that what was acknowledged before a sync stays without one.
    fn sync_if_due(&mut self) -> Result<(), TendError> {
        let options = &self.shared.options;
        let now = options.clock.tick().0;
        let due = options.sync_interval_ms > 0
            && now >= self.synced_at.saturating_add(options.sync_interval_ms);
        if due {
            self.synced_at = now;
            if self.shared.unsynced.load(Acquire) {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Moves what is in full journal files into segments. Returns the first file that is still
    /// needed.
    fn archive(&mut self) -> Result<u64, TendError> {
        let Shared { disk, options, .. } = &*self.shared;
        let leavings = std::mem::take(&mut *self.shared.leavings.lock());
        self.dirty |= !leavings.is_empty();
        remove(&self.shared, leavings);
        let settle_below = self.settle_below();
        let now = self.wall.now(options.clock.wall(), options.clock.tick());
        self.generation += 1;
        for topic in self.shared.each_topic() {
            let archived = archive(
                &self.shared,
                &mut self.files,
                &topic,
                settle_below,
                self.generation,
                now,
                &mut self.replaced,
            );
            self.unsynced_names |= archived.map_err(|failed| {
                self.no_room = is_full(&failed.error);
                TendError::io("write segments into", &failed.path, &failed.error)
            })?;
        }
        if self.unsynced_names {
            let dir = options.dir.join(SEGMENT_DIR);
            disk.sync_dir(&dir).map_err(|error| TendError::io("sync", &dir, &error))?;
            self.unsynced_names = false;
        }
        let first = self.shared.files.lock().keys().next().copied();
        self.dirty |= !self.replaced.is_empty() || first.is_some_and(|it| it < settle_below);
        Ok(settle_below)
    }

    /// First journal file that stays as it is.
    fn settle_below(&self) -> u64 {
        let full_below = self.shared.full_below.load(Acquire);
        let files = self.shared.files.lock();
        let full: Vec<u64> = files.range(..full_below).map(|(sequence, _)| *sequence).collect();
        // A full disk cannot wait for more to be finished.
        let tight = self.shared.tight.load(Relaxed);
        let keep = if tight { 0 } else { self.shared.options.journal_files_keep };
        let due = full.len().saturating_sub(keep);
        full.get(due).copied().unwrap_or(full_below)
    }

    /// Says what there is now, then gives back what is needed no more.
    fn checkpoint(&mut self, settled: u64) -> Result<(), TendError> {
        let Shared { disk, options, counters, .. } = &*self.shared;
        let journal_lsn = self.shared.files.lock().get(&settled).copied();
        let topics: BTreeMap<_, _> = self
            .shared
            .each_topic()
            .iter()
            .filter_map(|topic| Some((topic.id, TopicPoint::of(topic)?)))
            .collect();
        // Nothing in it may be ahead of what a power loss leaves of the journal.
        let next_lsn = self.flush()?;
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
        self.release(settled);
        Ok(())
    }

    /// Makes the journal durable; returns the number of its next frame.
    fn flush(&self) -> Result<u64, TendError> {
        let (tell, answer) = mpsc::sync_channel(1);
        let done = Box::new(move |outcome| {
            let _ = tell.send(outcome);
        });
        self.shared.commands.push_always(Command::Sync(Some(done)));
        // A closed queue has dropped it.
        let outcome = answer.recv().unwrap_or(Err(AppendError::Closed));
        outcome.map_err(TendError::Journal)
    }

    /// Gives back journal files below `settled`.
    fn release(&self, settled: u64) {
        let mut files = self.shared.files.lock();
        let needed = files.split_off(&settled);
        let released = std::mem::replace(&mut *files, needed);
        drop(files);
        let damaged = self.keep_damaged();
        let mut spared = Vec::new();
        for sequence in released.into_keys() {
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

    /// Sets journal files in which damage was found aside for whoever looks into it.
    fn keep_damaged(&self) -> Vec<PathBuf> {
        let mut kept = Vec::new();
        for topic in self.shared.each_topic() {
            let mut state = topic.state.lock();
            let Some(damage) = &mut state.damage else { continue };
            let path = damage.file.clone();
            let settled = journal_sequence(&path)
                .is_some_and(|sequence| !self.shared.files.lock().contains_key(&sequence));
            if settled {
                let aside = path.with_extension("damaged");
                if !kept.contains(&path) && self.shared.disk.rename(&path, &aside).is_err() {
                    tracing::warn!(path = %path.display(), "cannot set a damaged journal file aside");
                }
                damage.file = aside;
                kept.push(path);
            }
        }
        kept
    }

    /// Keeps a journal file for another life, if there is room for it beside `others`.
    fn spare(&self, path: &Path, sequence: u64, others: usize) -> Option<PathBuf> {
        let Shared { disk, options, spares, .. } = &*self.shared;
        if spares.lock().len() + others >= options.spare_files_max {
            return None;
        }
        let len = disk.open(path).and_then(|file| file.len());
        let spare = spare_path(&options.dir, sequence);
        let whole = len.is_ok_and(|len| len == options.file_bytes_max);
        (whole && disk.rename(path, &spare).is_ok()).then_some(spare)
    }
}

/// Removes files; what cannot be removed is tried again.
fn remove(shared: &Shared, paths: Vec<PathBuf>) {
    for path in paths {
        match shared.disk.remove(&path) {
            Ok(()) => drop(shared.counters.files_removed.fetch_add(1, Relaxed)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot remove a file nobody needs");
                shared.leavings.lock().push(path);
            }
        }
    }
}
