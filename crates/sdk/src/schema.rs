//! Schemas by id: fetched from the registry once, then remembered.
//!
//! A message carries the id and version of its schema and not the schema. What is left to others:
//! evolution and compatibility (the registry), and refusing payloads (the broker, as the topic's
//! policy says).
//!
//! Law: a version of a schema never changes, so what was fetched once stays true.

use crate::cluster::{Cluster, Purpose};
use crate::error::Error;
use bytes::Bytes;
use danube_wire::proto::danube_schema::GetSchemaRequest;
use danube_wire::proto::danube_schema::schema_registry_client::SchemaRegistryClient;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;

/// Versions that are remembered; beyond them all are forgotten and fetched again.
const KNOWN_MAX: usize = 4_096;

/// One version of a schema, as the registry has it.
///
/// ```no_run
/// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
/// let schema = client.schema(17, 3).await?;
/// println!("{} of {}", schema.kind(), schema.subject());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    id: u64,
    version: u32,
    subject: String,
    kind: String,
    definition: Bytes,
}

impl Schema {
    /// The id of its subject, as messages carry it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The version within its subject, from 1 on.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The subject.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// What it is written in: `json_schema`, `avro`, `protobuf`, `string`, `number` or `bytes`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Exactly the bytes that were registered.
    pub fn definition(&self) -> &Bytes {
        &self.definition
    }

    /// The value that a payload of this schema is.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn read<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, String> {
        match self.kind.as_str() {
            "json_schema" | "number" => read_json(payload),
            "string" => {
                let text = std::str::from_utf8(payload).map_err(|error| error.to_string())?;
                let value = serde_json::Value::String(text.to_owned());
                serde_json::from_value(value).map_err(|error| error.to_string())
            }
            kind => Err(format!(
                "version {} of its schema `{}` is `{kind}`, and typed consumers read JSON; take \
                 the payload as bytes",
                self.version, self.subject
            )),
        }
    }
}

/// The value that a payload without a schema is.
///
/// # Errors
/// Why it is none.
pub(crate) fn read_json<T: DeserializeOwned>(payload: &[u8]) -> Result<T, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

/// The versions that were fetched.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<(u64, u32), Arc<Schema>>>);

impl Cluster {
    /// Version `version` of the schema `id`, fetched when it is not known yet.
    pub(crate) async fn schema(&self, id: u64, version: u32) -> Result<Arc<Schema>, Error> {
        if let Some(schema) = self.schemas.0.lock().get(&(id, version)) {
            return Ok(Arc::clone(schema));
        }
        let channel = self.channel(self.url(), Purpose::Publish).await?;
        let request = GetSchemaRequest { schema_id: id, version: Some(version) };
        let mut registry = SchemaRegistryClient::new(channel);
        let answer = self.options.call(registry.get_schema(request)).await;
        let found = answer.map_err(|status| {
            let doing = format!("version {version} of schema `{id}`");
            Error::from_status(self.url(), &doing, &status)
        })?;
        let schema = Arc::new(Schema {
            id,
            version,
            subject: found.subject,
            kind: found.schema_type,
            definition: found.schema_definition,
        });
        let mut known = self.schemas.0.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert((id, version), Arc::clone(&schema));
        Ok(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str) -> Schema {
        let (subject, definition) = ("orders".to_owned(), Bytes::new());
        Schema { id: 1, version: 3, subject, kind: kind.to_owned(), definition }
    }

    #[test]
    fn a_payload_is_read_as_its_schema_says() {
        assert_eq!(of("json_schema").read::<Vec<u32>>(b"[1,2]"), Ok(vec![1, 2]));
        assert_eq!(of("number").read::<f64>(b"2.5"), Ok(2.5));
        assert_eq!(of("string").read::<String>(b"17"), Ok("17".to_owned()));
        let refused = of("avro").read::<u32>(b"17").expect_err("no JSON");
        assert!(refused.starts_with("version 3 of its schema `orders` is `avro`"), "{refused}");
    }
}
