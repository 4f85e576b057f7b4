//! What the store knows of one topic: where its batches are, which of them are in memory, and how
//! far its subscriptions have come.
//!
//! Law: `next` counts only what was acknowledged as its mode says, so a reader that stays below
//! it never sees a message that a failed write takes back.

use crate::batch::RecordBatch;
use crate::error::Damage;
use crate::header::journal_sequence;
use crate::read_batch::{ReadBatch, ReadLimit};
use crate::segment::SegmentRef;
use danube_core::sequence::Sequences;
use danube_core::subscription::progress::{Progress, ProgressRecord, Step};
use danube_core::{Offset, Retention, SubscriptionId, TopicId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Most messages, of all topics together, that are acknowledged and not yet synced: the writer
/// syncs before there are more. So after a power loss no topic can have promised an offset this
/// far above what is left of it.
pub(crate) const PROMISED_MAX: u64 = 1 << 20;

/// Where one batch of messages is in the journal. Kept small: there is one per append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// First offset.
    pub first: u64,
    /// Journal file.
    pub file: u64,
    /// Byte of the file where the frame begins.
    pub position: u64,
    /// When it was framed, in milliseconds since the Unix epoch.
    pub time: u64,
    /// Messages.
    pub count: u32,
    /// Bytes of the frame's payload.
    pub payload_len: u32,
}

impl Batch {
    /// One past the last offset.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }
}

/// A batch that is still in memory.
#[derive(Debug)]
pub(crate) struct CachedBatch {
    /// First offset.
    pub first: u64,
    /// The messages.
    pub batch: RecordBatch,
}

/// Progress of one subscription, and whether a [`Step::Moved`] fixed where it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tracked {
    /// As recorded.
    pub progress: Progress,
    /// Whether the cursor was ever put somewhere.
    pub anchored: bool,
}

/// One topic; shared by its handles, the writer and the reader.
#[derive(Debug)]
pub(crate) struct Topic {
    /// Its id.
    pub id: TopicId,
    /// Everything that changes.
    pub state: Mutex<TopicState>,
}

/// The changing part of a [`Topic`].
#[derive(Debug, Default)]
pub(crate) struct TopicState {
    /// Highest epoch seen.
    pub epoch: u32,
    /// One past the last offset that readers may see.
    pub next: u64,
    /// One past the last offset of the group being written; equal to `next` between groups.
    pub framed: u64,
    /// No new message gets an offset below this: offsets promised but lost.
    pub floor: u64,
    /// Time of the last frame, in milliseconds since the Unix epoch.
    pub time: u64,
    /// A power loss may have taken messages whose offsets were promised.
    pub tail_lost: bool,
    /// Whether the topic's last messages were acknowledged after a sync only.
    pub synced_mode: bool,
    /// Segments, by offset. What no segment has below [`settled`](Self::settled) is gone.
    pub segments: VecDeque<SegmentRef>,
    /// One past the last offset that is no matter of the journal any more.
    pub settled: u64,
    /// All batches in the journal, by offset: none of them below `settled`.
    pub index: VecDeque<Batch>,
    /// The last batches, as far as memory allows.
    pub cached: VecDeque<CachedBatch>,
    /// Subscriptions that have recorded something.
    pub progress: BTreeMap<SubscriptionId, Tracked>,
    /// Producers that number their messages.
    pub sequences: Sequences,
    /// What the topic keeps; nothing goes before this is known.
    pub retention: Option<Retention>,
    /// Subscriptions that there are, and where they began; nothing goes before this is known.
    pub subscriptions: Option<BTreeMap<SubscriptionId, Offset>>,
    /// Whether the journal or a checkpoint has anything of the topic.
    pub recorded: bool,
    /// What stopped the topic, if anything did.
    pub damage: Option<Damage>,
    /// Deleted in the catalog.
    pub forgotten: bool,
}

impl Topic {
    /// A topic in state `state`.
    pub(crate) fn new(id: TopicId, state: TopicState) -> Topic {
        Topic { id, state: Mutex::new(state) }
    }
}

impl TopicState {
    /// First readable offset.
    pub(crate) fn start(&self) -> u64 {
        let segment = self.segments.front().map(|segment| segment.base);
        segment.or_else(|| self.index.front().map(|batch| batch.first)).unwrap_or(self.next)
    }

    /// First offset that the next message may get: above everything that was promised.
    pub(crate) fn next_free(&self, synced_mode: bool) -> u64 {
        let free = self.framed.max(self.floor);
        // Nothing is promised before its sync where everything waits for one.
        let promised = self.tail_lost && !(synced_mode && (self.synced_mode || self.next == 0));
        if promised { free.saturating_add(PROMISED_MAX) } else { free }
    }

