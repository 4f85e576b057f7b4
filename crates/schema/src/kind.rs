//! The six kinds of schema and every way in which the wire spells them.

use crate::error::SchemaError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What language a definition is written in, or which plain payload it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaType {
    /// An Avro schema in JSON.
    Avro,
    /// A JSON Schema, draft-06, draft-07, 2019-09 or 2020-12.
    JsonSchema,
    /// A `.proto` file.
    Protobuf,
    /// UTF-8 text; the definition says nothing.
    String,
    /// Four or eight bytes; the definition says nothing.
    Number,
    /// Anything; the definition says nothing.
    Bytes,
}

impl SchemaType {
    /// The lower-case spelling that goes out on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            SchemaType::Avro => "avro",
            SchemaType::JsonSchema => "json_schema",
            SchemaType::Protobuf => "protobuf",
            SchemaType::String => "string",
            SchemaType::Number => "number",
            SchemaType::Bytes => "bytes",
        }
    }
}

impl fmt::Display for SchemaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SchemaType {
    type Err = SchemaError;

    /// Reads any wire spelling, without regard to case and with `-` as `_`.
    fn from_str(text: &str) -> Result<SchemaType, SchemaError> {
        match text.trim().to_ascii_lowercase().replace('-', "_").as_str() {
            "avro" => Ok(SchemaType::Avro),
            "json_schema" | "jsonschema" | "json" => Ok(SchemaType::JsonSchema),
            "protobuf" | "proto" => Ok(SchemaType::Protobuf),
            "string" => Ok(SchemaType::String),
            "number" | "int64" | "int" | "float" | "double" => Ok(SchemaType::Number),
            "bytes" => Ok(SchemaType::Bytes),
            _ => Err(SchemaError::UnknownType(text.chars().take(64).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_spelling_is_read_and_only_the_canonical_one_is_written() {
        for (spelling, kind) in [
            ("avro", SchemaType::Avro),
            ("AVRO", SchemaType::Avro),
            ("json", SchemaType::JsonSchema),
            ("Json-Schema", SchemaType::JsonSchema),
            ("json_schema", SchemaType::JsonSchema),
            ("proto", SchemaType::Protobuf),
            ("protobuf", SchemaType::Protobuf),
            ("String", SchemaType::String),
            ("int64", SchemaType::Number),
            ("int", SchemaType::Number),
            ("float", SchemaType::Number),
            ("double", SchemaType::Number),
            ("number", SchemaType::Number),
            ("bytes", SchemaType::Bytes),
        ] {
            assert_eq!(spelling.parse::<SchemaType>().unwrap(), kind, "{spelling}");
            assert_eq!(kind.as_str().parse::<SchemaType>().unwrap(), kind);
        }
        let error = "thrift".parse::<SchemaType>().unwrap_err().to_string();
        assert!(error.contains("`thrift`") && error.contains("json_schema"), "{error}");
    }
}
