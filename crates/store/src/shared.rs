//! What the handles, the writer and the reader of one store have in common.
//!
//! Lock order, where two are held: a topic's state, then the table of files.

use crate::disk::Disk;
use crate::error::{AppendError, ReadError};
use crate::header::journal_path;
use crate::options::StoreOptions;
use crate::queue::Queue;
use crate::topic::{Topic, TopicState};
use crate::topic_log::{Appended, ReadBatch, ReadLimit};
use bytes::Bytes;
use danube_core::subscription::progress::ProgressRecord;
use danube_core::{Epoch, TopicId, WalSyncMode};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A callback that is called once, with the outcome.
pub(crate) type Done<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

/// Work for the writer.
pub(crate) enum Command {
    /// An append or a recording of progress.
    Write(Write),
    /// A topic was deleted: say so in the journal, then look for files to delete.
    Forget(Arc<Topic>),
    /// Look for files to delete.
    Sweep,
}

/// One frame to be.
pub(crate) struct Write {
    /// Whose.
    pub topic: Arc<Topic>,
    /// Epoch of the handle it came through.
    pub epoch: Epoch,
    /// When it may be acknowledged.
    pub sync: WalSyncMode,
    /// Its content.
    pub work: Work,
}

/// Content of a [`Write`], and whom to tell.
pub(crate) enum Work {
    /// Messages.
    Append { records: Vec<Bytes>, done: Option<Done<Appended, AppendError>> },
    /// Progress, with its encoded form.
    Record { records: Vec<ProgressRecord>, payload: Vec<u8>, done: Option<Done<(), AppendError>> },
}

impl Work {
    /// Tells the caller that it failed, if it was not told anything yet.
    pub(crate) fn refuse(self, error: AppendError) {
        match self {
            Work::Append { done, .. } => answer(done, Err(error)),
            Work::Record { done, .. } => answer(done, Err(error)),
        }
    }
}

/// Calls `done`, if it is still there. A callback that panics must not take the journal with it.
pub(crate) fn answer<T, E>(done: Option<Done<T, E>>, outcome: Result<T, E>) {
    if let Some(done) = done
        && catch_unwind(AssertUnwindSafe(|| done(outcome))).is_err()
    {
        tracing::error!("a callback of the journal panicked; its caller may wait for ever");
    }
}

/// A read that memory could not answer.
pub(crate) struct Read {
    /// Of which topic.
    pub topic: Arc<Topic>,
    /// First offset wanted.
    pub from: u64,
    /// How much.
    pub limit: ReadLimit,
    /// Whom to tell.
    pub done: Done<ReadBatch, ReadError>,
}

/// Counters behind [`StoreStats`](crate::StoreStats).
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub frames: AtomicU64,
    pub bytes: AtomicU64,
    pub groups: AtomicU64,
    pub syncs: AtomicU64,
    pub failures: AtomicU64,
    pub refused: AtomicU64,
    pub cache_bytes: AtomicU64,
    pub reads_cached: AtomicU64,
    pub reads_disk: AtomicU64,
}

/// The common part.
pub(crate) struct Shared {
    pub options: StoreOptions,
    pub disk: Arc<dyn Disk>,
    pub topics: RwLock<HashMap<TopicId, Arc<Topic>>>,
    pub commands: Queue<Command>,
    pub reads: Queue<Read>,
    /// Journal files, and how many live topics have something in each.
    pub files: Mutex<BTreeMap<u64, usize>>,
    pub counters: Counters,
}

impl Shared {
    /// Path of journal file `sequence`.
    pub(crate) fn path(&self, sequence: u64) -> PathBuf {
        journal_path(&self.options.dir, sequence)
    }

    /// Notes that `topic` has something in `file`.
    pub(crate) fn uses(&self, topic: &mut TopicState, file: u64) {
        if topic.files.insert(file) {
            *self.files.lock().entry(file).or_default() += 1;
        }
    }

    /// Ends a topic: it holds no memory and no file any more. Returns whether the journal had
    /// anything of it.
    pub(crate) fn release(&self, topic: &Topic) -> bool {
        let mut state = topic.state.lock();
        state.forgotten = true;
        state.index = Default::default();
        state.cached = Default::default();
        state.progress = Default::default();
        let held = std::mem::take(&mut state.files);
        let mut files = self.files.lock();
        for file in &held {
            if let Some(topics) = files.get_mut(file) {
                *topics = topics.saturating_sub(1);
            }
        }
        !held.is_empty()
    }
}
