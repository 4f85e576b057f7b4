//! What the handles, the writer and the reader of one store have in common.
//!
//! Lock order, where two are held: the table of topics, then a topic's state.

use crate::batch::RecordBatch;
use crate::disk::Disk;
use crate::error::{AppendError, Damage, ReadError};
use crate::flush_times::FlushCounters;
use crate::header::{journal_path, journal_sequence};
use crate::options::StoreOptions;
use crate::queue::Queue;
use crate::read_batch::{ReadBatch, ReadLimit};
use crate::recovery::Recovered;
use crate::segment::SegmentId;
use crate::topic::Topic;
use crate::topic_log::Appended;
use crate::wake::Wake;
use crate::writer::Writer;
use danube_core::sequence::Opened;
use danube_core::subscription::progress::ProgressRecord;
use danube_core::{Epoch, Offset, ProducerId, TopicId, WalSyncMode};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A callback that is called once, with the outcome.
pub(crate) type Done<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

/// Work for the writer.
pub(crate) enum Command {
    /// An append or a recording of progress.
    Write(Write),
    /// A topic was deleted: say so in the journal.
    Forget(Arc<Topic>),
    /// Open a producer anew, after everything that was asked before.
    Open(Open),
    /// Go on in a new file, so that the present one can be given back.
    Roll,
    /// Make everything written so far durable, then say so, and the number of the next frame.
    Sync(Option<Done<u64, AppendError>>),
    /// Begin to make everything written so far durable, while others are written.
    SyncSoon,
}

