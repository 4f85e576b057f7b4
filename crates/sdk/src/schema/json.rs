//! Payloads as JSON, for builds without the feature `schemas`: nothing is checked.

use super::{read_json, write_json};
use bytes::Bytes;
use danube_wire::proto::stream::GetSchemaResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the schema is written in.
#[derive(Debug)]
pub(super) struct Codec(String);

impl Codec {
    pub(super) fn of(found: &GetSchemaResponse) -> Codec {
        Codec(found.schema_type.clone())
    }

    fn unknown(&self) -> String {
        format!("it is `{}`, which needs the feature `schemas` of danube-sdk", self.0)
    }

    pub(super) fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Bytes, String> {
        match self.0.as_str() {
            "json_schema" => write_json(value),
            _ => Err(self.unknown()),
        }
    }

    pub(super) fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, String> {
        match self.0.as_str() {
            "json_schema" => read_json(payload),
            _ => Err(self.unknown()),
        }
    }
}
