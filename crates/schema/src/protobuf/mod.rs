//! Protobuf: `.proto` definitions, wire compatibility between versions, and payloads.
//!
//! `parse` compiles the text from memory and keeps what the wire depends on, `compare` holds the
//! rules, `payload` walks an encoded message, `codec` turns one into JSON and back. A payload is decoded as the *root* message: the one
//! that a comment `// danube:root=NAME` names, else the first in the file.
//!
//! Law: fields are known by their numbers and messages by their full names, never by position.

mod codec;
mod compare;
mod parse;
mod payload;

use crate::error::{PayloadFault, SchemaError};
use crate::limits::PayloadLimits;
use crate::references::References;
use crate::verdict::Findings;
use danube_core::schema::ProtobufLevel;
use prost_types::field_descriptor_proto::Type;
use std::collections::{BTreeMap, BTreeSet};

/// A parsed definition with everything that it imports.
pub(crate) struct ProtobufSchema {
    messages: BTreeMap<String, Message>,
    enums: BTreeMap<String, Enum>,
    root: String,
    canonical: Vec<u8>,
    /// The root message, for encoding and decoding.
    descriptor: prost_reflect::MessageDescriptor,
}

#[derive(Default)]
struct Message {
    fields: BTreeMap<i32, Field>,
    reserved: Reserved,
    is_map_entry: bool,
    /// Imported messages are compared only where something refers to them.
    imported: bool,
}

struct Field {
    name: String,
    json_name: String,
    kind: Type,
    /// Full name of the message or enum.
    type_name: String,
    repeated: bool,
    required: bool,
    /// Of a oneof that excludes its other fields.
    oneof: Option<String>,
}

#[derive(Default)]
struct Enum {
    values: BTreeMap<i32, BTreeSet<String>>,
    reserved: Reserved,
    imported: bool,
}

/// Numbers (both ends included) and names that must not be used again.
#[derive(Default)]
struct Reserved {
    ranges: Vec<(i64, i64)>,
    names: BTreeSet<String>,
}

impl Reserved {
    fn has_number(&self, number: i32) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&i64::from(number)))
    }
}

impl ProtobufSchema {
    pub(crate) fn parse(
        definition: &[u8],
        references: &dyn References,
    ) -> Result<ProtobufSchema, SchemaError> {
        parse::parse(definition, references)
    }

    /// Descriptors without comments, in a fixed order, and the root.
    pub(crate) fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// Full name of the message that payloads are decoded as.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn compare(
        &self,
        new: &ProtobufSchema,
        level: ProtobufLevel,
        findings: &mut Findings<'_>,
    ) {
        compare::compare(self, new, level, findings);
    }

    /// A JSON value as the root message.
    pub(crate) fn encode(&self, value: &serde_json::Value) -> Result<Vec<u8>, PayloadFault> {
        codec::encode(self, value)
    }

    /// The root message as a JSON value.
    pub(crate) fn decode(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<serde_json::Value, PayloadFault> {
        codec::decode(self, payload, limits)
    }

    pub(crate) fn validate(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<(), PayloadFault> {
        payload::validate(self, payload, limits)
    }
}

/// The word of the language for a type.
fn word(kind: Type) -> &'static str {
    match kind {
        Type::Double => "double",
        Type::Float => "float",
        Type::Int64 => "int64",
        Type::Uint64 => "uint64",
        Type::Int32 => "int32",
        Type::Fixed64 => "fixed64",
        Type::Fixed32 => "fixed32",
        Type::Bool => "bool",
        Type::String => "string",
        Type::Group => "group",
        Type::Message => "message",
        Type::Bytes => "bytes",
        Type::Uint32 => "uint32",
        Type::Enum => "enum",
        Type::Sfixed32 => "sfixed32",
        Type::Sfixed64 => "sfixed64",
        Type::Sint32 => "sint32",
        Type::Sint64 => "sint64",
    }
}