/// A producer to be opened.
pub(crate) struct Open {
    /// Of which topic.
    pub topic: Arc<Topic>,
    /// Which.
    pub producer: ProducerId,
    /// Whom to tell.
    pub done: Done<Opened, AppendError>,
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

/// Progress of a topic that belongs to the messages of another, with the epoch of its handle.
pub(crate) type Also = (Arc<Topic>, Epoch, Vec<ProgressRecord>);

/// Content of a [`Write`], and whom to tell.
pub(crate) enum Work {
    /// Messages.
    Append { batch: RecordBatch, also: Vec<Also>, done: Option<Done<Appended, AppendError>> },
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

/// A question that memory could not answer.
pub(crate) struct Read {
    /// About which topic.
    pub topic: Arc<Topic>,
    /// What, and whom to tell.
    pub wanted: Wanted,
}

/// Content of a [`Read`].
pub(crate) enum Wanted {
    /// Messages from an offset on.
    Messages { from: u64, limit: ReadLimit, done: Done<ReadBatch, ReadError> },
    /// The first offset at a time or later.
    OffsetAt { time: u64, done: Done<Offset, ReadError> },
}

impl Wanted {
    /// Tells the caller that there is no answer.
    pub(crate) fn refuse(self, error: ReadError) {
        match self {
            Wanted::Messages { done, .. } => answer(Some(done), Err(error)),
            Wanted::OffsetAt { done, .. } => answer(Some(done), Err(error)),
        }
    }
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
    pub checkpoint: AtomicU64,
    pub tend_failures: AtomicU64,
    pub begun: AtomicU64,
    pub files_adopted: AtomicU64,
    pub files_removed: AtomicU64,
    pub flushes: FlushCounters,
}

/// The common part.
pub(crate) struct Shared {
    pub options: StoreOptions,
    pub disk: Arc<dyn Disk>,
    pub topics: RwLock<HashMap<TopicId, Arc<Topic>>>,
    pub commands: Queue<Command>,
    /// Whoever has the work of the queue has this; gone once the store is closed.
    pub writer: Mutex<Option<Writer>>,
    /// Bytes of something small that whoever brings it may write, if it waits for no sync.
    pub easy_bytes: AtomicU64,
    /// The same, if it waits for one.
    pub easy_sync_bytes: AtomicU64,
    /// Whoever brings writes has had other things to do since the last group.
    pub callers_busy: AtomicBool,
    pub reads: Queue<Read>,
    /// Journal files, each with its first log sequence number.
    pub files: Mutex<BTreeMap<u64, u64>>,
    /// Journal files below this sequence are durable and never written again.
    pub full_below: AtomicU64,
    /// Whether the last large append found no room.
    pub tight: AtomicBool,
    /// Whether a journal file may be made durable while the next one is written: for that it has to
    /// be known after a restart whether the machine has kept running.
    pub can_defer: bool,
    /// The journal file that has no name yet; `u64::MAX` if there is none.
    pub unnamed: AtomicU64,
    /// How often journal files were written again in the place of others.
    pub rewrites: AtomicU64,
    /// From this journal file on, what was acknowledged may not be in the files as it was written,
    /// because a sync failed; `u64::MAX` as long as none has.
    pub unsafe_from: AtomicU64,
    /// Whether anything that was acknowledged may be lost to a power cut.
    pub unsynced: AtomicBool,
    /// Whether writes that wait for a sync come one at a time, and nothing else does.
    pub calm: AtomicBool,
    /// Files that wait to be journal files: they have the length of one, and what is in them is of no
    /// matter.
    pub spares: Mutex<Vec<PathBuf>>,
    /// Bytes of the file in reserve; 0 while there is none.
    pub reserve: AtomicU64,
    /// Files that no topic has any more and no checkpoint will name again.
    pub leavings: Mutex<Vec<PathBuf>>,
    /// A power loss may have taken topics of which nothing is left.
    pub tail_lost: bool,
    /// Where frames are missing of topics that are not all known.
    pub unknown: Option<Damage>,
    /// Where progress may be missing of topics that are not stopped.
    pub lost_progress: Option<Damage>,
    /// Rings when there is background work.
    pub wake: Wake,
    pub counters: Counters,
}

impl Shared {
    /// What recovery `found`, on `disk`.
    pub(crate) fn new(disk: Arc<dyn Disk>, options: StoreOptions, found: Recovered) -> Shared {
        let topics = found.topics.into_iter();
        let topics = topics.map(|(id, state)| (id, Arc::new(Topic::new(id, state)))).collect();
        let counters = Counters::default();
        counters.checkpoint.store(found.checkpoint, Relaxed);
        Shared {
            topics: RwLock::new(topics),
            commands: Queue::new(options.queue_count_max, options.queue_bytes_max),
            writer: Mutex::new(None),
            easy_bytes: AtomicU64::new(0),
            easy_sync_bytes: AtomicU64::new(0),
            callers_busy: AtomicBool::new(false),
            reads: Queue::new(options.read_queue_max, usize::MAX),
            files: Mutex::new(found.files),
            full_below: AtomicU64::new(found.next_sequence),
            tight: AtomicBool::new(false),
            can_defer: disk.boot_id().is_some(),
            unnamed: AtomicU64::new(u64::MAX),
            rewrites: AtomicU64::new(0),
            unsafe_from: AtomicU64::new(u64::MAX),
            unsynced: AtomicBool::new(false),
            calm: AtomicBool::new(false),
            spares: Mutex::new(found.spares),
            reserve: AtomicU64::new(0),
            leavings: Mutex::new(found.leavings),
            tail_lost: found.tail_lost,
            unknown: found.unknown,
            lost_progress: found.lost_progress,
            wake: Wake::default(),
            counters,
            disk,
            options,
        }
    }

    /// Path of journal file `sequence`.
    pub(crate) fn path(&self, sequence: u64) -> PathBuf {
        journal_path(&self.options.dir, sequence)
    }

    /// Whether `path` is a journal file whose bytes cannot be relied on now.
    pub(crate) fn is_unsafe(&self, path: &Path) -> bool {
        journal_sequence(path).is_some_and(|it| it >= self.unsafe_from.load(Acquire))
    }

    /// All topics, to be looked at one by one.
    pub(crate) fn each_topic(&self) -> Vec<Arc<Topic>> {
        let mut topics: Vec<_> = self.topics.read().values().cloned().collect();
        // In an order that is the same each time, so that a simulated history can be replayed.
        topics.sort_by_key(|topic| topic.id);
        topics
    }

    /// Ends a topic: it holds no memory any more, and its segments will go. Returns whether the
    /// log had anything of it.
    pub(crate) fn release(&self, topic: &Topic) -> bool {
        let mut state = topic.state.lock();
        state.forgotten = true;
        state.index = Default::default();
        state.cached = Default::default();
        state.progress = Default::default();
        state.sequences = Default::default();
        let segments = std::mem::take(&mut state.segments);
        let paths = segments.iter().map(|it| SegmentId::new(topic.id, it).path(&self.options.dir));
        self.leavings.lock().extend(paths);
        state.recorded
    }
}
