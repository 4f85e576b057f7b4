//! What the store knows of one topic: where its batches are, which of them are in memory, and how
//! far its subscriptions have come.
//!
//! Law: `next` counts only what was acknowledged as its mode says, so a reader that stays below
//! it never sees a message that a failed write takes back.

use crate::error::Damage;
use crate::topic_log::{ReadBatch, ReadLimit};
use bytes::Bytes;
use danube_core::subscription::progress::{Progress, ProgressRecord, Step};
use danube_core::{Offset, SubscriptionId, TopicId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where one batch of messages is. Kept small: there is one per append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// First offset.
    pub first: u64,
    /// Journal file.
    pub file: u64,
    /// Byte of the file where the frame begins.
    pub position: u64,
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
    pub records: Vec<Bytes>,
}

/// Progress of one subscription, and whether a [`Step::Moved`] fixed where it began.
#[derive(Debug, Clone, Default)]
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
    /// All batches, by offset.
    pub index: VecDeque<Batch>,
    /// The last batches, as far as memory allows: always a suffix of `index`.
    pub cached: VecDeque<CachedBatch>,
    /// Subscriptions that have recorded something.
    pub progress: BTreeMap<SubscriptionId, Tracked>,
    /// Journal files that hold something of this topic.
    pub files: BTreeSet<u64>,
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
        self.index.front().map_or(self.next, |batch| batch.first)
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

    /// The answer to a read if memory has it: at the tail, or within the cached batches.
    pub(crate) fn read_cached(&self, from: u64, limit: ReadLimit) -> Option<ReadBatch> {
        let mut answer = ReadBatch::begin(from);
        if from >= self.next {
            return Some(answer);
        }
        if self.cached.is_empty() {
            return None;
        }
        let uncached = self.index.len().saturating_sub(self.cached.len());
        if uncached > 0 && from < self.index[uncached - 1].end() {
            return None;
        }
        let at =
            self.cached.partition_point(|batch| batch.first + batch.records.len() as u64 <= from);
        for batch in self.cached.range(at..) {
            if !answer.take(batch.first, &batch.records, limit) {
                break;
            }
        }
        Some(answer)
    }

    /// Batches to read from disk for a read of `from`: at least one, if there is any.
    pub(crate) fn plan_read(&self, from: u64, limit: ReadLimit) -> Vec<Batch> {
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
        plan
    }
}
