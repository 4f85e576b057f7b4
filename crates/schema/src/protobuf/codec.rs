//! The root message as JSON and back, by Protobuf's own JSON mapping.
//!
//! Law: a name that the message does not have is an error, not left out in silence.

use super::ProtobufSchema;
use crate::error::PayloadFault;
use crate::limits::PayloadLimits;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::Value;

pub(super) fn encode(schema: &ProtobufSchema, value: &Value) -> Result<Vec<u8>, PayloadFault> {
    let message = DynamicMessage::deserialize(schema.descriptor.clone(), value)
        .map_err(|error| PayloadFault::new("", error.to_string()))?;
    Ok(message.encode_to_vec())
}

pub(super) fn decode(
    schema: &ProtobufSchema,
    payload: &[u8],
    limits: &PayloadLimits,
) -> Result<Value, PayloadFault> {
    // First within our bounds, so that what follows is in proportion to the payload.
    super::payload::validate(schema, payload, limits)?;
    let message = DynamicMessage::decode(schema.descriptor.clone(), payload)
        .map_err(|error| PayloadFault::new("", error.to_string()))?;
    message
        .serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new())
        .map_err(|error| PayloadFault::new("", error.to_string()))
}
