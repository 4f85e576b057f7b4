//! `schemas get`.

use super::at_seconds;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::SubjectName;
use danube_wire::proto::danube_schema::{
    GetLatestSchemaRequest, GetSchemaRequest, GetSchemaResponse,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print a version of a schema: the latest, or the one with that number
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Get {
    #[command(flatten)]
    #[serde(flatten)]
    which: Which,
    /// The version [default: the latest]
    #[arg(long, value_name = "N")]
    #[serde(default)]
    version: Option<u32>,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(required = true, multiple = false)]
struct Which {
    /// The subject
    #[arg(long, value_name = "SUBJECT")]
    #[serde(default)]
    subject: Option<String>,
    /// The id that messages carry
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    id: Option<u64>,
}

/// One version of a subject.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Version {
    subject: String,
    schema_id: u64,
    version: u32,
    schema_type: String,
    compatibility_mode: String,
    fingerprint: String,
    created_by: String,
    /// In seconds since 1970.
    created_at: u64,
    description: String,
    tags: Vec<String>,
    /// Exactly as it was registered.
    definition: String,
}

impl Operation for Get {
    type Output = Version;
    const SPEC: Spec = Spec {
        path: ("schemas", "get"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "--subject order-events --version 2",
    };

    async fn run(self, session: &Session) -> Result<Version, OpError> {
        let mut schemas = session.schemas().await?;
        let doing = match (&self.which.subject, self.which.id) {
            (Some(subject), None) => {
                format!("schema of subject `{}`", SubjectName::parse(subject)?)
            }
            (None, Some(id)) => format!("schema with id `{id}`"),
            _ => return Err(OpError::usage("give either --subject or --id")),
        };
        let failed = |status| channel::error(&format!("{doing} cannot be read"), &status);
        let latest = match (self.which.subject, self.which.id) {
            (Some(subject), _) => {
                let request = GetLatestSchemaRequest { subject };
                call(schemas.get_latest_schema(request)).await.map_err(failed)?
            }
            (None, id) => {
                let schema_id = id.unwrap_or_default();
                let request = GetSchemaRequest { schema_id, version: self.version };
                call(schemas.get_schema(request)).await.map_err(failed)?
            }
        };
        if self.version.is_none_or(|version| version == latest.version) {
            return Ok(latest.into());
        }
        let request = GetSchemaRequest { schema_id: latest.schema_id, version: self.version };
        Ok(call(schemas.get_schema(request)).await.map_err(failed)?.into())
    }
}

impl From<GetSchemaResponse> for Version {
    fn from(wire: GetSchemaResponse) -> Version {
        Version {
            subject: wire.subject,
            schema_id: wire.schema_id,
            version: wire.version,
            schema_type: wire.schema_type,
            compatibility_mode: wire.compatibility_mode,
            fingerprint: wire.fingerprint,
            created_by: wire.created_by,
            created_at: wire.created_at,
            description: wire.description,
            tags: wire.tags,
            definition: String::from_utf8_lossy(&wire.schema_definition).into_owned(),
        }
    }
}

impl Output for Version {
    fn text(&self) -> String {
        let mut lines = vec![
            format!("Subject: {}", self.subject),
            format!("Schema ID: {}", self.schema_id),
            format!("Version: {}", self.version),
            format!("Type: {}", self.schema_type),
            format!("Compatibility: {}", self.compatibility_mode),
            format!("Fingerprint: {}", self.fingerprint),
            format!("Created: {} by {}", at_seconds(self.created_at), self.created_by),
        ];
        if !self.description.is_empty() {
            lines.push(format!("Description: {}", self.description));
        }
        if !self.tags.is_empty() {
            lines.push(format!("Tags: {}", self.tags.join(", ")));
        }
        if !self.definition.is_empty() {
            lines.push(format!("\n{}", self.definition.trim_end()));
        }
        lines.join("\n")
    }
}
