//! Deliveries on their way out: stored bytes behind an offset and an attempt.

use crate::proto::stream as proto;
use crate::protobuf::{self, Broken, Fields, Value};
use crate::record::{Record, RecordError};
use bytes::{BufMut, Bytes};
use danube_core::Offset;
use prost::Message as _;

pub use proto::ConsumeRequest;

// Field numbers of ConsumeResponse and Delivered; the golden test of the contract pins them.
const DELIVERIES: u32 = 2;
const OFFSET: u32 = 1;
const ATTEMPT: u32 = 2;
const MESSAGE: u32 = 3;

/// A `danube.stream.v1.ConsumeResponse`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsumeResponse {
    /// The messages, in the order in which they are to be seen.
    pub deliveries: Vec<Delivered>,
    /// Everything else; its own `deliveries` are empty.
    pub rest: proto::ConsumeResponse,
}

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Where the message is.
    pub offset: Offset,
    /// Which delivery of it this is; the first is 1.
    pub attempt: u32,
    /// The stored message.
    pub record: Record,
}

impl Delivered {
    /// Bytes that it takes in a response.
    pub fn encoded_len(&self) -> usize {
        protobuf::delimited_len(DELIVERIES, self.content_len())
    }

    fn content_len(&self) -> usize {
        protobuf::number_len(OFFSET, self.offset.0)
            + protobuf::number_len(ATTEMPT, self.attempt.into())
            + protobuf::delimited_len(MESSAGE, self.record.body().len())
    }

    fn write(&self, out: &mut impl BufMut) {
        protobuf::put_delimiter(out, DELIVERIES, self.content_len());
        protobuf::put_number(out, OFFSET, self.offset.0);
        protobuf::put_number(out, ATTEMPT, self.attempt.into());
        protobuf::put_delimited(out, MESSAGE, self.record.body());
    }
}

impl ConsumeResponse {
    pub(super) fn encoded_len(&self) -> usize {
        let deliveries = self.deliveries.iter().map(Delivered::encoded_len);
        deliveries.sum::<usize>() + self.rest.encoded_len()
    }

    pub(super) fn write(&self, out: &mut impl BufMut) {
        for delivery in &self.deliveries {
            delivery.write(out);
        }
        self.rest.encode_raw(out);
    }

    pub(super) fn decode(bytes: Bytes) -> Result<ConsumeResponse, Broken> {
        let mut response = ConsumeResponse::default();
        let mut at = 0;
        let mut fields = Fields::within(&bytes, 0..bytes.len());
        while let Some(field) = fields.next() {
            let start = std::mem::replace(&mut at, fields.at());
            match field? {
                (DELIVERIES, Value::Delimited(range)) => {
                    let delivery = delivered(&bytes, range.start, range.end)?;
                    response.deliveries.push(delivery);
                }
                _ => response.rest.merge(bytes.slice(start..at)).map_err(|_| Broken {
                    at: start,
                    what: "a field that is not what the contract says",
                })?,
            }
        }
        Ok(response)
    }
}

fn delivered(bytes: &Bytes, start: usize, end: usize) -> Result<Delivered, Broken> {
    let (mut offset, mut attempt, mut message) = (0, 0, start..start);
    for field in Fields::within(bytes, start..end) {
        match field? {
            (OFFSET, Value::Number(number)) => offset = number,
            (ATTEMPT, Value::Number(number)) => {
                attempt = u32::try_from(number).unwrap_or(u32::MAX);
            }
            (MESSAGE, Value::Delimited(range)) => message = range,
            _ => {}
        }
    }
    let record = Record::parse_body(bytes.slice(message)).map_err(|error| match error {
        RecordError::Broken { at, what } => Broken { at: start + at, what },
        _ => Broken { at: start, what: "a message that is not what the contract says" },
    })?;
    Ok(Delivered { offset: Offset(offset), attempt, record })
}
