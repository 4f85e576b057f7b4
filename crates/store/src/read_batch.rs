//! What a read asks for, and what it gets.
//!
//! Law: records are in the order of their offsets, and where one is missing nothing says otherwise.

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
}

impl ReadBatch {
    /// An answer without a record, for a read of `from`.
    pub(crate) fn begin(from: u64) -> ReadBatch {
        ReadBatch { records: Vec::new(), start: Offset(from), next: Offset(from) }
    }

    /// Adds what is wanted of the batch that begins at `first`; whether there is room for more.
    pub(crate) fn take(&mut self, first: u64, records: &[Bytes], limit: ReadLimit) -> bool {
        let mut bytes: usize = self.records.iter().map(|(_, record)| record.len()).sum();
        for (offset, record) in (first..).zip(records) {
            if offset < self.next.0 {
                continue;
            }
            bytes += record.len();
            let over = self.records.len() >= limit.records_max || bytes > limit.bytes_max;
            if over && !self.records.is_empty() {
                return false;
            }
            if self.records.is_empty() {
                self.start = Offset(offset);
            }
            self.records.push((Offset(offset), record.clone()));
            self.next = Offset(offset + 1);
        }
        true
    }
}
