//! What the log keeps of one message, and what goes out again without being decoded.
//!
//! A record is a short header and then the message in its own protobuf encoding, without the two
//! fields that differ from one delivery to the next (`msg_id`, `subscription_name`). Protobuf lets
//! the fields of a message be concatenated, so [`delivery`](crate::delivery) writes the record as
//! it lies and puts those two behind. The layout is in `docs/formats/record.md`. What is left to
//! others: offsets, checksums and files (`store`), limits on size ([`limit`](crate::limit)).
//!
//! Law: what [`Record::parse`] lets through, every client can decode; hostile bytes never panic.

use crate::proto::danube::{MsgId, StreamMessage};
use crate::protobuf::{Broken, Fields, Value};
use bytes::Bytes;
use danube_core::{Offset, ProducerId, SubscriptionName, TopicName, WallMs};
use prost::Message;
use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

mod encode;
pub mod header;
pub mod native;

pub use encode::{body_len, encode, encode_trusted};

/// The layout described in `docs/formats/record.md`.
pub const VERSION: u8 = 1;
/// Bytes before the message: the version and the producer's id.
pub const HEADER_LEN: usize = 1 + 8;

// Field numbers of danube.StreamMessage; the golden test of the contract pins them.
const REQUEST_ID: u32 = 1;
pub(crate) const MSG_ID: u32 = 2;
pub(crate) const PAYLOAD: u32 = 3;
pub(crate) const PUBLISH_TIME: u32 = 4;
const PRODUCER_NAME: u32 = 5;
pub(crate) const SUBSCRIPTION_NAME: u32 = 6;
pub(crate) const ATTRIBUTES: u32 = 7;
pub(crate) const SCHEMA_ID: u32 = 8;
pub(crate) const SCHEMA_VERSION: u32 = 9;
pub(crate) const ROUTING_KEY: u32 = 10;
// A map is a repeated message of these two.
pub(crate) const ENTRY_KEY: u32 = 1;
pub(crate) const ENTRY_VALUE: u32 = 2;

/// Why bytes are not a record. Positions count from the record's first byte.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Not even a header.
    #[error("a record of `{0}` bytes is shorter than its header of {HEADER_LEN}")]
    Short(usize),
    /// Another layout.
    #[error("record version `{0}` is not known; this broker reads {VERSION}, start a newer one")]
    Version(u8),
    /// Not a protobuf message.
    #[error("damaged record: {what} at byte `{at}`")]
    Broken {
        /// Where.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// A number where the contract has text, or the other way round.
    #[error("damaged record: field `{0}` has the wire type of another")]
    WireType(u32),
    /// A field that only a delivery has; it would disturb the one that is put behind.
    #[error("damaged record: it contains field `{0}`, which is written on delivery only")]
    DeliveryField(u32),
}

impl From<Broken> for RecordError {
    fn from(broken: Broken) -> RecordError {
        RecordError::Broken { at: broken.at, what: broken.what }
    }
}

/// A record whose fields have been found, and checked as far as a client would check them.
/// A clone shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    bytes: Bytes,
    /// Where the message begins: behind the header, if there is one.
    body: usize,
    producer_id: ProducerId,
    publish_time: WallMs,
    producer_name: Span,
    routing_key: Option<Span>,
    payload: Span,
    schema_id: Option<u64>,
    schema_version: Option<u32>,
}

/// A range of a record's bytes, in half the room: no record comes near 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        let narrow = |at| u32::try_from(at).expect("parse refuses what is longer than 4 GiB");
        Span { start: narrow(range.start), end: narrow(range.end) }
    }
}

impl Span {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Record {
    /// Walks the fields of a stored record; copies and allocates nothing.
    ///
    /// # Errors
    /// [`RecordError`], when no client could decode the message or the layout is another one.
    pub fn parse(bytes: Bytes) -> Result<Record, RecordError> {
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(RecordError::Short(bytes.len()));
        };
        let [version, id @ ..] = *header;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        Record::walk(bytes, HEADER_LEN, ProducerId(u64::from_le_bytes(id)))
    }

    /// Walks the fields of a message without a header, as clients of the native wire get it. Its
    /// producer has no id here.
    ///
    /// # Errors
    /// As [`Record::parse`].
    pub fn parse_body(bytes: Bytes) -> Result<Record, RecordError> {
        Record::walk(bytes, 0, ProducerId(0))
    }

