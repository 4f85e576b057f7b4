//! The store: a directory, its lock, its two threads and its topics.

use crate::disk::{Disk, OsDisk};
use crate::error::{CloseError, OpenError};
use crate::lock::DirLock;
use crate::options::{RecoveryProgress, StoreOptions, StoreStats};
use crate::queue::Queue;
use crate::reader::Reader;
use crate::recovery::recover;
use crate::shared::{Command, Counters, Shared};
use crate::topic::{Topic, TopicState};
use crate::topic_log::TopicLog;
use crate::writer::Writer;
use danube_core::{Epoch, TopicId};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};

/// The log of one data directory. Dropping it closes it.
pub struct Store {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

/// What closing ends, in this order.
struct Running {
    writer: JoinHandle<Result<(), CloseError>>,
    reader: JoinHandle<()>,
    lock: DirLock,
}

impl Store {
    /// Opens the log in `options.dir`, made if absent: takes its lock, reads it, cuts a torn end.
    /// `progress` hears of each file that has been read. Damage elsewhere stops the topics it may
    /// have hit (see [`TopicLog::damage`]) and nothing else. No file is made before the first
    /// append.
    ///
    /// # Errors
    /// [`OpenError`]: the directory is in use, cannot be read or written, or holds a newer format.
    pub fn open(
        options: StoreOptions,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Store, OpenError> {
        Store::open_on(Arc::new(OsDisk), options, progress)
    }

    /// As [`open`](Self::open), with the journal's files on `disk`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        disk: Arc<dyn Disk>,
        options: StoreOptions,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Store, OpenError> {
        let dir = options.dir.clone();
        disk.make_dir(&dir).map_err(|error| OpenError::io("make", &dir, &error))?;
        let lock = DirLock::take(&*disk, &dir)?;
        let found = recover(&*disk, &dir, options.incarnation, progress)?;
        let topics: HashMap<_, _> = found
            .topics
            .into_iter()
            .map(|(id, state)| (id, Arc::new(Topic::new(id, state))))
            .collect();
        let shared = Arc::new(Shared {
            disk,
            topics: RwLock::new(topics),
            commands: Queue::new(options.queue_count_max, options.queue_bytes_max),
            reads: Queue::new(options.read_queue_max, usize::MAX),
            files: Mutex::new(found.files),
            counters: Counters::default(),
            options,
        });
        let common = Arc::clone(&shared);
        let writer = Writer::new(common, found.next_sequence, found.next_lsn, found.last_topic);
        let reader = Reader::new(Arc::clone(&shared));
        let spawn = |error: io::Error| OpenError::io("start threads for", &dir, &error);
        let writer = Builder::new().name("journal-writer".into()).spawn(|| writer.run());
        let writer = writer.map_err(spawn)?;
        let reader = Builder::new().name("journal-reader".into()).spawn(|| reader.run());
        let reader = reader.map_err(|error| {
            shared.commands.close();
            spawn(error)
        })?;
        Ok(Store { shared, running: Mutex::new(Some(Running { writer, reader, lock })) })
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

    /// Ends a topic that was deleted: its handles answer with errors, and files that hold nothing
    /// of any other topic are deleted soon. An unknown topic is no error.
    pub fn forget_topic(&self, id: TopicId) {
        let Some(topic) = self.shared.topics.write().remove(&id) else { return };
        if self.shared.release(&topic) {
            self.shared.commands.push_always(Command::Forget(topic));
        }
    }

    /// Keeps only the topics that `lives` says still exist. To be called after opening, when the
    /// catalog is known: a topic may have been deleted just before a crash. Logs what damage has
    /// stopped of the rest.
    pub fn retain(&self, lives: &dyn Fn(TopicId) -> bool) {
        self.shared.topics.write().retain(|id, topic| {
            let lives = lives(*id);
            if !lives {
                self.shared.release(topic);
            } else if let Some(damage) = &topic.state.lock().damage {
                tracing::error!(%damage, "damage found in the journal");
            }
            lives
        });
        self.shared.commands.push_always(Command::Sweep);
    }

    /// Counts and sizes.
    pub fn stats(&self) -> StoreStats {
        let Shared { topics, commands, files, counters, .. } = &*self.shared;
        let (queued, queued_bytes) = commands.load();
        let topics: Vec<Arc<Topic>> = topics.read().values().cloned().collect();
        let damaged = topics.iter().filter(|topic| topic.state.lock().damage.is_some());
        StoreStats {
            topics: topics.len() as u64,
            topics_damaged: damaged.count() as u64,
            files: files.lock().len() as u64,
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
        }
    }

    /// Refuses new work, finishes what is waiting, makes it all durable and gives up the
    /// directory. Handles answer with errors from now on; closing again does nothing.
    ///
    /// # Errors
    /// [`CloseError`] when the last sync failed.
    pub fn close(&self) -> Result<(), CloseError> {
        let running = self.running.lock().take();
        let Some(Running { writer, reader, lock }) = running else { return Ok(()) };
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
