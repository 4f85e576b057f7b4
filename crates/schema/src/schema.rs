//! The parsed schema: one value that knows its fingerprint, its payloads and its relatives.

use crate::avro::AvroSchema;
use crate::error::{PayloadFault, SchemaError};
use crate::fingerprint::Fingerprint;
use crate::json::JsonSchema;
use crate::limits::{DEFINITION_LEN_MAX, PayloadLimits};
use crate::primitive;
use crate::protobuf::ProtobufSchema;
use crate::references::References;
use crate::verdict::{Direction, Findings};
use danube_core::schema::Levels;
use danube_core::schema::SchemaType;
use std::fmt;

/// A definition that was parsed, checked and found within bounds.
pub struct Schema {
    kind: SchemaType,
    fingerprint: Fingerprint,
    body: Body,
}

enum Body {
    Avro(Box<AvroSchema>),
    Json(Box<JsonSchema>),
    Protobuf(Box<ProtobufSchema>),
    String,
    Number,
    Bytes,
}

impl Schema {
    /// Parses and checks a definition. Definitions of plain types are not looked into.
    ///
    /// # Errors
    /// [`SchemaError`], which says where and what would be right.
    pub fn parse(
        kind: SchemaType,
        definition: &[u8],
        references: &dyn References,
    ) -> Result<Schema, SchemaError> {
        if definition.len() > DEFINITION_LEN_MAX {
            return Err(SchemaError::TooLarge {
                kind,
                what: "its length in bytes",
                got: definition.len(),
                max: DEFINITION_LEN_MAX,
            });
        }
        let plain = |body, word: &str| (body, Fingerprint::of(word.as_bytes()));
        let (body, fingerprint) = match kind {
            SchemaType::Avro => {
                let avro = AvroSchema::parse(definition, references)?;
                let fingerprint = Fingerprint::of(avro.canonical().as_bytes());
                (Body::Avro(Box::new(avro)), fingerprint)
            }
            SchemaType::JsonSchema => {
                let json = JsonSchema::parse(definition, references)?;
                let fingerprint = Fingerprint::of(json.canonical().as_bytes());
                (Body::Json(Box::new(json)), fingerprint)
            }
            SchemaType::Protobuf => {
                let protobuf = ProtobufSchema::parse(definition, references)?;
                let fingerprint = Fingerprint::of(protobuf.canonical());
                (Body::Protobuf(Box::new(protobuf)), fingerprint)
            }
            SchemaType::String => plain(Body::String, "string"),
            SchemaType::Number => plain(Body::Number, "number"),
            SchemaType::Bytes => plain(Body::Bytes, "bytes"),
        };
        Ok(Schema { kind, fingerprint, body })
    }

    /// Its language.
    pub fn kind(&self) -> SchemaType {
        self.kind
    }

    /// The identity of its canonical form.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// For Protobuf, the message that payloads are decoded as.
    pub fn root_message(&self) -> Option<&str> {
        match &self.body {
            Body::Protobuf(protobuf) => Some(protobuf.root()),
            _ => None,
        }
    }

    /// Checks that `payload` is what the schema describes.
    ///
    /// # Errors
    /// What does not fit, at most `limits.faults_max` places; also when looking would pass a limit.
    pub fn validate(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<(), Vec<PayloadFault>> {
        match &self.body {
            Body::Avro(avro) => avro.validate(payload, limits).map_err(|fault| vec![fault]),
            Body::Json(json) => json.validate(payload, limits),
            Body::Protobuf(protobuf) => {
                protobuf.validate(payload, limits).map_err(|fault| vec![fault])
            }
            Body::String => primitive::string(payload).map_err(|fault| vec![fault]),
            Body::Number => primitive::number(payload).map_err(|fault| vec![fault]),
            Body::Bytes => Ok(()),
        }
    }

    /// A JSON value as a payload: encoded by Avro and Protobuf schemas, as it is by JSON Schema. Of a
    /// string schema it is a text; numbers and bytes have no form that everybody would agree on.
    ///
    /// # Errors
    /// What does not fit, and where.
    pub fn encode(
        &self,
        value: &serde_json::Value,
        limits: &PayloadLimits,
    ) -> Result<Vec<u8>, PayloadFault> {
        match (&self.body, value) {
            (Body::Avro(avro), _) => avro.encode(value, limits),
            (Body::Protobuf(protobuf), _) => protobuf.encode(value),
            (Body::Json(_), _) => {
                let text = value.to_string().into_bytes();
                self.validate(&text, limits).map_err(first)?;
                Ok(text)
            }
            (Body::String, serde_json::Value::String(text)) => Ok(text.clone().into_bytes()),
            _ => Err(PayloadFault::new(
                "",
                format!("a {} payload is not made from JSON; give its bytes", self.kind),
            )),
        }
    }

    /// A payload as a JSON value: the inverse of [`Schema::encode`]. An Avro payload has to be a
    /// bare datum that was written with this very schema.
    ///
    /// # Errors
    /// What does not fit, and where.
    pub fn decode(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<serde_json::Value, PayloadFault> {
        match &self.body {
            Body::Avro(avro) => avro.decode(payload, limits),
            Body::Protobuf(protobuf) => protobuf.decode(payload, limits),
            Body::Json(_) => {
                self.validate(payload, limits).map_err(first)?;
                serde_json::from_slice(payload)
                    .map_err(|error| PayloadFault::new("", format!("is not JSON: {error}")))
            }
            Body::String => match std::str::from_utf8(payload) {
                Ok(text) => Ok(text.into()),
                Err(_) => Err(PayloadFault::new("", "is not UTF-8")),
            },
            Body::Number | Body::Bytes => {
                Err(PayloadFault::new("", format!("a {} payload has no JSON form", self.kind)))
            }
        }
    }

    /// Writes into `findings` what breaks in its direction between this version and `new`.
    pub(crate) fn compare(&self, new: &Schema, levels: Levels, findings: &mut Findings<'_>) {
        match (&self.body, &new.body) {
            (Body::Avro(old), Body::Avro(new)) => match findings.direction() {
                Direction::NewReadsOld => new.read(old, findings),
                Direction::OldReadsNew => old.read(new, findings),
            },
            (Body::Json(old), Body::Json(new)) => match findings.direction() {
                Direction::NewReadsOld => new.read(old, levels.json, findings),
                Direction::OldReadsNew => old.read(new, levels.json, findings),
            },
            (Body::Protobuf(old), Body::Protobuf(new)) => {
                old.compare(new, levels.protobuf, findings);
            }
            _ if self.kind == new.kind => {}
            _ => findings.old_new(
                "",
                "schema_type",
                self.kind.as_str(),
                new.kind.as_str(),
                "the schema type of a subject does not change; register it under another subject",
            ),
        }
    }
}

fn first(faults: Vec<PayloadFault>) -> PayloadFault {
    faults.into_iter().next().unwrap_or_else(|| PayloadFault::new("", "is not valid"))
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("kind", &self.kind)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}
