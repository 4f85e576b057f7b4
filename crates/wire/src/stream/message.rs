//! A message as a client writes and reads it, borrowed and without a map.

use crate::protobuf;
use crate::record::{
    ATTRIBUTES, ENTRY_KEY, ENTRY_VALUE, PAYLOAD, PUBLISH_TIME, ROUTING_KEY, SCHEMA_ID,
    SCHEMA_VERSION,
};
use bytes::BufMut;
use danube_core::WallMs;

/// A message to be published: what of `danube.stream.v1.Message` a client fills in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message<'a> {
    /// The payload.
    pub payload: &'a [u8],
    /// When it is published.
    pub publish_time: WallMs,
    /// Names and values; of two of one name the last counts.
    pub attributes: &'a [(String, String)],
    /// The schema of the payload: id and version.
    pub schema: Option<(u64, u32)>,
    /// The key that keeps messages in order.
    pub routing_key: Option<&'a str>,
}

impl Message<'_> {
    /// Bytes that the message takes, without tag and length.
    pub fn encoded_len(&self) -> usize {
        let attributes = self.attributes.iter().map(|(key, value)| entry_len(key, value));
        let attributes: usize =
            attributes.map(|len| protobuf::delimited_len(ATTRIBUTES, len)).sum();
        let schema = self.schema.map_or(0, |(id, version)| {
            protobuf::number_len(SCHEMA_ID, id)
                + protobuf::number_len(SCHEMA_VERSION, version.into())
        });
        let key = self.routing_key.map_or(0, |key| protobuf::delimited_len(ROUTING_KEY, key.len()));
        protobuf::delimited_len(PAYLOAD, self.payload.len())
            + protobuf::number_len(PUBLISH_TIME, self.publish_time.0)
            + attributes
            + schema
            + key
    }

    /// Writes the message, without tag and length.
    pub(super) fn write(&self, out: &mut impl BufMut) {
        protobuf::put_delimited(out, PAYLOAD, self.payload);
        protobuf::put_number(out, PUBLISH_TIME, self.publish_time.0);
        for (key, value) in self.attributes {
            protobuf::put_delimiter(out, ATTRIBUTES, entry_len(key, value));
            protobuf::put_delimited(out, ENTRY_KEY, key.as_bytes());
            protobuf::put_delimited(out, ENTRY_VALUE, value.as_bytes());
        }
        if let Some((id, version)) = self.schema {
            protobuf::put_number(out, SCHEMA_ID, id);
            protobuf::put_number(out, SCHEMA_VERSION, version.into());
        }
        if let Some(key) = self.routing_key {
            protobuf::put_delimited(out, ROUTING_KEY, key.as_bytes());
        }
    }
}

fn entry_len(key: &str, value: &str) -> usize {
    protobuf::delimited_len(ENTRY_KEY, key.len())
        + protobuf::delimited_len(ENTRY_VALUE, value.len())
}
