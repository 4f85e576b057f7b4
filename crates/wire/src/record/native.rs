//! Records of the native wire: the message as its producer encoded it, between the record's
//! header and the producer's name.
//!
//! Protobuf lets fields follow in any order, so nothing of the message is taken apart; it is only
//! walked, for what no client could decode and for what is the broker's to say. What is left to
//! others: limits on size, schemas.
//!
//! Law: a record made here is one that [`Record::parse`](super::Record::parse) takes, and nobody
//! can forge with it what the broker says of a message.

use super::{
    ATTRIBUTES, HEADER_LEN, PAYLOAD, PRODUCER_NAME, PUBLISH_TIME, REQUEST_ID, ROUTING_KEY,
    RecordError, SCHEMA_ID, SCHEMA_VERSION, VERSION, entry, header, str_at, text,
};
use crate::proto::danube::StreamMessage;
use crate::protobuf::{self, Fields, Value};
use crate::trace_context::{TRACEPARENT, TRACESTATE};
use bytes::{BufMut, Bytes};
use danube_core::ProducerId;
use danube_core::name::ProducerName;
use prost::Message as _;
use std::ops::Range;

/// A message that may be stored, and what its broker wants to know of it. Ranges are positions
/// in the bytes that were checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// Where the payload lies.
    pub payload: Range<usize>,
    /// The schema that the producer gave.
    pub schema_id: Option<u64>,
    /// Its version.
    pub schema_version: Option<u32>,
    /// Where the value of the attribute `traceparent` lies.
    pub traceparent: Option<Range<usize>>,
    /// Where the value of the attribute `tracestate` lies.
    pub tracestate: Option<Range<usize>>,
    /// Whether there are attributes that only the broker may write.
    has_reserved: bool,
}

/// Walks the encoded message at `range` of `bytes`; copies and allocates nothing.
///
/// # Errors
/// [`RecordError`]: no client could decode it, or it has a field that the broker writes.
pub fn check(bytes: &[u8], range: Range<usize>) -> Result<Checked, RecordError> {
    let mut checked = Checked::default();
    for field in Fields::within(bytes, range) {
        match field? {
            (PAYLOAD, Value::Delimited(range)) => checked.payload = range,
            (PUBLISH_TIME, Value::Number(_)) => {}
            (SCHEMA_ID, Value::Number(id)) => checked.schema_id = Some(id),
            (SCHEMA_VERSION, Value::Number(version)) => {
                checked.schema_version = Some(version as u32);
            }
            (ROUTING_KEY, Value::Delimited(range)) => {
                text(bytes, range)?;
            }
            (ATTRIBUTES, Value::Delimited(range)) => {
                let (key, value) = entry(bytes, range)?;
                match str_at(bytes, &key) {
                    Some(TRACEPARENT) => checked.traceparent = Some(value),
                    Some(TRACESTATE) => checked.tracestate = Some(value),
                    other => checked.has_reserved |= other.is_some_and(header::is_reserved),
                }
            }
            (number @ (PUBLISH_TIME | PAYLOAD | ATTRIBUTES..=ROUTING_KEY), _) => {
                return Err(RecordError::WireType(number));
            }
            (number @ REQUEST_ID..=ROUTING_KEY, _) => {
                return Err(RecordError::DeliveryField(number));
            }
            _ => {}
        }
    }
    Ok(checked)
}

/// What goes around the messages of one producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapping {
    producer_id: ProducerId,
    name: ProducerName,
    front: [u8; HEADER_LEN],
    back: Box<[u8]>,
}

impl Wrapping {
    /// For the messages of producer `name`, known as `producer_id`.
    pub fn new(producer_id: ProducerId, name: &ProducerName) -> Wrapping {
        let mut front = [VERSION; HEADER_LEN];
        front[1..].copy_from_slice(&producer_id.0.to_le_bytes());
        let mut back = Vec::new();
        protobuf::put_delimited(&mut back, PRODUCER_NAME, name.as_str().as_bytes());
        Wrapping { producer_id, name: name.clone(), front, back: back.into() }
    }

    /// Bytes that the record of a message of `len` bytes takes at most.
    pub fn record_len_max(&self, len: usize) -> usize {
        self.front.len() + len + self.back.len()
    }

    /// Writes the record of the checked message at `range` of `bytes`. The payload is copied
    /// once, and reserved attributes are left out.
    pub fn write(
        &self,
        bytes: &Bytes,
        range: Range<usize>,
        checked: &Checked,
        out: &mut impl BufMut,
    ) {
        if checked.has_reserved {
            return out.put_slice(&self.stripped(bytes.slice(range)));
        }
        out.put_slice(&self.front);
        out.put_slice(&bytes[range]);
        out.put_slice(&self.back);
    }

    fn stripped(&self, message: Bytes) -> Bytes {
        let mut message = StreamMessage::decode(message)
            .expect("what was checked can be decoded, and the numbers are the same");
        message.producer_name = self.name.to_string();
        super::encode(self.producer_id, &message)
    }
}
