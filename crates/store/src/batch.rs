//! The records of one append, laid out once as the journal has them.
//!
//! Whoever makes a batch writes each record straight to its final place, behind its length, and
//! takes the checksum while the bytes are at hand. From there to the disk, in the cache, when it is
//! written again and when it goes into a segment, a batch stays whole: it is only pointed to.
//!
//! ```text
//! payload:  extras │ len record │ len record │ len record
//!           ◀front▶              ▲ starts[0]  ▲ starts[1]
//! ```
//!
//! Law: a batch is what a frame of messages holds, byte for byte.

use crate::extras::Extras;
use crate::frame::RECORD_LEN_BYTES;
use bytes::{BufMut, Bytes, BytesMut};
use danube_core::sequence::Origin;
use std::ops::Range;
use std::sync::Arc;

/// Records in the making.
#[derive(Debug, Default)]
pub struct RecordBatchBuilder {
    payload: BytesMut,
    front: usize,
    starts: Vec<u32>,
    count: u32,
    origin: Option<Origin>,
}

/// Records of one append, at least one. A clone shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch(Arc<Laid>);

#[derive(Debug, PartialEq, Eq)]
struct Laid {
    payload: Bytes,
    /// Bytes of extras before the first record.
    front: usize,
    /// Where each record but the first begins.
    starts: Vec<u32>,
    /// CRC-32C of the payload.
    crc: u32,
    origin: Option<Origin>,
}

impl RecordBatchBuilder {
    /// For `records` records of `bytes` bytes together.
    pub fn with_capacity(records: usize, bytes: usize) -> RecordBatchBuilder {
        RecordBatchBuilder::begin(&Extras::default(), records, bytes)
    }

    /// As [`with_capacity`](Self::with_capacity), for records that their producer numbers: a batch
    /// of `origin` is stored once.
    pub fn numbered(origin: Origin, records: usize, bytes: usize) -> RecordBatchBuilder {
        let extras = Extras { origin: Some(origin), also: Vec::new() };
        RecordBatchBuilder::begin(&extras, records, bytes)
    }

    /// As [`with_capacity`](Self::with_capacity), with `extras` before the records.
    pub(crate) fn begin(extras: &Extras, records: usize, bytes: usize) -> RecordBatchBuilder {
        let front = extras.encode();
        let len = front.len() + bytes + records * RECORD_LEN_BYTES;
        let mut payload = BytesMut::with_capacity(len);
        payload.put_slice(&front);
        RecordBatchBuilder {
            payload,
            front: front.len(),
            starts: Vec::with_capacity(records.saturating_sub(1)),
            count: 0,
            origin: extras.origin,
        }
    }

    /// Adds the record that `write` appends.
    ///
    /// # Panics
    /// When the batch grows beyond 4 GiB, which no append may come near.
    pub fn push(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let at = self.payload.len();
        if self.count > 0 {
            self.starts.push(u32::try_from(at).expect("a batch is below 4 GiB"));
        }
        self.payload.put_u32_le(0);
        let start = self.payload.len();
        write(&mut self.payload);
        let len = u32::try_from(self.payload.len() - start).expect("a record is below 4 GiB");
        self.payload[at..start].copy_from_slice(&len.to_le_bytes());
        self.count += 1;
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of it so far.
    pub fn byte_len(&self) -> usize {
        self.payload.len()
    }

    /// The batch; `None` without a record.
    pub fn build(self) -> Option<RecordBatch> {
        let RecordBatchBuilder { payload, front, starts, count, origin } = self;
        if count == 0 {
            return None;
        }
        // Now, while the bytes are in the processor's caches.
        let crc = crc32c::crc32c(&payload);
        let payload = payload.freeze();
        Some(RecordBatch(Arc::new(Laid { payload, front, starts, crc, origin })))
    }
}

impl RecordBatch {
    /// The batch in a frame's or a block's `payload`, which has `front` bytes of extras before
    /// exactly `count` records, and the checksum `crc`; `None` if it has not.
    pub(crate) fn parse(payload: Bytes, front: usize, count: u32, crc: u32) -> Option<RecordBatch> {
        // Each record needs its length, so a hostile count cannot reserve more than the bytes allow.
        let most = payload.len().checked_sub(front)? / RECORD_LEN_BYTES;
        if count == 0 || count as usize > most {
            return None;
        }
        let mut starts = Vec::with_capacity(count as usize - 1);
        let mut at = front;
        for index in 0..count {
            if index > 0 {
                starts.push(u32::try_from(at).ok()?);
            }
            let len = payload.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)?;
            at = at.checked_add(RECORD_LEN_BYTES)?.checked_add(len as usize)?;
        }
        let whole = at == payload.len();
        whole.then(|| RecordBatch(Arc::new(Laid { payload, front, starts, crc, origin: None })))
    }

