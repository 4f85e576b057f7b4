//! Schemas on the command line: which one a producer follows, and payloads from JSON and back.
//!
//! Definitions and what they refer to come from the registry. What compatibility means is left to
//! the broker. Law: a payload that its schema does not decode is shown as it is, never dropped.

use crate::channel::{self, call};
use crate::compat::Cluster;
use crate::failure::Failure;
use bytes::Bytes;
use danube_core::SubjectName;
use danube_schema::{PayloadLimits, Schema, SchemaError, SchemaType};
use danube_wire::proto::danube_schema as proto;
use proto::schema_registry_client::SchemaRegistryClient;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

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

/// A registered version, ready to encode and decode.
#[derive(Debug)]
pub struct Codec {
    /// Its subject.
    pub subject: String,
    /// What messages carry.
    pub schema_id: u64,
    /// What messages carry.
    pub version: u32,
    schema: Schema,
}

impl SchemaArguments {
    /// Whether any schema was asked for.
    pub fn is_given(&self) -> bool {
        self.schema_subject.is_some()
    }

    /// The version that was asked for; `None` when none was.
    ///
    /// # Errors
    /// It is not registered, cannot be, or is too old.
    pub async fn resolve(&self, cluster: &Cluster) -> Result<Option<Codec>, Failure> {
        let Some(subject) = &self.schema_subject else { return Ok(None) };
        let subject = SubjectName::parse(subject)?.to_string();
        let mut registry = SchemaRegistryClient::new(cluster.service());
        let mut wanted = self.schema_version;
        if let (Some(path), Some(kind)) = (&self.schema_file, &self.schema_type) {
            wanted = Some(register(&mut registry, &subject, path, kind).await?);
        }
        let doing = format!("schema of subject `{subject}` cannot be used");
        let request = proto::GetLatestSchemaRequest { subject: subject.clone() };
        let latest = call(registry.get_latest_schema(request)).await;
        let latest = latest.map_err(|status| channel::failure(&doing, &status))?;
        if let Some(min) = self.schema_min_version.filter(|min| *min > latest.version) {
            return Err(Failure::refused(format!(
                "{doing}: version {min} or later is wanted, the latest is {}",
                latest.version
            )));
        }
        let found = match wanted.filter(|wanted| *wanted != latest.version) {
            None => latest,
            Some(version) => {
                let schema_id = latest.schema_id;
                let request = proto::GetSchemaRequest { schema_id, version: Some(version) };
                let found = call(registry.get_schema(request)).await;
                found.map_err(|status| channel::failure(&doing, &status))?
            }
        };
        let codec = Codec::parse(&mut registry, found).await;
        codec.map(Some).map_err(|why| Failure::refused(format!("{doing}: {why}")))
    }
}

type Registry = SchemaRegistryClient<tonic::transport::Channel>;

async fn register(
    registry: &mut Registry,
    subject: &str,
    path: &PathBuf,
    kind: &str,
) -> Result<u32, Failure> {
    let schema_type: SchemaType = kind.parse()?;
    let definition = std::fs::read(path).map_err(|error| {
        Failure::usage(format!("file `{}` cannot be read: {error}", path.display()))
    })?;
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

impl Codec {
    /// Parses a version, and fetches from the registry what it refers to.
    async fn parse(
        registry: &mut Registry,
        found: proto::GetSchemaResponse,
    ) -> Result<Codec, String> {
        let kind: SchemaType = found.schema_type.parse().map_err(|fault| format!("{fault}"))?;
        let mut references: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        loop {
            match Schema::parse(kind, &found.schema_definition, &references) {
                Ok(schema) => {
                    let proto::GetSchemaResponse { subject, schema_id, version, .. } = found;
                    return Ok(Codec { subject, schema_id, version, schema });
                }
                Err(SchemaError::UnknownReference { name, .. })
                    if !references.contains_key(&name)
                        && references.len() < danube_schema::REFERENCES_MAX =>
                {
                    let request = proto::GetLatestSchemaRequest { subject: name.clone() };
                    let referred = call(registry.get_latest_schema(request)).await;
                    let referred =
                        referred.map_err(|status| format!("`{name}`: {}", status.message()))?;
                    references.insert(name, referred.schema_definition.to_vec());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Whether payloads look different on the wire than as JSON.
    pub fn encodes(&self) -> bool {
        matches!(self.schema.kind(), SchemaType::Avro | SchemaType::Protobuf)
    }

    /// A JSON text as a payload.
    ///
    /// # Errors
    /// It is not JSON, or does not fit, and where.
    pub fn encode(&self, text: &str) -> Result<Bytes, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        let payload = self.schema.encode(&value, &PayloadLimits::default());
        payload.map(Bytes::from).map_err(|fault| {
            format!("does not fit version {} of schema `{}`: {fault}", self.version, self.subject)
        })
    }

    fn decode(&self, payload: &[u8]) -> Option<Decoded> {
        let value = self.schema.decode(payload, &PayloadLimits::default()).ok()?;
        Some(Decoded { kind: self.schema.kind(), value })
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
    registry: Registry,
    /// `None` where a version is not to be had, or payloads need no decoding.
    known: HashMap<(u64, Option<u32>), Option<Codec>>,
}

impl Decoder {
    /// By the registry of `cluster`.
    pub fn new(cluster: &Cluster) -> Decoder {
        let registry = SchemaRegistryClient::new(cluster.service());
        Decoder { registry, known: HashMap::new() }
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
        let request = proto::GetSchemaRequest { schema_id, version };
        let told = |why: String| {
            let version =
                version.map_or_else(String::new, |version| format!(", version {version}"));
            eprintln!(
                "warning: messages of schema id {schema_id}{version} are shown as they are: {why}"
            );
        };
        let found = match call(self.registry.get_schema(request)).await {
            Ok(found) => found,
            Err(status) => {
                told(status.message().to_owned());
                return None;
            }
        };
        match Codec::parse(&mut self.registry, found).await {
            Ok(codec) => Some(codec).filter(Codec::encodes),
            Err(why) => {
                told(why);
                None
            }
        }
    }
}
