//! `schemas register`.

use super::definition::{DefinitionArg, SubjectArg};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_schema::RegisterSchemaRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Add a version to a subject; a definition that means the same as a version is that version
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Register {
    #[command(flatten)]
    #[serde(flatten)]
    subject: SubjectArg,
    #[command(flatten)]
    #[serde(flatten)]
    definition: DefinitionArg,
    /// What it is, for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    #[serde(default)]
    description: String,
    /// Words to find it by; may be given several times
    #[arg(long, value_name = "TAG", num_args = 1..)]
    #[serde(default)]
    tags: Vec<String>,
}

/// The version.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Registered {
    subject: String,
    schema_id: u64,
    version: u32,
    /// False when it was registered before.
    is_new_version: bool,
    fingerprint: String,
}

impl Operation for Register {
    type Output = Registered;
    const SPEC: Spec = Spec {
        path: ("schemas", "register"),
        permission: Permission::ManageSchema,
        effect: Effect::Write,
        example: "order-events --schema-type avro --file order.avsc --tags shop",
    };

    async fn run(self, session: &Session) -> Result<Registered, OpError> {
        let subject = self.subject.name()?;
        let (schema_type, definition) = self.definition.read()?;
        let request = session.request(RegisterSchemaRequest {
            subject: subject.to_string(),
            schema_type: schema_type.to_string(),
            schema_definition: definition.into(),
            description: self.description,
            created_by: "danube-ctl".to_owned(),
            tags: self.tags,
        });
        let mut schemas = session.schemas().await?;
        let answer = call(schemas.register_schema(request)).await.map_err(|status| {
            channel::error(&format!("subject `{subject}` gets no new version"), &status)
        })?;
        Ok(Registered {
            subject: subject.to_string(),
            schema_id: answer.schema_id,
            version: answer.version,
            is_new_version: answer.is_new_version,
            fingerprint: answer.fingerprint,
        })
    }
}

impl Output for Registered {
    fn text(&self) -> String {
        format!(
            "Subject: {}\nSchema ID: {}\nVersion: {}\nFingerprint: {}",
            self.subject, self.schema_id, self.version, self.fingerprint
        )
    }

    fn notes(&self) -> Vec<String> {
        match self.is_new_version {
            true => Vec::new(),
            false => vec![format!("it means the same as version {}, so it is that", self.version)],
        }
    }
}
