//! What a read asks for, and what it gets.
//!
//! Law: records are in the order of their offsets, and where one is missing nothing says otherwise.

use crate::batch::RecordBatch;
use bytes::Bytes;
use danube_core::Offset;

/// How much a read may return. The first record comes whatever the limit says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Most records.
    pub records_max: usize,
    /// Most bytes of records.
    pub bytes_max: usize,
}

/// What a read returned: records in offset order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBatch {
    /// The records with their offsets. Between them offsets may be missing: they were finished
    /// and not kept, or promised and lost.
    pub records: Vec<(Offset, Bytes)>,
    /// Where reading really began: above what was asked for when messages from there on are gone.
    /// The gap is what was asked for up to here.
    pub start: Offset,
    /// Where to read on.
    pub next: Offset,
    /// Bytes of the records.
    bytes: usize,
}

impl ReadBatch {
    /// An answer without a record, for a read of `from`.
    pub(crate) fn begin(from: u64) -> ReadBatch {
        ReadBatch { records: Vec::new(), start: Offset(from), next: Offset(from), bytes: 0 }
    }

    /// Adds what is wanted of the batch that begins at `first`; whether there is room for more.
    pub(crate) fn take(&mut self, first: u64, batch: &RecordBatch, limit: ReadLimit) -> bool {
        let skip = usize::try_from(self.next.0.saturating_sub(first)).unwrap_or(usize::MAX);
        if skip >= batch.len() {
            return true;
        }
        if self.records.is_empty() {
            self.start = Offset(first + skip as u64);
        }
        let room = limit.records_max.saturating_sub(self.records.len());
        self.records.reserve(room.min(batch.len() - skip));
        for at in skip..batch.len() {
            let bytes = self.bytes + batch.record_len(at);
            let over = self.records.len() >= limit.records_max || bytes > limit.bytes_max;
            if over && !self.records.is_empty() {
                return false;
            }
            let offset = Offset(first + at as u64);
            self.records.push((offset, batch.record(at)));
            (self.bytes, self.next) = (bytes, offset.next());
        }
        true
    }
}
