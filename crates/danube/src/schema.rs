//! Schemas on the command line: which one a producer follows, and payloads from JSON and back.
//!
//! Definitions come from the registry by the client library, which encodes and decodes by them. What
//! compatibility means is left to the broker. Law: a payload that its schema does not decode is shown as it is, never dropped.

use crate::channel::{self, call};
use crate::failure::Failure;
use crate::wire;
use bytes::Bytes;
use danube_core::SubjectName;
use danube_schema::SchemaType;
use danube_sdk::{Client, Schema};
use danube_wire::proto::danube_schema as proto;
use proto::schema_registry_client::SchemaRegistryClient;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Schemas that a consumer keeps; the wire lets producers name any number.
const KEPT_MAX: usize = 1_000;

/// Which schema messages follow.
#[derive(Debug, clap::Args)]
pub struct SchemaArguments {
    /// The schema subject that messages follow; JSON is encoded by an Avro or Protobuf schema
    #[arg(long, value_name = "SUBJECT")]
    schema_subject: Option<String>,
    /// Follow this version [default: the latest]
    #[arg(long, value_name = "N", requires = "schema_subject")]
    schema_version: Option<u32>,
    /// Follow the latest version, which must be at least this one
    #[arg(long, value_name = "N", requires = "schema_subject", conflicts_with = "schema_version")]
    schema_min_version: Option<u32>,
    /// Register this definition first, and follow it
    #[arg(
        long,
        value_name = "FILE",
        requires = "schema_subject",
        requires = "schema_type",
        conflicts_with_all = ["schema_version", "schema_min_version"]
    )]
    schema_file: Option<PathBuf>,
    /// The type of that definition: avro, json_schema, protobuf, string, number or bytes
    #[arg(long, value_name = "TYPE", requires = "schema_file")]
    schema_type: Option<String>,
}

impl SchemaArguments {
    /// The version that was asked for; `None` when none was.
    ///
    /// # Errors
    /// It is not registered, cannot be, or is too old.
    pub async fn resolve(&self, service_addr: &str) -> Result<Option<Codec>, Failure> {
        let Some(subject) = &self.schema_subject else { return Ok(None) };
        let subject = SubjectName::parse(subject)?.to_string();
        let mut wanted = self.schema_version;
        if let (Some(path), Some(kind)) = (&self.schema_file, &self.schema_type) {
            wanted = Some(register(service_addr, &subject, path, kind).await?);
        }
        let doing = format!("schema of subject `{subject}` cannot be used");
        let client = client(service_addr)?;
        let found = client.schema_of_subject(&subject, wanted).await;
        let found = found.map_err(|error| wire::failure(&doing, &error))?;
        if let Some(min) = self.schema_min_version.filter(|min| *min > found.version()) {
            return Err(Failure::refused(format!(
                "{doing}: version {min} or later is wanted, the latest is {}",
                found.version()
            )));
        }
        Ok(Some(Codec(found)))
    }
}

fn client(service_addr: &str) -> Result<Client, Failure> {
    Client::builder(service_addr)
        .build()
        .map_err(|error| wire::failure("no schema can be fetched", &error))
}

async fn register(
    service_addr: &str,
    subject: &str,
    path: &PathBuf,
    kind: &str,
) -> Result<u32, Failure> {
    let schema_type: SchemaType = kind.parse()?;
    let definition = std::fs::read(path).map_err(|error| {
        Failure::usage(format!("file `{}` cannot be read: {error}", path.display()))
    })?;
    let mut registry = SchemaRegistryClient::new(channel::connect(service_addr).await?);
    let request = proto::RegisterSchemaRequest {
        subject: subject.to_owned(),
        schema_type: schema_type.to_string(),
        schema_definition: definition.into(),
        created_by: "danube-produce".to_owned(),
        ..Default::default()
    };
    let answer = call(registry.register_schema(request)).await.map_err(|status| {
        channel::failure(&format!("file `{}` cannot be registered", path.display()), &status)
    })?;
    if answer.is_new_version {
        eprintln!("registered version {} of schema subject `{subject}`", answer.version);
    }
    Ok(answer.version)
}

/// A registered version, ready to encode and decode.
#[derive(Debug, Clone)]
pub struct Codec(Arc<Schema>);

impl Codec {
    /// The version.
    pub fn schema(&self) -> &Schema {
        &self.0
    }

    fn kind(&self) -> Option<SchemaType> {
        self.0.kind().parse().ok()
    }

    /// Whether payloads look different on the wire than as JSON.
    pub fn encodes(&self) -> bool {
        matches!(self.kind(), Some(SchemaType::Avro | SchemaType::Protobuf))
    }

    /// A JSON text as a payload.
    ///
    /// # Errors
    /// It is not JSON, or does not fit, and where.
    pub fn encode(&self, text: &str) -> Result<Bytes, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        self.0.encode(&value).map_err(|error| match error {
            danube_sdk::Error::Payload { of, why, .. } => format!("does not fit {of}: {why}"),
            other => other.to_string(),
        })
    }

    fn decode(&self, payload: &[u8]) -> Option<Decoded> {
        Some(Decoded { kind: self.kind()?, value: self.0.decode(payload).ok()? })
    }
}

/// A payload as its schema reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The language of the schema.
    pub kind: SchemaType,
    /// What it says.
    pub value: Value,
}

/// Decodes what a consumer receives. Each version is fetched once.
#[derive(Debug)]
pub struct Decoder {
    client: Client,
    /// `None` where a version is not to be had, or payloads need no decoding.
    known: HashMap<(u64, Option<u32>), Option<Codec>>,
}

impl Decoder {
    /// By the registry of the broker at `service_addr`.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(service_addr: &str) -> Result<Decoder, Failure> {
        Ok(Decoder { client: client(service_addr)?, known: HashMap::new() })
    }

    /// The payload as its schema reads it; `None` when it has none that encodes, or does not fit.
    pub async fn decode(
        &mut self,
        schema: Option<(u64, Option<u32>)>,
        payload: &[u8],
    ) -> Option<Decoded> {
        let key = schema?;
        if !self.known.contains_key(&key) {
            let codec = self.fetch(key).await;
            if self.known.len() >= KEPT_MAX {
                self.known.clear();
            }
            self.known.insert(key, codec);
        }
        self.known.get(&key)?.as_ref()?.decode(payload)
    }

    async fn fetch(&mut self, (schema_id, version): (u64, Option<u32>)) -> Option<Codec> {
        match self.client.schema(schema_id, version).await {
            Ok(schema) => Some(Codec(schema)).filter(Codec::encodes),
            Err(error) => {
                eprintln!(
                    "warning: messages of schema id {schema_id} are shown as they are: {error}"
                );
                None
            }
        }
    }
}
