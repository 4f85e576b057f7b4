//! Batches on their way in: the messages of a batch stay one run of bytes.

use super::Message;
use crate::proto::stream as proto;
use crate::protobuf::{self, Broken, Fields, Value};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;
use std::ops::Range;

pub use proto::PublishResponse;

// Field numbers of PublishRequest and Batch; the golden test of the contract pins them.
const OPEN: u32 = 1;
const BATCHES: u32 = 2;
const CLOSE: u32 = 3;
const PRODUCER: u32 = 1;
const FIRST_SEQUENCE: u32 = 2;
const MESSAGES: u32 = 3;

/// A `danube.stream.v1.PublishRequest`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PublishRequest {
    /// Producers to attach.
    pub open: Vec<proto::OpenProducer>,
    /// Messages, by producer.
    pub batches: Vec<Batch>,
    /// Producers to let go.
    pub close: Vec<proto::CloseProducer>,
}

/// A `danube.stream.v1.Batch`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// The producer's number on its stream.
    pub producer: u32,
    /// Sequence number of the first message.
    pub first_sequence: u64,
    /// The messages.
    pub messages: EncodedMessages,
}

/// The encoded messages of a batch, each behind its tag and length. A clone shares the bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EncodedMessages {
    bytes: Bytes,
    count: u32,
}

impl EncodedMessages {
    /// Adds `message` to messages under construction; they become a batch with
    /// [`EncodedMessages::new`].
    pub fn put(out: &mut BytesMut, message: &Message<'_>) {
        let len = message.encoded_len();
        out.reserve(protobuf::delimited_len(MESSAGES, len));
        protobuf::put_delimiter(out, MESSAGES, len);
        message.write(out);
    }

    /// `count` messages, each written by [`EncodedMessages::put`].
    pub fn new(bytes: Bytes, count: u32) -> EncodedMessages {
        EncodedMessages { bytes, count }
    }

    /// How many messages there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Their bytes, with tags and lengths.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where each encoded message lies in [`bytes`](Self::bytes).
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        Fields::within(&self.bytes, 0..self.bytes.len()).filter_map(|field| match field {
            Ok((MESSAGES, Value::Delimited(range))) => Some(range),
            _ => None,
        })
    }
}

impl Batch {
    fn content_len(&self) -> usize {
        protobuf::number_len(PRODUCER, self.producer.into())
            + protobuf::number_len(FIRST_SEQUENCE, self.first_sequence)
            + self.messages.bytes.len()
    }

    fn write(&self, out: &mut impl BufMut) {
        protobuf::put_number(out, PRODUCER, self.producer.into());
        protobuf::put_number(out, FIRST_SEQUENCE, self.first_sequence);
        out.put_slice(&self.messages.bytes);
    }

    /// `bytes` holds the batch alone. The messages are counted and otherwise left as they are.
    fn decode(bytes: &Bytes) -> Result<Batch, Broken> {
        let mut batch = Batch::default();
        // Messages nearly always lie together behind the two numbers, and are shared then.
        let mut run = 0..0;
        let mut others = BytesMut::new();
        let mut at = 0;
        let mut fields = Fields::within(bytes, 0..bytes.len());
        while let Some(field) = fields.next() {
            let start = std::mem::replace(&mut at, fields.at());
            match field? {
                (PRODUCER, Value::Number(number)) => {
                    batch.producer = u32::try_from(number)
                        .map_err(|_| Broken { at: start, what: "a producer above 32 bits" })?;
                }
                (FIRST_SEQUENCE, Value::Number(number)) => batch.first_sequence = number,
                (MESSAGES, Value::Delimited(_)) => {
                    if run.end == start && !run.is_empty() {
                        run.end = at;
                    } else {
                        others.put_slice(&bytes[run]);
                        run = start..at;
                    }
                    batch.messages.count += 1;
                }
                (PRODUCER..=MESSAGES, _) => {
                    return Err(Broken { at: start, what: "a field of another wire type" });
                }
                _ => {}
            }
        }
        batch.messages.bytes = if others.is_empty() {
            bytes.slice(run)
        } else {
            others.put_slice(&bytes[run]);
            others.freeze()
        };
        Ok(batch)
    }
}

impl PublishRequest {
    /// Bytes that [`write`](Self::write) writes.
    pub fn encoded_len(&self) -> usize {
        let open = self.open.iter().map(|m| protobuf::delimited_len(OPEN, m.encoded_len()));
        let batches =
            self.batches.iter().map(|b| protobuf::delimited_len(BATCHES, b.content_len()));
        let close = self.close.iter().map(|m| protobuf::delimited_len(CLOSE, m.encoded_len()));
        open.sum::<usize>() + batches.sum::<usize>() + close.sum::<usize>()
    }

    /// Writes the request as prost would.
    pub fn write(&self, out: &mut impl BufMut) {
        for message in &self.open {
            protobuf::put_delimiter(out, OPEN, message.encoded_len());
            message.encode_raw(out);
        }
        for batch in &self.batches {
            protobuf::put_delimiter(out, BATCHES, batch.content_len());
            batch.write(out);
        }
        for message in &self.close {
            protobuf::put_delimiter(out, CLOSE, message.encoded_len());
            message.encode_raw(out);
        }
    }

    pub(super) fn decode(bytes: Bytes) -> Result<PublishRequest, Broken> {
        let mut request = PublishRequest::default();
        for field in Fields::within(&bytes, 0..bytes.len()) {
            let (number, value) = field?;
            let Value::Delimited(range) = value else { continue };
            let (at, part) = (range.start, bytes.slice(range));
            let broken = |_| Broken { at, what: "a message that is not what the contract says" };
            match number {
                OPEN => request.open.push(proto::OpenProducer::decode(part).map_err(broken)?),
                BATCHES => request.batches.push(Batch::decode(&part)?),
                CLOSE => request.close.push(proto::CloseProducer::decode(part).map_err(broken)?),
                _ => {}
            }
        }
        Ok(request)
    }
}
