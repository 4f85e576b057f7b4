//! From a message to its record.
//!
//! Written field by field rather than by prost, because the message that a client sent holds what
//! a record must not (`msg_id`, forged attributes) and taking that out first would mean copying it.
//!
//! Law: one message has one encoding, the one that prost would give it.

use super::{
    ATTRIBUTES, ENTRY_KEY, ENTRY_VALUE, HEADER_LEN, PAYLOAD, PRODUCER_NAME, PUBLISH_TIME,
    REQUEST_ID, ROUTING_KEY, SCHEMA_ID, SCHEMA_VERSION, VERSION, header,
};
use crate::proto::danube::StreamMessage;
use crate::protobuf;
use bytes::{BufMut, Bytes, BytesMut};
use danube_core::ProducerId;

/// The record of a message that a client published: reserved attributes are stripped, `msg_id`
/// and `subscription_name` left out. The payload is copied once.
pub fn encode(producer_id: ProducerId, message: &StreamMessage) -> Bytes {
    write(producer_id, message, |key| !header::is_reserved(key))
}

/// The record of a message that the broker itself made, such as a dead-letter copy: as
/// [`encode`], but reserved attributes stay.
pub fn encode_trusted(producer_id: ProducerId, message: &StreamMessage) -> Bytes {
    write(producer_id, message, |_| true)
}

/// Bytes that the message in the record of `message` takes when reserved attributes are stripped;
/// the record itself is [`HEADER_LEN`] longer.
pub fn body_len(message: &StreamMessage) -> usize {
    message_len(message, |key| !header::is_reserved(key))
}

/// Length of a number field that is left out when 0.
fn number_len(field: u32, value: u64) -> usize {
    if value == 0 { 0 } else { protobuf::number_len(field, value) }
}

/// Length of a field of text or bytes that is left out when empty.
fn content_len(field: u32, len: usize) -> usize {
    if len == 0 { 0 } else { protobuf::delimited_len(field, len) }
}

fn entry_len(key: &str, value: &str) -> usize {
    content_len(ENTRY_KEY, key.len()) + content_len(ENTRY_VALUE, value.len())
}

fn message_len(message: &StreamMessage, keeps: impl Fn(&str) -> bool) -> usize {
    let attributes = message.attributes.iter().filter(|(key, _)| keeps(key));
    let routing_key = message.routing_key.as_ref();
    number_len(REQUEST_ID, message.request_id)
        + content_len(PAYLOAD, message.payload.len())
        + number_len(PUBLISH_TIME, message.publish_time)
        + content_len(PRODUCER_NAME, message.producer_name.len())
        + attributes
            .map(|(key, value)| protobuf::delimited_len(ATTRIBUTES, entry_len(key, value)))
            .sum::<usize>()
        + message.schema_id.map_or(0, |id| protobuf::number_len(SCHEMA_ID, id))
        + message.schema_version.map_or(0, |v| protobuf::number_len(SCHEMA_VERSION, v.into()))
        + routing_key.map_or(0, |key| protobuf::delimited_len(ROUTING_KEY, key.len()))
}

fn put_number(out: &mut BytesMut, field: u32, value: u64) {
    if value != 0 {
        protobuf::put_number(out, field, value);
    }
}

fn put_content(out: &mut BytesMut, field: u32, content: &[u8]) {
    if !content.is_empty() {
        protobuf::put_delimited(out, field, content);
    }
}

/// Fields in ascending order, defaults left out, attributes by key: one message, one encoding.
fn write(
    producer_id: ProducerId,
    message: &StreamMessage,
    keeps: impl Fn(&str) -> bool + Copy,
) -> Bytes {
    let len = HEADER_LEN + message_len(message, keeps);
    let mut out = BytesMut::with_capacity(len);
    out.put_u8(VERSION);
    out.put_u64_le(producer_id.0);
    put_number(&mut out, REQUEST_ID, message.request_id);
    put_content(&mut out, PAYLOAD, &message.payload);
    put_number(&mut out, PUBLISH_TIME, message.publish_time);
    put_content(&mut out, PRODUCER_NAME, message.producer_name.as_bytes());
    for (key, value) in message.attributes.iter().filter(|(key, _)| keeps(key)) {
        protobuf::put_delimiter(&mut out, ATTRIBUTES, entry_len(key, value));
        put_content(&mut out, ENTRY_KEY, key.as_bytes());
        put_content(&mut out, ENTRY_VALUE, value.as_bytes());
    }
    // These say by their presence whether they were given, so a 0 or "" is written too.
    if let Some(id) = message.schema_id {
        protobuf::put_number(&mut out, SCHEMA_ID, id);
    }
    if let Some(version) = message.schema_version {
        protobuf::put_number(&mut out, SCHEMA_VERSION, version.into());
    }
    if let Some(key) = &message.routing_key {
        protobuf::put_delimited(&mut out, ROUTING_KEY, key.as_bytes());
    }
    debug_assert_eq!(out.len(), len, "the length is computed field by field, as they are written");
    out.freeze()
}