    fn walk(bytes: Bytes, body: usize, producer_id: ProducerId) -> Result<Record, RecordError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(RecordError::Broken { at: 0, what: "a record of 4 GiB or more" });
        }
        let mut record = Record {
            bytes: Bytes::new(),
            body,
            producer_id,
            publish_time: WallMs(0),
            producer_name: Span::default(),
            routing_key: None,
            payload: Span::default(),
            schema_id: None,
            schema_version: None,
        };
        for field in Fields::within(&bytes, body..bytes.len()) {
            let (number, value) = field?;
            record.take(&bytes, number, value)?;
        }
        record.bytes = bytes;
        Ok(record)
    }

    /// A field that comes twice counts as it came last, as everywhere in protobuf.
    fn take(&mut self, bytes: &[u8], number: u32, value: Value) -> Result<(), RecordError> {
        match (number, value) {
            (REQUEST_ID, Value::Number(_)) => {}
            (SCHEMA_ID, Value::Number(id)) => self.schema_id = Some(id),
            // Protobuf keeps the low half of a number that is too long for its field.
            (SCHEMA_VERSION, Value::Number(version)) => self.schema_version = Some(version as u32),
            (PUBLISH_TIME, Value::Number(at)) => self.publish_time = WallMs(at),
            (PAYLOAD, Value::Delimited(range)) => self.payload = range.into(),
            (PRODUCER_NAME, Value::Delimited(range)) => {
                self.producer_name = text(bytes, range)?.into();
            }
            (ROUTING_KEY, Value::Delimited(range)) => {
                self.routing_key = Some(text(bytes, range)?.into());
            }
            (ATTRIBUTES, Value::Delimited(range)) => {
                entry(bytes, range)?;
            }
            (MSG_ID | SUBSCRIPTION_NAME, _) => return Err(RecordError::DeliveryField(number)),
            (REQUEST_ID..=ROUTING_KEY, _) => return Err(RecordError::WireType(number)),
            // A later version of the contract; clients skip it too.
            _ => {}
        }
        Ok(())
    }

    /// Who published it.
    pub fn producer_id(&self) -> ProducerId {
        self.producer_id
    }

    /// When the producer says it published it.
    pub fn publish_time(&self) -> WallMs {
        self.publish_time
    }

    /// The producer's name; empty when it gave none.
    pub fn producer_name(&self) -> &str {
        self.text(self.producer_name.range())
    }

    /// The key that the producer gave.
    pub fn routing_key(&self) -> Option<&str> {
        self.routing_key.map(|span| self.text(span.range()))
    }

    /// The key that KeyShared orders by: the routing key, else the producer's name.
    pub fn key(&self) -> &str {
        self.routing_key().unwrap_or_else(|| self.producer_name())
    }

    /// The id of the payload's schema, where the producer gave one.
    pub fn schema_id(&self) -> Option<u64> {
        self.schema_id
    }

    /// The version of the payload's schema, where the producer gave one.
    pub fn schema_version(&self) -> Option<u32> {
        self.schema_version
    }

    /// The payload, sharing the record's memory.
    pub fn payload(&self) -> Bytes {
        self.bytes.slice(self.payload.range())
    }

    /// The value of attribute `key`, found by walking.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.entries().filter(|(found, _)| *found == key).map(|(_, value)| value).last()
    }

    /// All attributes.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.entries().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// The message as stored: protobuf, without `msg_id` and `subscription_name`.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// The whole record, as [`Record::parse`] took it.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole message, decoded: for peeking, dead-letter copies and tests. Deliveries do
    /// without.
    pub fn to_message(
        &self,
        topic: &TopicName,
        broker_addr: &str,
        offset: Offset,
        subscription: Option<&SubscriptionName>,
    ) -> StreamMessage {
        let stored = StreamMessage::decode(self.bytes.slice(self.body..))
            .expect("parse refuses whatever a client could not decode");
        StreamMessage {
            msg_id: Some(MsgId {
                producer_id: self.producer_id.0,
                topic_name: topic.to_string(),
                broker_addr: broker_addr.to_owned(),
                topic_offset: offset.0,
            }),
            subscription_name: subscription.map(ToString::to_string).unwrap_or_default(),
            ..stored
        }
    }

    fn text(&self, range: Range<usize>) -> &str {
        str_at(&self.bytes, &range).expect("parse checks every text")
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        Fields::within(&self.bytes, self.body..self.bytes.len()).filter_map(|field| match field {
            Ok((ATTRIBUTES, Value::Delimited(range))) => {
                let (key, value) = entry(&self.bytes, range).expect("parse checks every attribute");
                Some((self.text(key), self.text(value)))
            }
            _ => None,
        })
    }
}

fn str_at<'a>(bytes: &'a [u8], range: &Range<usize>) -> Option<&'a str> {
    std::str::from_utf8(bytes.get(range.clone())?).ok()
}

/// `range`, if it holds UTF-8: clients refuse a whole message for one bad text.
fn text(bytes: &[u8], range: Range<usize>) -> Result<Range<usize>, RecordError> {
    match str_at(bytes, &range) {
        Some(_) => Ok(range),
        None => Err(RecordError::Broken { at: range.start, what: "text that is not UTF-8" }),
    }
}

/// Where key and value of the attribute at `range` lie; what is left out is empty.
fn entry(bytes: &[u8], range: Range<usize>) -> Result<(Range<usize>, Range<usize>), RecordError> {
    let (mut key, mut value) = (0..0, 0..0);
    let at = range.start;
    for field in Fields::within(bytes, range) {
        match field? {
            (ENTRY_KEY, Value::Delimited(range)) => key = text(bytes, range)?,
            (ENTRY_VALUE, Value::Delimited(range)) => value = text(bytes, range)?,
            (ENTRY_KEY | ENTRY_VALUE, _) => {
                return Err(RecordError::Broken { at, what: "an attribute that is not text" });
            }
            _ => {}
        }
    }
    Ok((key, value))
}

#[cfg(test)]
pub(crate) mod tests;
