//! The budget of recent batches in memory, of all topics together.
//!
//! The batches themselves sit in their topics; here is the order in which they came and go.
//! Only the writer thread owns one.
//!
//! Law: each topic's cached batches are the last ones of its index without a gap, because they
//! leave in the order in which they came.

use crate::batch::RecordBatch;
use crate::topic::{CachedBatch, Topic};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a batch costs beside its bytes: its share of the tables here, and what points to it.
const BATCH_OVERHEAD: usize = 224;

/// Order and sum of cached batches.
#[derive(Debug)]
pub(crate) struct TailCache {
    order: VecDeque<(Arc<Topic>, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl TailCache {
    /// An empty cache that keeps at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> TailCache {
        TailCache { order: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Bytes kept now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What keeping `batch` would cost.
    pub(crate) fn cost(batch: &RecordBatch) -> usize {
        batch.byte_len() + batch.places_len() + BATCH_OVERHEAD
    }

    /// Notes that `topic` has a new cached batch of `cost`; others go until all fit again.
    pub(crate) fn note(&mut self, topic: &Arc<Topic>, cost: usize) {
        self.order.push_back((Arc::clone(topic), cost));
        self.bytes += cost;
        while self.bytes > self.bytes_max {
            let Some((topic, cost)) = self.order.pop_front() else { break };
            self.bytes -= cost;
            let gone: Option<CachedBatch> = topic.state.lock().cached.pop_front();
            drop(gone);
        }
        if self.order.is_empty() {
            self.order.shrink_to_fit();
        }
    }
}
