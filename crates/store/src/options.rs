//! What a store is opened with, and what it tells about itself.

use crate::clock::{Clock, NoClock};
use crate::flush_times::FlushTimes;
use danube_core::Incarnation;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of a [`Store`](crate::Store). All of them have defaults except the directory and the
/// incarnation.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Directory of the journal; made if absent. One process at a time.
    pub dir: PathBuf,
    /// This process start, as the catalog granted it; stamped on every journal file.
    pub incarnation: Incarnation,
    /// Size at which a journal file is full, in bytes. A group that is larger than this still
    /// goes into one file.
    pub file_bytes_max: u64,
    /// Longest time that writes which are not alone wait for more to come with them, in
    /// milliseconds. 0: those that come while a write or a sync is under way are the next group,
    /// and none waits.
    pub flush_interval_ms: u64,
    /// Most bytes that one write takes from the queue. A single larger frame still goes.
    pub flush_max_batch_bytes: usize,
    /// Most appends waiting for the writer; further ones are refused as full.
    pub queue_count_max: usize,
    /// Most bytes waiting for the writer; further ones are refused as full. A frame needs room
    /// for all of itself, so below [`FRAME_PAYLOAD_MAX`](crate::FRAME_PAYLOAD_MAX) this is also
    /// the largest append.
    pub queue_bytes_max: usize,
    /// Appends and progress of up to so many bytes are written by the thread that brings them, when
    /// nobody else is writing and there is room for them at hand; it may then wait for the operating
    /// system, as the writer would. Those that need a sync are so too, where they come one at a time,
    /// the disk is quick and [`Store::callers_are_busy`](crate::Store::callers_are_busy) was not
    /// said. `done` is called before the call returns. 0: never.
    pub inline_bytes_max: usize,
    /// Most bytes of recent batches kept in memory, of all topics together. 0 keeps none.
    pub cache_bytes_max: usize,
    /// Most reads waiting for the reader thread; further ones are refused as busy.
    pub read_queue_max: usize,
    /// Longest time that what was acknowledged before a sync stays without one, in milliseconds:
    /// what a power loss may take of `async` and `os_cache_flush` topics. No append waits for it.
    /// 0 leaves it to the operating system.
    pub sync_interval_ms: u64,
    /// Bytes without a sync at which one begins beside the writing. What is acknowledged before it
    /// is durable is kept in memory until then, and no append waits for it.
    pub unsynced_bytes_max: u64,
    /// Bytes that large batches may come with at once, on their way to the disk through the operating
    /// system's cache; what lasts longer goes past it, while the disk is quick.
    pub burst_bytes_max: u64,
    /// Batches are large from here on, in bytes.
    pub direct_batch_bytes_min: u64,
    /// Full journal files that stay as they are, so that what is finished soon is never written
    /// twice; older ones are turned into segments.
    pub journal_files_keep: usize,
    /// Journal files at which the background turns full ones into segments as fast as it can; as long
    /// as there are fewer, it gives way to those who write.
    pub journal_files_max: usize,
    /// Journal files kept for reuse once nothing needs them and nobody writes: overwriting is cheaper.
    /// Under load there may be more, up to `journal_files_max` together with those in use. 0: none.
    pub spare_files_max: usize,
    /// Size from which on a segment is not added to, in bytes.
    pub segment_bytes_max: u64,
    /// A topic's part of a full journal file that it keeps is not copied into a segment, but the file
    /// is kept as it is, where its frames have at least so many bytes on the average, and where such
    /// parts are nearly all of the file.
    pub adopt_frame_bytes_min: u64,
    /// Whether segments, checkpoints and retention run on a thread of their own. Without it they
    /// run when [`Store::tend`](crate::Store::tend) is called.
    pub background: bool,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

impl StoreOptions {
    /// The defaults, in `dir`, for process start `incarnation`.
    pub fn new(dir: impl Into<PathBuf>, incarnation: Incarnation) -> StoreOptions {
        StoreOptions {
            dir: dir.into(),
            incarnation,
            file_bytes_max: 64 << 20,
            flush_interval_ms: 0,
            flush_max_batch_bytes: 1 << 20,
            queue_count_max: 64 << 10,
            queue_bytes_max: 64 << 20,
            inline_bytes_max: 0,
            cache_bytes_max: 32 << 20,
            read_queue_max: 4096,
            sync_interval_ms: 1000,
            unsynced_bytes_max: 8 << 20,
            burst_bytes_max: 384 << 20,
            direct_batch_bytes_min: 32 << 10,
            journal_files_keep: 2,
            journal_files_max: 8,
            spare_files_max: 2,
            segment_bytes_max: 64 << 20,
            adopt_frame_bytes_min: 32 << 10,
            background: true,
            clock: Arc::new(NoClock),
        }
    }
}

/// How far opening a store has come; for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Journal files read to their end.
    pub files: u64,
    /// Journal files to read.
    pub files_total: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes to read; reserved but unwritten ones are skipped quickly.
    pub bytes_total: u64,
}

/// Counts since the store was opened, and sizes now. For metrics and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreStats {
    /// Topics with a state in memory.
    pub topics: u64,
    /// Topics that damage has stopped.
    pub topics_damaged: u64,
    /// Journal files.
    pub files: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of segments.
    pub segment_bytes: u64,
    /// Number of the newest checkpoint.
    pub checkpoint: u64,
    /// Passes of background work that failed, in part or as a whole.
    pub tend_failures: u64,
    /// Frames written: appends, progress and forgotten topics.
    pub frames: u64,
    /// Bytes of frames written.
    pub bytes: u64,
    /// Groups written, each with one vectored write.
    pub groups: u64,
    /// Data syncs made for `fsync_batch`.
    pub syncs: u64,
    /// Groups, or the synced part of groups, that failed.
    pub failures: u64,
    /// Appends refused because the queue was full.
    pub refused: u64,
    /// Appends waiting for the writer now.
    pub queued: u64,
    /// Bytes waiting for the writer now.
    pub queued_bytes: u64,
    /// Bytes of recent batches in memory now.
    pub cache_bytes: u64,
    /// Reads answered from memory.
    pub reads_cached: u64,
    /// Reads given to the reader thread.
    pub reads_disk: u64,
    /// Journal files begun after the first.
    pub rotations: u64,
    /// Journal files that segments have taken over as they were, so that they were not copied.
    pub files_adopted: u64,
    /// Files removed because nobody needs their messages any more.
    pub files_removed: u64,
    /// How long groups took to be written and, where asked for, synced.
    pub flushes: FlushTimes,
}