    /// How many records there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always a record")]
    pub fn len(&self) -> usize {
        self.0.starts.len() + 1
    }

    /// Bytes of the records with their lengths, and of what is beside them.
    pub fn byte_len(&self) -> usize {
        self.0.payload.len()
    }

    /// Who numbered the records, if anybody did.
    pub fn origin(&self) -> Option<&Origin> {
        self.0.origin.as_ref()
    }

    /// The records, sharing the batch's memory.
    pub fn records(&self) -> impl Iterator<Item = Bytes> {
        (0..self.len()).map(|at| self.record(at))
    }

    /// Record number `at`, from 0 on.
    pub(crate) fn record(&self, at: usize) -> Bytes {
        self.0.payload.slice(self.start(at) + RECORD_LEN_BYTES..self.start(at + 1))
    }

    /// Bytes of record number `at`.
    pub(crate) fn record_len(&self, at: usize) -> usize {
        self.start(at + 1) - self.start(at) - RECORD_LEN_BYTES
    }

    /// The records of `range` with their lengths, as they lie.
    pub(crate) fn run(&self, range: Range<usize>) -> Bytes {
        self.0.payload.slice(self.start(range.start)..self.start(range.end))
    }

    /// How many records from number `at` on lie within `bytes`, but at least one.
    pub(crate) fn within(&self, at: usize, bytes: usize) -> usize {
        let end = self.start(at) + bytes;
        let starts = &self.0.starts[at.min(self.0.starts.len())..];
        let whole = starts.partition_point(|start| *start as usize <= end);
        let all = at + whole + 1 == self.len() && self.0.payload.len() <= end;
        (whole + usize::from(all)).max(1)
    }

    /// All of it, as a frame has it.
    pub(crate) fn payload(&self) -> &Bytes {
        &self.0.payload
    }

    /// Whether anything is before the first record.
    pub(crate) fn has_extras(&self) -> bool {
        self.0.front > 0
    }

    /// CRC-32C of [`payload`](Self::payload).
    pub(crate) fn crc(&self) -> u32 {
        self.0.crc
    }

    /// Memory that its records' places take, in bytes.
    pub(crate) fn places_len(&self) -> usize {
        size_of_val(self.0.starts.as_slice())
    }

    /// Where record number `at` begins; for one past the last, where that ends.
    fn start(&self, at: usize) -> usize {
        match at.checked_sub(1) {
            None => self.0.front,
            Some(before) => {
                let next = self.0.starts.get(before).map(|start| *start as usize);
                next.unwrap_or(self.0.payload.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::messages_are_whole;
    use danube_core::ProducerId;
    use proptest::prelude::*;

    fn batch(builder: RecordBatchBuilder, records: &[&[u8]]) -> RecordBatch {
        let mut builder = builder;
        records.iter().for_each(|record| builder.push(|out| out.put_slice(record)));
        builder.build().expect("has records")
    }

    #[test]
    fn records_come_back_as_they_were_written_whatever_is_before_them() {
        let origin = Origin { producer: ProducerId(7), epoch: 1, after: 8, first_sequence: 9 };
        let records: [&[u8]; 3] = [b"one", b"", b"three"];
        let plain = batch(RecordBatchBuilder::with_capacity(3, 8), &records);
        assert_eq!((plain.len(), plain.byte_len()), (3, 8 + 3 * RECORD_LEN_BYTES));
        let numbered = batch(RecordBatchBuilder::numbered(origin, 3, 8), &records);
        assert_eq!(numbered.origin(), Some(&origin));
        for batch in [plain, numbered] {
            assert_eq!(batch.records().collect::<Vec<_>>(), ["one", "", "three"]);
            assert_eq!(batch.record_len(2), 5);
            assert_eq!(batch.crc(), crc32c::crc32c(batch.payload()));
            assert_eq!(batch.run(1..3), &b"\0\0\0\0\x05\0\0\0three"[..]);
            let within = [0, 7, 10, 11, 19, 20, 99].map(|bytes| batch.within(0, bytes));
            assert_eq!(within, [1, 1, 1, 2, 2, 3, 3]);
            assert_eq!((batch.within(2, 0), batch.within(2, 99)), (1, 1));
        }
        assert_eq!(RecordBatchBuilder::numbered(origin, 0, 0).build(), None);
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_agrees_with_checking(
            payload in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..64),
            front in 0_usize..70,
            count in prop_oneof![0_u32..5, any::<u32>()],
        ) {
            let parsed = RecordBatch::parse(Bytes::from(payload.clone()), front, count, 0);
            let whole = payload.get(front..).is_some_and(|rest| messages_are_whole(rest, count));
            prop_assert_eq!(parsed.is_some(), whole);
            if let Some(batch) = parsed {
                prop_assert_eq!(batch.records().count(), count as usize);
                prop_assert_eq!(batch.run(0..batch.len()), &payload[front..]);
            }
        }
    }
}
