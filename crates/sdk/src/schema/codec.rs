//! Payloads by the schema's own language.
//!
//! Law: what this writes the broker's check accepts, for both ask the same crate.

use super::{read_json, write_json};
use bytes::Bytes;
use danube_schema::{PayloadFault, PayloadLimits, SchemaType};
use danube_wire::proto::stream::GetSchemaResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A parsed definition, or why this library cannot read it.
#[derive(Debug)]
pub(super) struct Codec(Result<danube_schema::Schema, String>);

impl Codec {
    pub(super) fn of(found: &GetSchemaResponse) -> Codec {
        let references: BTreeMap<String, Vec<u8>> = found
            .references
            .iter()
            .map(|(name, definition)| (name.clone(), definition.to_vec()))
            .collect();
        let kind = found.schema_type.parse::<SchemaType>().map_err(|fault| fault.message);
        Codec(kind.and_then(|kind| {
            danube_schema::Schema::parse(kind, &found.definition, &references)
                .map_err(|error| error.to_string())
        }))
    }

    fn schema(&self) -> Result<&danube_schema::Schema, String> {
        self.0.as_ref().map_err(Clone::clone)
    }

    pub(super) fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Bytes, String> {
        let schema = self.schema()?;
        let limits = PayloadLimits::default();
        match schema.kind() {
            // Checked as it is written, so that numbers and the order of keys stay the value's own.
            SchemaType::JsonSchema => {
                let payload = write_json(value)?;
                schema.validate(&payload, &limits).map_err(|faults| first(&faults))?;
                Ok(payload)
            }
            _ => {
                let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
                let payload = schema.encode(&value, &limits);
                payload.map(Bytes::from).map_err(|fault| fault.to_string())
            }
        }
    }

    pub(super) fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, String> {
        let schema = self.schema()?;
        let limits = PayloadLimits::default();
        match schema.kind() {
            SchemaType::JsonSchema => {
                schema.validate(payload, &limits).map_err(|faults| first(&faults))?;
                read_json(payload)
            }
            _ => {
                let value = schema.decode(payload, &limits).map_err(|fault| fault.to_string())?;
                serde_json::from_value(value).map_err(|error| error.to_string())
            }
        }
    }
}

fn first(faults: &[PayloadFault]) -> String {
    match faults {
        [] => "it does not fit".to_owned(),
        [fault] => fault.to_string(),
        [fault, rest @ ..] => format!("{fault} (and {} more)", rest.len()),
    }
}
