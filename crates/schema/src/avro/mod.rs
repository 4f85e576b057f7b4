//! Avro 1.12: definitions, resolution between versions, and payloads.
//!
//! `parse` reads a definition into a table of types, `default` checks the defaults of fields,
//! `resolve` decides whether one schema can read what another wrote, `datum` and `container` walk
//! payloads: a broker only has to know that decoding would work. `encode` and `decode` are for tools.
//!
//! Law: a payload is walked once from front to back; nothing is allocated in proportion to a
//! number that the payload merely claims.

mod container;
mod datum;
mod decode;
mod default;
mod encode;
mod parse;
mod resolve;

use crate::error::{PayloadFault, SchemaError};
use crate::limits::PayloadLimits;
use crate::references::References;
use crate::verdict::Findings;

/// Index into [`AvroSchema::types`].
pub(crate) type TypeId = usize;

/// A parsed definition: all its types in one table, so that recursion is an index.
pub(crate) struct AvroSchema {
    types: Vec<Type>,
    root: TypeId,
    canonical: String,
}

/// One type, with what resolution has to know of its logical type.
#[derive(Debug, Clone)]
struct Type {
    kind: Kind,
    decimal: Option<Decimal>,
}

#[derive(Debug, Clone)]
enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
    Record { name: Name, fields: Vec<Field> },
    Enum { name: Name, symbols: Vec<String>, default: Option<String> },
    Fixed { name: Name, size: usize },
}

/// Full name and aliases, all with their namespace.
#[derive(Debug, Clone)]
struct Name {
    full: String,
    aliases: Vec<String>,
}

impl Name {
    fn simple(&self) -> &str {
        simple(&self.full)
    }
}

fn simple(full: &str) -> &str {
    full.rsplit('.').next().unwrap_or(full)
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    aliases: Vec<String>,
    of: TypeId,
    default: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    precision: u64,
    scale: u64,
}

impl AvroSchema {
    pub(crate) fn parse(
        definition: &[u8],
        references: &dyn References,
    ) -> Result<AvroSchema, SchemaError> {
        parse::parse(definition, references)
    }

    /// Full names, sorted keys, no documentation.
    pub(crate) fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Checks that `self` as reader resolves everything that `writer` can write.
    pub(crate) fn read(&self, writer: &AvroSchema, findings: &mut Findings<'_>) {
        resolve::resolve(self, writer, findings);
    }

    /// A bare datum or an object container file.
    pub(crate) fn validate(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<(), PayloadFault> {
        if payload.starts_with(container::MAGIC) {
            // A bare datum may begin with these four bytes too, so either reading will do.
            return container::validate(self, payload, limits)
                .or_else(|fault| datum::validate(self, payload, limits).map_err(|_| fault));
        }
        datum::validate(self, payload, limits)
    }

    /// A JSON value as one datum.
    pub(crate) fn encode(
        &self,
        value: &serde_json::Value,
        limits: &PayloadLimits,
    ) -> Result<Vec<u8>, PayloadFault> {
        encode::encode(self, value, limits)
    }

    /// One datum as a JSON value.
    pub(crate) fn decode(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<serde_json::Value, PayloadFault> {
        decode::decode(self, payload, limits)
    }

    fn type_of(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    /// What a person calls the type.
    fn label(&self, id: TypeId) -> String {
        let of = self.type_of(id);
        match &of.kind {
            Kind::Null => "null".into(),
            Kind::Boolean => "boolean".into(),
            Kind::Int => "int".into(),
            Kind::Long => "long".into(),
            Kind::Float => "float".into(),
            Kind::Double => "double".into(),
            Kind::Bytes => match of.decimal {
                Some(decimal) => format!("bytes decimal({}, {})", decimal.precision, decimal.scale),
                None => "bytes".into(),
            },
            Kind::String => "string".into(),
            Kind::Array(items) => format!("array<{}>", self.short_label(*items)),
            Kind::Map(values) => format!("map<{}>", self.short_label(*values)),
            Kind::Union(branches) => {
                let mut labels: Vec<String> =
                    branches.iter().take(8).map(|branch| self.short_label(*branch)).collect();
                if branches.len() > 8 {
                    labels.push("…".into());
                }
                format!("[{}]", labels.join(", "))
            }
            Kind::Record { name, .. } => format!("record {}", name.full),
            Kind::Enum { name, .. } => format!("enum {}", name.full),
            Kind::Fixed { name, size } => match of.decimal {
                Some(decimal) => format!(
                    "fixed {}({size}) decimal({}, {})",
                    name.full, decimal.precision, decimal.scale
                ),
                None => format!("fixed {}({size})", name.full),
            },
        }
    }

    /// [`AvroSchema::label`] without looking into containers, so that labels stay short.
    fn short_label(&self, id: TypeId) -> String {
        match &self.type_of(id).kind {
            Kind::Array(_) => "array".into(),
            Kind::Map(_) => "map".into(),
            Kind::Union(_) => "union".into(),
            _ => self.label(id),
        }
    }
}
