//! The words of the schema registry: types, compatibility, levels, validation, subjects.
//!
//! What a schema says and whether two of them agree is left to the crate `schema`; which versions a
//! subject has is in the catalog.
//!
//! Law: the wire's spellings are read without regard to case, and only the lower-case one is
//! written.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name of a subject, in bytes.
pub const SUBJECT_LEN_MAX: usize = 255;

/// What a schema registers under, such as `order-events`, `com.acme.Address` or
/// `https://acme.example/address.json`. A definition that refers to another names its subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubjectName(Arc<str>);

impl SubjectName {
    /// Takes any text of 1 to [`SUBJECT_LEN_MAX`] bytes without control characters and without
    /// white space at its ends.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), saying what is wrong.
    pub fn parse(text: &str) -> Result<SubjectName, Fault> {
        let refused = |why: String| {
            let shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
            Err(Fault::invalid(format!("schema subject `{shown}` {why}")))
        };
        if text.is_empty() {
            return Err(Fault::invalid("schema subject is empty; give it a name"));
        }
        if text.len() > SUBJECT_LEN_MAX {
            return refused(format!(
                "has {} bytes; at most {SUBJECT_LEN_MAX} are allowed",
                text.len()
            ));
        }
        if text.trim() != text {
            return refused("begins or ends with white space; leave it out".to_owned());
        }
        match text.chars().find(|c| c.is_control()) {
            Some(c) => refused(format!("contains {c:?}; control characters are not allowed")),
            None => Ok(SubjectName(text.into())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SubjectName {
    type Error = Fault;

    fn try_from(text: String) -> Result<SubjectName, Fault> {
        SubjectName::parse(&text)
    }
}

impl From<SubjectName> for String {
    fn from(name: SubjectName) -> String {
        name.0.as_ref().into()
    }
}

/// So that a map can be asked by text; the order is that of the text.
impl Borrow<str> for SubjectName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The refusal of a word that is none of `choices`.
fn unknown(what: &str, got: &str, choices: &str) -> Fault {
    let got: String = got.chars().take(64).flat_map(char::escape_debug).collect();
    Fault::invalid(format!("{what} `{got}` is unknown; use {choices}"))
}

fn normalised(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('-', "_")
}

/// Words of the wire: spelling out, spelling in, and display.
macro_rules! words {
    ($name:ident, $what:literal, $choices:literal, $($variant:ident = $word:literal $(| $alias:literal)*),+) => {
        impl $name {
            /// The lower-case spelling that goes out on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = Fault;

            /// Reads any spelling, without regard to case and with `-` as `_`.
            fn from_str(text: &str) -> Result<$name, Fault> {
                match normalised(text).as_str() {
                    $($word $(| $alias)* => Ok($name::$variant),)+
                    _ => Err(unknown($what, text, $choices)),
                }
            }
        }
    };
}

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

words!(
    SchemaType,
    "schema type",
    "avro, json_schema, protobuf, string, number or bytes",
    Avro = "avro",
    JsonSchema = "json_schema" | "jsonschema" | "json",
    Protobuf = "protobuf" | "proto",
    String = "string",
    Number = "number" | "int64" | "int" | "float" | "double",
    Bytes = "bytes"
);

/// What a subject promises about its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compatibility {
    /// Nothing.
    None,
    /// Whoever has the new schema can read everything written before.
    #[default]
    Backward,
    /// Whoever has any existing version can read what is written from now on.
    Forward,
    /// Both.
    Full,
}

words!(
    Compatibility,
    "compatibility mode",
    "none, backward, forward or full",
    None = "none",
    Backward = "backward",
    Forward = "forward",
    Full = "full"
);

/// How open objects of JSON Schema are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonLevel {
    /// Names that only the reader declares are taken as unused by a writer that leaves its objects
    /// open. Adding or dropping an optional property is then compatible.
    #[default]
    Lenient,
    /// Pure set inclusion.
    Strict,
}

words!(
    JsonLevel,
    "level for JSON Schema",
    "lenient or strict",
    Lenient = "lenient",
    Strict = "strict"
);

/// What of a Protobuf schema other people depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtobufLevel {
    /// The binary encoding: numbers and types.
    #[default]
    Wire,
    /// The JSON encoding too: names of fields and of enum values.
    Json,
}

words!(ProtobufLevel, "level for Protobuf", "wire or json", Wire = "wire", Json = "json");

/// The named levels of a subject, for the languages that have some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Levels {
    /// For JSON Schema.
    #[serde(default)]
    pub json: JsonLevel,
    /// For Protobuf.
    #[serde(default)]
    pub protobuf: ProtobufLevel,
}

/// What a topic does with a message that does not fit its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidationPolicy {
    /// It takes the message and looks at nothing.
    None,
    /// It takes the message, counts it and says so in the log.
    #[default]
    Warn,
    /// It refuses the message.
    Enforce,
}

words!(
    ValidationPolicy,
    "validation policy",
    "none, warn or enforce",
    None = "none",
    Warn = "warn",
    Enforce = "enforce"
);

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
        assert_eq!(" Backward ".parse::<Compatibility>(), Ok(Compatibility::Backward));
        assert_eq!("ENFORCE".parse::<ValidationPolicy>(), Ok(ValidationPolicy::Enforce));
        assert!("backwards".parse::<Compatibility>().is_err());
        assert!("strict\u{7}".parse::<JsonLevel>().is_err());
    }

    #[test]
    fn a_subject_is_any_printable_text() {
        for text in
            ["orders", "com.acme.Address", "https://acme/a.json", "größe mit raum", "a/b.proto"]
        {
            assert_eq!(SubjectName::parse(text).expect(text).as_str(), text);
        }
        for text in ["", " a", "a ", "a\nb", &"x".repeat(256)] {
            assert!(SubjectName::parse(text).is_err(), "{text:?}");
        }
    }
}
