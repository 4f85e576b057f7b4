//! The store: a directory, its lock, its two threads and its topics.

use crate::checkpoint;
use crate::disk::{Disk, OsDisk};
use crate::error::{CloseError, Damage, OpenError, TendError};
use crate::lock::DirLock;
use crate::options::{RecoveryProgress, StoreOptions, StoreStats};
use crate::reader::Reader;
use crate::recovery::recover;
use crate::room::keep_reserve;
use crate::segment::SEGMENT_DIR;
use crate::shared::{Command, Shared};
use crate::tend::Tender;
use crate::topic::{Topic, TopicState};
use crate::topic_log::TopicLog;
use crate::writer::{self, Writer};
use danube_core::{Epoch, TopicId};
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};

/// The log of one data directory. Dropping it closes it.
pub struct Store {
    shared: Arc<Shared>,
    tender: Arc<Mutex<Tender>>,
    running: Mutex<Option<Running>>,
}

/// What closing ends, in this order.
struct Running {
    tender: Option<JoinHandle<()>>,
    writer: JoinHandle<Result<(), CloseError>>,
    reader: JoinHandle<()>,
    lock: DirLock,
}

impl Store {
    /// Opens the log in `options.dir`, made if absent: takes its lock, reads the last checkpoint
    /// and the journal after it. `progress` hears of each file that has been read. Damage stops
    /// the topics it may have hit (see [`TopicLog::damage`]) and nothing else. No journal file is
    /// made before the first append.
    ///
    /// # Errors
    /// [`OpenError`]: the directory is in use, cannot be read or written, holds another format,
    /// or lacks the checkpoint that its journal builds upon.
    pub fn open(
        options: StoreOptions,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Store, OpenError> {
        Store::open_on(Arc::new(OsDisk), options, progress)
    }

    /// As [`open`](Self::open), with the log's files on `disk`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        disk: Arc<dyn Disk>,
        options: StoreOptions,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Store, OpenError> {
        let dir = options.dir.clone();
        for dir in [&dir, &dir.join(SEGMENT_DIR)] {
            disk.make_dir(dir).map_err(|error| OpenError::io("make", dir, &error))?;
        }
        let lock = DirLock::take(&*disk, &dir)?;
        let mut found = recover(&*disk, &dir, options.incarnation, progress)?;
        // A killed process may have left bytes that only the kernel has. Once they are read and
        // acted upon, they must not be lost to a later power cut.
        for unsecured in std::mem::take(&mut found.unsecured) {
            unsecured.secure(&*disk, &dir)?;
        }
        disk.sync_dir(&dir).map_err(|error| OpenError::io("sync", &dir, &error))?;
        let taken = std::mem::take(&mut found.taken);
        let (next_sequence, tip, generation) = (found.next_sequence, found.tip, found.generation);
        let shared = Arc::new(Shared::new(disk, options, found));
        keep_reserve(&shared);
        checkpoint::keep_reserve(&*shared.disk, &dir, 0);
        *shared.writer.lock() = Some(Writer::new(Arc::clone(&shared), next_sequence, tip));
        let reader = Reader::new(Arc::clone(&shared));
        let tender = Arc::new(Mutex::new(Tender::new(Arc::clone(&shared), generation, taken)));
        let running = start(&shared, reader, &tender, lock);
        let running = running.map_err(|error| {
            shared.commands.close();
            shared.reads.close();
            // It points back to what holds it.
            shared.writer.lock().take();
            OpenError::io("start threads for", &dir, &error)
        })?;
        Ok(Store { shared, tender, running: Mutex::new(Some(running)) })
    }

    /// Does all background work that is due, and returns when it is done: full journal files
    /// become segments, retention takes what is old, a checkpoint is written, files are given
    /// back. With [`StoreOptions::background`] this happens by itself.
    ///
    /// # Errors
    /// [`TendError`]: the disk refused. What was not finished is done by a later pass.
    pub fn tend(&self) -> Result<(), TendError> {
        self.tender.lock().pass()
    }

    /// Says that those who bring writes have others to serve, who shall not wait for the disk: the
    /// next few syncs are done by the writer's thread. Cheap enough to be called each time.
    pub fn callers_are_busy(&self) {
        let busy = &self.shared.callers_busy;
        // Looked at first, so that threads that say so often do not take it from each other.
        if !busy.load(Relaxed) {
            busy.store(true, Relaxed);
        }
    }

    /// Waits until the writer has nothing to do: everything sent before is written and answered,
    /// and what follows from that is done too. For tests that want a fixed order of events.
    pub fn settle(&self) {
        self.shared.commands.settle();
    }

    /// Tells which topics the catalog has, after opening. Those that the log has nothing of go on
    /// above every offset that they can have promised where a power loss may have taken them, and
    /// are stopped where damage may have.
    pub fn adopt(&self, topics: impl IntoIterator<Item = TopicId>) {
        let Shared { tail_lost, unknown, .. } = &*self.shared;
        if !*tail_lost && unknown.is_none() {
            return;
        }
        let mut known = self.shared.topics.write();
        for id in topics {
            let damage = unknown.as_ref().map(|damage| Damage { topic: id, ..damage.clone() });
            known.entry(id).or_insert_with(|| {
                let (tail_lost, recorded) = (*tail_lost, damage.is_some());
                let state = TopicState { tail_lost, damage, recorded, ..TopicState::default() };
                Arc::new(Topic::new(id, state))
            });
        }
    }

    /// Where frames are missing that may have had progress of topics that are not stopped, if there
    /// is such a place: messages that were finished come again.
    pub fn lost_progress(&self) -> Option<String> {
        let place =
            |damage: &Damage| format!("byte {} of {}", damage.position, damage.file.display());
        self.shared.lost_progress.as_ref().map(place)
    }

    /// The log of `topic` in its life `epoch`. Appends through handles of a lower epoch are
    /// refused from now on. A topic that the log has nothing of is empty.
    pub fn topic(&self, id: TopicId, epoch: Epoch) -> TopicLog {
        let known = self.shared.topics.read().get(&id).cloned();
        let topic = known.unwrap_or_else(|| {
            let fresh = || Arc::new(Topic::new(id, TopicState::default()));
            Arc::clone(self.shared.topics.write().entry(id).or_insert_with(fresh))
        });
        let mut state = topic.state.lock();
        state.epoch = state.epoch.max(epoch.0);
        drop(state);
        TopicLog { shared: Arc::clone(&self.shared), topic, epoch }
    }

    /// Ends a topic that was deleted: its handles answer with errors, its segments are deleted
    /// soon, and what the journal has of it goes with the journal. An unknown topic is no error.
    pub fn forget_topic(&self, id: TopicId) {
        let Some(topic) = self.shared.topics.write().remove(&id) else { return };
        if self.shared.release(&topic) {
            self.shared.commands.push_always(Command::Forget(topic));
            self.shared.wake.set();
        }
    }

    /// Keeps only the topics that `lives` says still exist. To be called after opening, when the
    /// catalog is known: a topic may have been deleted just before a crash. Logs what damage has
    /// stopped of the rest.
    pub fn retain(&self, lives: &dyn Fn(TopicId) -> bool) {
        if let Some(place) = self.lost_progress() {
            tracing::warn!(
                place,
                "frames are missing in the journal; what any topic's subscriptions had finished may come again"
            );
        }
        self.shared.topics.write().retain(|id, topic| {
            let lives = lives(*id);
            if !lives {
                self.shared.release(topic);
            } else if let Some(damage) = &topic.state.lock().damage {
                tracing::error!(%damage, "damage found in the journal");
            }
            lives
        });
        self.shared.wake.set();
    }

    /// Counts and sizes.
    pub fn stats(&self) -> StoreStats {
        let Shared { topics, commands, files, counters, .. } = &*self.shared;
        let (queued, queued_bytes) = commands.load();
        let topics: Vec<Arc<Topic>> = topics.read().values().cloned().collect();
        let (mut damaged, mut segments, mut segment_bytes) = (0, 0, 0);
        for topic in &topics {
            let state = topic.state.lock();
            damaged += u64::from(state.damage.is_some());
            segments += state.segments.len() as u64;
            segment_bytes += state.segments.iter().map(|segment| segment.bytes).sum::<u64>();
        }
        StoreStats {
            topics: topics.len() as u64,
            topics_damaged: damaged,
            files: files.lock().len() as u64,
            segments,
            segment_bytes,
            checkpoint: counters.checkpoint.load(Relaxed),
            tend_failures: counters.tend_failures.load(Relaxed),
            frames: counters.frames.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            groups: counters.groups.load(Relaxed),
            syncs: counters.syncs.load(Relaxed),
            failures: counters.failures.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            queued: queued as u64,
            queued_bytes: queued_bytes as u64,
            cache_bytes: counters.cache_bytes.load(Relaxed),
            reads_cached: counters.reads_cached.load(Relaxed),
            reads_disk: counters.reads_disk.load(Relaxed),
            rotations: counters.begun.load(Relaxed).saturating_sub(1),
            files_adopted: counters.files_adopted.load(Relaxed),
            files_removed: counters.files_removed.load(Relaxed),
            flushes: counters.flushes.load(),
        }
    }

    /// Refuses new work, finishes what is waiting, makes it all durable and gives up the
    /// directory. Handles answer with errors from now on; closing again does nothing.
    ///
    /// # Errors
    /// [`CloseError`] when the last sync failed.
    pub fn close(&self) -> Result<(), CloseError> {
        let running = self.running.lock().take();
        let Some(Running { tender, writer, reader, lock }) = running else { return Ok(()) };
        self.shared.wake.close();
        if tender.is_some_and(|tender| tender.join().is_err()) {
            tracing::error!("the thread that tends the log panicked");
        }
        self.shared.commands.close();
        self.shared.reads.close();
        let written = writer.join().unwrap_or_else(|_| {
            let (path, error) = (self.shared.options.dir.clone(), "the writer panicked".to_owned());
            Err(CloseError { path, error })
        });
        if reader.join().is_err() {
            tracing::error!("the journal's reader panicked");
        }
        drop(lock);
        written
    }
}

fn start(
    shared: &Arc<Shared>,
    reader: Reader,
    tender: &Arc<Mutex<Tender>>,
    lock: DirLock,
) -> io::Result<Running> {
    let common = Arc::clone(shared);
    let writer =
        Builder::new().name("journal-writer".into()).spawn(move || writer::run(&common))?;
    let reader = Builder::new().name("journal-reader".into()).spawn(|| reader.run())?;
    let (tender, common) = (Arc::clone(tender), Arc::clone(shared));
    let tend = move || {
        let patience = Tender::patience(&common);
        while common.wake.wait(patience) {
            if let Err(error) = tender.lock().round() {
                tracing::warn!(%error, "background work on the log stopped");
            }
        }
    };
    let tender =
        shared.options.background.then(|| Builder::new().name("log-tender".into()).spawn(tend));
    Ok(Running { tender: tender.transpose()?, writer, reader, lock })
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "closed the journal");
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("dir", &self.shared.options.dir).finish_non_exhaustive()
    }
}
