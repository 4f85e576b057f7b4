//! Schemas by id: fetched from the registry once, then remembered; and payloads by them.
//!
//! A message carries the id and version of its schema and not the schema. What is left to others:
//! evolution and compatibility (the registry), refusing payloads (the broker, as the topic's policy
//! says), and what a schema's language means (`danube-schema`, behind the feature `schemas`).
//!
//! Law: a version of a schema never changes, so what was fetched once stays true.

use crate::cluster::{Cluster, Purpose};
use crate::error::Error;
use bytes::Bytes;
use danube_wire::proto::stream::get_schema_request::Which;
use danube_wire::proto::stream::schemas_client::SchemasClient;
use danube_wire::proto::stream::{GetSchemaRequest, GetSchemaResponse};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "schemas")]
mod codec;
#[cfg(not(feature = "schemas"))]
#[path = "schema/json.rs"]
mod codec;

use codec::Codec;

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
#[derive(Debug)]
pub struct Schema {
    id: u64,
    version: u32,
    subject: String,
    kind: String,
    definition: Bytes,
    codec: Codec,
}

impl Schema {
    fn of(found: GetSchemaResponse) -> Schema {
        let codec = Codec::of(&found);
        Schema {
            id: found.schema_id,
            version: found.version,
            subject: found.subject,
            kind: found.schema_type,
            definition: found.definition,
            codec,
        }
    }

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

    /// The payload that a value is: a datum of Avro, a message of Protobuf, a checked JSON text.
    ///
    /// # Errors
    /// [`Error::Payload`], with what does not fit and where.
    ///
    /// ```no_run
    /// # fn example(schema: &danube_sdk::Schema) -> Result<(), danube_sdk::Error> {
    /// let payload = schema.encode(&vec![9.5, 12.0])?;
    /// # let _ = payload;
    /// # Ok(())
    /// # }
    /// ```
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Bytes, Error> {
        let of = || self.to_string();
        self.codec.encode(value).map_err(|why| Error::Payload { of: of(), doing: "written", why })
    }

    /// The value that a payload is, after it was found to be what the schema says.
    ///
    /// # Errors
    /// [`Error::Payload`], with what does not fit and where.
    ///
    /// ```no_run
    /// # fn example(schema: &danube_sdk::Schema, payload: &[u8]) -> Result<(), danube_sdk::Error> {
    /// let prices: Vec<f64> = schema.decode(payload)?;
    /// # let _ = prices;
    /// # Ok(())
    /// # }
    /// ```
    pub fn decode<T: DeserializeOwned>(&self, payload: &[u8]) -> Result<T, Error> {
        let of = || self.to_string();
        self.codec.decode(payload).map_err(|why| Error::Payload { of: of(), doing: "read", why })
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} of schema `{}`", self.version, self.subject)
    }
}

/// The payload of a value on `topic`, by its schema if it has one, else as JSON.
///
/// # Errors
/// [`Error::Payload`].
pub(crate) fn write<T: Serialize + ?Sized>(
    topic: &str,
    schema: Option<&Schema>,
    value: &T,
) -> Result<Bytes, Error> {
    let written = match schema {
        Some(schema) => schema.codec.encode(value),
        None => write_json(value),
    };
    written.map_err(|why| Error::Payload { of: place(topic, schema), doing: "written", why })
}

/// The value of a payload on `topic`, by its schema if it has one, else as JSON.
///
/// # Errors
/// [`Error::Payload`].
pub(crate) fn read<T: DeserializeOwned>(
    topic: &str,
    schema: Option<&Schema>,
    payload: &[u8],
) -> Result<T, Error> {
    let read = match schema {
        Some(schema) => schema.codec.decode(payload),
        None => read_json(payload),
    };
    read.map_err(|why| Error::Payload { of: place(topic, schema), doing: "read", why })
}

fn place(topic: &str, schema: Option<&Schema>) -> String {
    match schema {
        Some(schema) => format!("topic `{topic}`, {schema},"),
        None => format!("topic `{topic}`"),
    }
}

/// The value that a payload without a schema is.
///
/// # Errors
/// Why it is none.
fn read_json<T: DeserializeOwned>(payload: &[u8]) -> Result<T, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

/// The payload that a value without a schema is.
///
/// # Errors
/// Why it has no JSON form.
fn write_json<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, String> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| error.to_string())
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
        self.fetch_schema(Which::SchemaId(id), Some(version)).await
    }

    /// The latest version of the schema `id`.
    pub(crate) async fn latest_schema(&self, id: u64) -> Result<Arc<Schema>, Error> {
        self.fetch_schema(Which::SchemaId(id), None).await
    }

    /// A version of `subject`, the latest when none is named.
    pub(crate) async fn schema_of_subject(
        &self,
        subject: &str,
        version: Option<u32>,
    ) -> Result<Arc<Schema>, Error> {
        self.fetch_schema(Which::Subject(subject.to_owned()), version).await
    }

    async fn fetch_schema(&self, which: Which, version: Option<u32>) -> Result<Arc<Schema>, Error> {
        let which_text = match &which {
            Which::SchemaId(id) => format!("schema `{id}`"),
            Which::Subject(subject) => format!("schema subject `{subject}`"),
        };
        let channel = self.channel(self.url(), Purpose::Publish).await?;
        let request = GetSchemaRequest { which: Some(which), version };
        let mut schemas = SchemasClient::new(channel);
        let answer = self.options.call(schemas.get_schema(request)).await;
        let found = answer.map_err(|status| {
            let version =
                version.map_or("the latest version".to_owned(), |n| format!("version {n}"));
            Error::from_status(self.url(), &format!("{version} of {which_text}"), &status)
        })?;
        let schema = Arc::new(Schema::of(found));
        let mut known = self.schemas.0.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert((schema.id, schema.version), Arc::clone(&schema));
        Ok(schema)
    }
}

#[cfg(test)]
mod tests;
