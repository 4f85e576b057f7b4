//! Offsets of a topic that keeps nothing.

use danube_core::{Incarnation, Offset};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets of a `NonReliable` topic: they cost no write, and never repeat, because each start of
/// the process counts from its own incarnation and an unloaded topic goes on where it was.
#[derive(Clone)]
pub(crate) struct VolatileOffsets(Arc<AtomicU64>);

impl VolatileOffsets {
    /// Messages that one start of the process can number per topic: 2^40.
    const START_BITS: u32 = 40;

    pub(crate) fn starting(incarnation: Incarnation) -> VolatileOffsets {
        VolatileOffsets(Arc::new(AtomicU64::new(u64::from(incarnation.0) << Self::START_BITS)))
    }

    pub(super) fn next(&self) -> Offset {
        Offset(self.0.load(Ordering::Relaxed))
    }

    /// Takes so many from [`next`](Self::next) on; the topic's actor alone does.
    pub(super) fn take(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
