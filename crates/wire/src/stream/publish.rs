//! Batches on their way in: the messages of a batch stay one run of bytes.

use super::Message;
use super::chunks::Chunks;
use crate::proto::stream as proto;
use crate::protobuf::{self, Broken, Fields, Front, Value};
use bytes::{Buf, BufMut, Bytes, BytesMut};
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

    /// `bytes` holds the batch alone. The messages are counted and otherwise left as they are.
    fn decode(mut bytes: Chunks) -> Result<Batch, Broken> {
        let mut batch = Batch::default();
        // The two numbers nearly always come first; so the messages, which a connection often gives
        // as one piece, are shared with it.
        while let Ok((number @ (PRODUCER | FIRST_SEQUENCE), Front::Number(value), len)) =
            bytes.front()
        {
            batch.number(number, value, 0)?;
            bytes.advance(len);
        }
        let rest = bytes.copy_to_bytes(bytes.remaining());
        batch.read(&rest)?;
        Ok(batch)
    }

    fn number(&mut self, number: u32, value: u64, at: usize) -> Result<(), Broken> {
        match number {
            PRODUCER => {
                self.producer = u32::try_from(value)
                    .map_err(|_| Broken { at, what: "a producer above 32 bits" })?;
            }
            _ => self.first_sequence = value,
        }
        Ok(())
    }

    fn read(&mut self, bytes: &Bytes) -> Result<(), Broken> {
        let mut run = 0..0;
        let mut others = BytesMut::new();
        let mut at = 0;
        let mut fields = Fields::within(bytes, 0..bytes.len());
        while let Some(field) = fields.next() {
            let start = std::mem::replace(&mut at, fields.at());
            match field? {
                (number @ (PRODUCER | FIRST_SEQUENCE), Value::Number(value)) => {
                    self.number(number, value, start)?;
                }
                (MESSAGES, Value::Delimited(_)) => {
                    if run.end == start && !run.is_empty() {
                        run.end = at;
                    } else {
                        others.put_slice(&bytes[run]);
                        run = start..at;
                    }
                    self.messages.count += 1;
                }
                (PRODUCER..=MESSAGES, _) => {
                    return Err(Broken { at: start, what: "a field of another wire type" });
                }
                _ => {}
            }
        }
        self.messages.bytes = if others.is_empty() {
            bytes.slice(run)
        } else {
            others.put_slice(&bytes[run]);
            others.freeze()
        };
        Ok(())
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
        self.write_around(out, |out, messages| out.put_slice(messages));
    }

    /// As [`write`](Self::write), but messages of a batch from `share_min` bytes on are given to
    /// `share` when it is their turn, behind what is in `out` by then.
    pub(super) fn write_shared(
        &self,
        out: &mut BytesMut,
        share_min: usize,
        share: &mut impl FnMut(&mut BytesMut, &Bytes),
    ) {
        self.write_around(out, |out, messages| match messages.len() < share_min {
            true => out.put_slice(messages),
            false => share(out, messages),
        });
    }

    fn write_around<B: BufMut>(&self, out: &mut B, mut put: impl FnMut(&mut B, &Bytes)) {
        for message in &self.open {
            protobuf::put_delimiter(out, OPEN, message.encoded_len());
            message.encode_raw(out);
        }
        for batch in &self.batches {
            protobuf::put_delimiter(out, BATCHES, batch.content_len());
            protobuf::put_number(out, PRODUCER, batch.producer.into());
            protobuf::put_number(out, FIRST_SEQUENCE, batch.first_sequence);
            put(out, &batch.messages.bytes);
        }
        for message in &self.close {
            protobuf::put_delimiter(out, CLOSE, message.encoded_len());
            message.encode_raw(out);
        }
    }

    /// `bytes` holds the request alone.
    pub(super) fn decode(mut bytes: Chunks) -> Result<PublishRequest, Broken> {
        let mut request = PublishRequest::default();
        let total = bytes.remaining();
        while bytes.has_remaining() {
            let at = total - bytes.remaining();
            let within = |broken: Broken| Broken { at: at + broken.at, ..broken };
            let (number, front, len) = bytes.front().map_err(within)?;
            bytes.advance(len);
            let len = match front {
                Front::Number(_) => continue,
                Front::Delimited(len) | Front::Fixed(len) => usize::try_from(len).ok(),
            };
            let Some(len) = len.filter(|len| *len <= bytes.remaining()) else {
                return Err(Broken { at, what: "a field that is longer than the rest" });
            };
            let mut part = bytes.split_to(len);
            let broken = |_| Broken { at, what: "a message that is not what the contract says" };
            match (number, front) {
                (OPEN, Front::Delimited(_)) => {
                    let open = proto::OpenProducer::decode(&mut part).map_err(broken)?;
                    request.open.push(open);
                }
                (BATCHES, Front::Delimited(_)) => {
                    request.batches.push(Batch::decode(part).map_err(within)?);
                }
                (CLOSE, Front::Delimited(_)) => {
                    let close = proto::CloseProducer::decode(&mut part).map_err(broken)?;
                    request.close.push(close);
                }
                _ => {}
            }
        }
        Ok(request)
    }
}
