//! Schemas from outside: the user cases row by row, the stored pairs, properties against
//! independent implementations, and hostile input.

mod cases;
mod codec;
mod corpus;
mod fingerprints;
mod hostile;
mod pairs;
mod payloads;
mod properties;

use danube_schema::{
    Compatibility, JsonLevel, Levels, NoReferences, ProtobufLevel, Schema, SchemaType, Verdict,
    check,
};
use serde_json::Value;

/// Parses a definition that has to be good.
pub(crate) fn parse(kind: SchemaType, definition: &str) -> Schema {
    Schema::parse(kind, definition.as_bytes(), &NoReferences)
        .unwrap_or_else(|error| panic!("{definition}\n{error}"))
}

/// Why a definition is refused.
pub(crate) fn refusal(kind: SchemaType, definition: &str) -> String {
    match Schema::parse(kind, definition.as_bytes(), &NoReferences) {
        Ok(_) => panic!("accepted: {definition}"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn avro(value: &Value) -> Schema {
    parse(SchemaType::Avro, &value.to_string())
}

pub(crate) fn json(value: &Value) -> Schema {
    parse(SchemaType::JsonSchema, &value.to_string())
}

pub(crate) fn proto(text: &str) -> Schema {
    parse(SchemaType::Protobuf, text)
}

pub(crate) const STRICT: Levels = Levels { json: JsonLevel::Strict, protobuf: ProtobufLevel::Wire };
pub(crate) const LENIENT: Levels =
    Levels { json: JsonLevel::Lenient, protobuf: ProtobufLevel::Wire };
pub(crate) const JSON_NAMES: Levels =
    Levels { json: JsonLevel::Lenient, protobuf: ProtobufLevel::Json };

pub(crate) fn one(mode: Compatibility, levels: Levels, old: &Schema, new: &Schema) -> Verdict {
    check(mode, levels, &[(1, old)], new)
}

/// Everything a verdict says, one line each.
pub(crate) fn told(verdict: &Verdict) -> String {
    let breaks = verdict.breaks.iter().map(ToString::to_string);
    let warnings = verdict.warnings.iter().map(|warning| format!("warning: {warning}"));
    breaks.chain(warnings).collect::<Vec<_>>().join("\n")
}
