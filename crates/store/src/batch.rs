//! The records of one append, laid out once as the journal has them.
//!
//! Whoever makes a batch writes each record straight to its final place, behind its length, so
//! that a payload is copied once between the socket and the disk.
//!
//! Law: a batch is what a frame of messages holds, byte for byte.

use crate::frame::RECORD_LEN_BYTES;
use bytes::{BufMut, Bytes, BytesMut};

/// Records in the making.
#[derive(Debug, Default)]
pub struct RecordBatchBuilder {
    payload: BytesMut,
    ends: Vec<u32>,
}

/// Records of one append. A clone shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordBatch {
    payload: Bytes,
    /// Where each record ends.
    ends: Vec<u32>,
}

impl RecordBatchBuilder {
    /// For `records` records of `bytes` bytes together.
    pub fn with_capacity(records: usize, bytes: usize) -> RecordBatchBuilder {
        let len = bytes + records * RECORD_LEN_BYTES;
        RecordBatchBuilder {
            payload: BytesMut::with_capacity(len),
            ends: Vec::with_capacity(records),
        }
    }

    /// Adds the record that `write` appends.
    ///
    /// # Panics
    /// When the batch grows beyond 4 GiB, which no append may come near.
    pub fn push(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let at = self.payload.len();
        self.payload.put_u32_le(0);
        let start = self.payload.len();
        write(&mut self.payload);
        let len = u32::try_from(self.payload.len() - start).expect("a record is below 4 GiB");
        self.payload[at..start].copy_from_slice(&len.to_le_bytes());
        self.ends.push(u32::try_from(self.payload.len()).expect("a batch is below 4 GiB"));
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The batch.
    pub fn build(self) -> RecordBatch {
        RecordBatch { payload: self.payload.freeze(), ends: self.ends }
    }
}

impl RecordBatch {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of the records with their lengths.
    pub fn byte_len(&self) -> usize {
        self.payload.len()
    }

    /// The records, sharing the batch's memory.
    pub fn records(&self) -> impl Iterator<Item = Bytes> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| {
            self.payload.slice(start as usize + RECORD_LEN_BYTES..*end as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_written() {
        let mut builder = RecordBatchBuilder::with_capacity(3, 8);
        for record in [&b"one"[..], b"", b"three"] {
            builder.push(|out| out.put_slice(record));
        }
        let batch = builder.build();
        assert_eq!((batch.len(), batch.byte_len()), (3, 8 + 3 * RECORD_LEN_BYTES));
        assert_eq!(batch.records().collect::<Vec<_>>(), ["one", "", "three"]);
    }
}