    /// Takes a recorded step.
    pub(crate) fn apply(&mut self, record: &ProgressRecord) {
        let tracked = self.progress.entry(record.subscription).or_default();
        tracked.anchored |= matches!(record.step, Step::Moved { .. });
        tracked.progress.apply(&record.step);
    }

    /// How far `subscription`, which began at `start`, has come.
    pub(crate) fn subscription(&self, id: SubscriptionId, start: Offset) -> Progress {
        let Some(tracked) = self.progress.get(&id) else { return Progress::at(start) };
        let mut progress = tracked.progress.clone();
        if !tracked.anchored {
            // Finishing is a union of ranges, so this is the same as having begun at `start`.
            progress.apply(&Step::Finished { first: Offset(0), end: start });
        }
        progress
    }

    /// Raises the floor to what subscriptions have finished: a cursor must never sit ahead of
    /// messages that are still to come.
    pub(crate) fn raise_floor(&mut self) {
        for tracked in self.progress.values() {
            let above = tracked.progress.finished_above_cursor().map(|(_, end)| end).last();
            let reached = above.unwrap_or(tracked.progress.cursor()).0;
            self.floor = self.floor.max(reached);
        }
    }

    /// Whether offset `first` is what the index has at byte `position` of the file `path`; of what
    /// is in segments, that is always so.
    pub(crate) fn is_at(&self, first: u64, path: &Path, position: u64) -> bool {
        let Some(sequence) = journal_sequence(path) else { return true };
        let at = self.index.partition_point(|batch| batch.first < first);
        let here = |batch: &Batch| {
            (batch.first, batch.file, batch.position) == (first, sequence, position)
        };
        self.index.get(at).is_some_and(here)
    }

    /// The first offset in the journal with a time of `time` or later.
    pub(crate) fn offset_at(&self, time: u64) -> u64 {
        let at = self.index.partition_point(|batch| batch.time < time);
        self.index.get(at).map_or(self.next, |batch| batch.first)
    }

    /// The answer to a read if memory has it: at the tail, or within the cached batches.
    pub(crate) fn read_cached(&self, from: u64, limit: ReadLimit) -> Option<ReadBatch> {
        let mut answer = ReadBatch::begin(from.max(self.start().min(self.next)));
        if from >= self.next {
            return Some(ReadBatch::begin(from));
        }
        let from = answer.next.0;
        let Some(first) = self.first_at(from) else {
            answer.next = Offset(self.next);
            answer.start = answer.next;
            return Some(answer);
        };
        if self.cached.front().is_none_or(|batch| first.max(from) < batch.first) {
            return None;
        }
        let at =
            self.cached.partition_point(|batch| batch.first + batch.batch.len() as u64 <= from);
        for batch in self.cached.range(at..) {
            if !answer.take(batch.first, &batch.batch, limit) {
                break;
            }
        }
        Some(answer)
    }

    /// Where what can be read from `from` on begins: at `from` or below it within a batch or a
    /// segment, or above it.
    fn first_at(&self, from: u64) -> Option<u64> {
        let at = self.segments.partition_point(|segment| segment.end <= from);
        let segment = self.segments.get(at).map(|segment| segment.base);
        segment.or_else(|| {
            let at = self.index.partition_point(|batch| batch.end() <= from);
            self.index.get(at).map(|batch| batch.first)
        })
    }

    /// What to read from the disk for a read of `from`.
    pub(crate) fn plan_read(&self, from: u64, limit: ReadLimit) -> Plan {
        let at = self.segments.partition_point(|segment| segment.end <= from);
        if let Some(segment) = self.segments.get(at) {
            return Plan::Segment(*segment);
        }
        let at = self.index.partition_point(|batch| batch.end() <= from);
        let (mut records, mut bytes) = (0_usize, 0_usize);
        let mut plan = Vec::new();
        for batch in self.index.range(at..) {
            if !plan.is_empty() && (records >= limit.records_max || bytes >= limit.bytes_max) {
                break;
            }
            records += (batch.end() - batch.first.max(from)) as usize;
            bytes += batch.payload_len as usize;
            plan.push(*batch);
        }
        Plan::Journal(plan)
    }
}

/// Where a read finds its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// In a segment; what follows is for the next read.
    Segment(SegmentRef),
    /// In these batches of the journal; none when there is nothing to read.
    Journal(Vec<Batch>),
}
