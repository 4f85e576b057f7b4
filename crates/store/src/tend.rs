//! The work behind the scenes: full journal files become segments, what retention does not keep
//! goes, a checkpoint says so, and what it makes needless is given back.
//!
//! Law: a file goes only once a durable checkpoint does without it.

use crate::archive::{Means, Pass, archive, finished_in, takers};
use crate::checkpoint;
use crate::clock::SteadyWall;
use crate::error::TendError;
use crate::reader::JournalFiles;
use crate::room::{is_full, keep_reserve, reserve_bytes};
use crate::segment::SEGMENT_DIR;
use crate::shared::{Command, Shared};
use danube_core::Tick;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

mod pace;
mod release;
mod spares;
mod taken;

pub(crate) use pace::Pace;
pub(crate) use taken::Taken;

/// Longest time between two looks at what has become old.
const PATIENCE: Duration = Duration::from_secs(30);
/// Journal files that one round of the background takes at most, so that what is done is given back
/// soon.
const ROUND_FILES_MAX: usize = 2;
/// Most rounds that are left out where there was no room.
const PAUSE_MAX: u32 = 32;

/// State of the background work.
pub(crate) struct Tender {
    shared: Arc<Shared>,
    means: Means,
    wall: SteadyWall,
    /// Number of the latest attempt at a checkpoint.
    generation: u64,
    /// Files that the next checkpoint makes needless.
    replaced: Vec<PathBuf>,
    /// Journal files that segments have taken over.
    taken: Taken,
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
    /// Bytes that the journal had got when that was looked at, and when there were more last.
    seen: (u64, Tick),
    /// Whether new files are worth being filled with zeros, as far as is known.
    zeros_help: bool,
}

impl Tender {
    /// Goes on after recovery; no file of a generation above `generation` exists.
    pub(crate) fn new(shared: Arc<Shared>, generation: u64, taken: Taken) -> Tender {
        let files = JournalFiles::new(Arc::clone(&shared), Arc::clone(&shared.disk));
        let means = Means { files, pace: Pace::new(Arc::clone(&shared)) };
        let (wall, replaced) = (SteadyWall::default(), Vec::new());
        Tender {
            shared,
            means,
            wall,
            generation,
            replaced,
            taken,
            dirty: false,
            unsynced_names: false,
            checkpoint_bytes: 0,
            no_room: false,
            pause: 0,
            next_pause: 1,
            seen: (0, Tick(0)),
            zeros_help: true,
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
            return self.means.pace.sync_if_due();
        }
        let done = self.pass_over(ROUND_FILES_MAX);
        self.next_pause = if self.no_room { (2 * self.next_pause).min(PAUSE_MAX) } else { 1 };
        self.pause = if self.no_room { self.next_pause } else { 0 };
        done
    }

    /// Does all that is due.
    pub(crate) fn pass(&mut self) -> Result<(), TendError> {
        self.pass_over(usize::MAX)
    }

    /// Does what is due, with so many journal files at most.
    fn pass_over(&mut self, files_max: usize) -> Result<(), TendError> {
        self.no_room = false;
        let done = self
            .means
            .pace
            .sync_if_due()
            .and_then(|()| self.archive(files_max))
            .and_then(|settled| if self.dirty { self.checkpoint(settled) } else { Ok(()) });
        if done.is_err() {
            self.shared.counters.tend_failures.fetch_add(1, Relaxed);
        }
        if self.no_room || self.shared.tight.load(Relaxed) {
            // What waits to be used again is better used for what has to be written now.
            let spares = std::mem::take(&mut *self.shared.spares.lock());
            remove(&self.shared, spares);
        } else {
            keep_reserve(&self.shared);
            let Shared { disk, options, .. } = &*self.shared;
            checkpoint::keep_reserve(&**disk, &options.dir, self.checkpoint_bytes);
        }
        self.trim_spares();
        if done.is_ok() && !self.no_room {
            self.prepare_spares();
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

    /// Moves what is in full journal files into segments. Returns the first file that is still
    /// needed.
    fn archive(&mut self, files_max: usize) -> Result<u64, TendError> {
        let Shared { disk, options, .. } = &*self.shared;
        let leavings = std::mem::take(&mut *self.shared.leavings.lock());
        self.dirty |= !leavings.is_empty();
        remove(&self.shared, leavings);
        let settle_below = self.settle_below(files_max);
        let now = self.wall.now(options.clock.wall(), options.clock.tick());
        self.generation += 1;
        let generation = self.generation;
        let takers = takers(&self.shared, settle_below, now);
        // Where there is no room, nothing is written that can stay as it is.
        let has_room = !self.shared.tight.load(Relaxed) && self.next_pause == 1;
        let thin = if has_room { self.taken.thin(&self.shared) } else { BTreeSet::new() };
        let pass = Pass { settle_below, generation, now, takers, thin };
        for topic in self.shared.each_topic() {
            let (means, replaced) = (&mut self.means, &mut self.replaced);
            let archived = archive(&self.shared, means, &topic, &pass, replaced);
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
        self.dirty |= !self.replaced.is_empty() || self.taken.is_unsettled();
        self.dirty |= first.is_some_and(|it| it < settle_below);
        Ok(settle_below)
    }

    /// First journal file that stays as it is, if so many may go at most.
    fn settle_below(&self, files_max: usize) -> u64 {
        let full_below = self.shared.full_below.load(Acquire);
        let files = self.shared.files.lock();
        let full: Vec<u64> = files.range(..full_below).map(|(sequence, _)| *sequence).collect();
        // A full disk cannot wait for more to be finished.
        let tight = self.shared.tight.load(Relaxed);
        let keep = if tight { 0 } else { self.shared.options.journal_files_keep };
        let due = full.len().saturating_sub(keep);
        if due > files_max {
            self.shared.wake.set();
        }
        full.get(due.min(files_max)).copied().unwrap_or(full_below)
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
