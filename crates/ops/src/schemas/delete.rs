//! `schemas delete`.

use super::definition::SubjectArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::control::DeleteSubjectRequest;
use danube_wire::proto::danube_schema::DeleteSchemaVersionRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delete a version of a subject, or all of them; messages that carry it count as unknown then
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Delete {
    #[command(flatten)]
    #[serde(flatten)]
    subject: SubjectArg,
    #[command(flatten)]
    #[serde(flatten)]
    what: What,
    /// Say that you mean it
    #[arg(long)]
    #[serde(default)]
    confirm: bool,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(required = true, multiple = false)]
struct What {
    /// This version
    #[arg(long, value_name = "N")]
    #[serde(default)]
    version: Option<u32>,
    /// All versions; the history of the subject stays
    #[arg(long)]
    #[serde(default)]
    all: bool,
}

/// What is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    subject: String,
    versions: Vec<u32>,
}

impl Operation for Delete {
    type Output = Deleted;
    const SPEC: Spec = Spec {
        path: ("schemas", "delete"),
        permission: Permission::ManageSchema,
        effect: Effect::Destructive,
        example: "order-events --version 1 --confirm",
    };

    async fn run(self, session: &Session) -> Result<Deleted, OpError> {
        let subject = self.subject.name()?;
        if !self.confirm {
            return Err(OpError::usage(format!(
                "deleting from subject `{subject}` cannot be taken back"
            ))
            .help("give --confirm to do it"));
        }
        let doing = format!("subject `{subject}` keeps what it has");
        let failed = |status| channel::error(&doing, &status);
        let versions = match (self.what.version, self.what.all) {
            (Some(version), false) => {
                let subject = subject.to_string();
                let request = session.request(DeleteSchemaVersionRequest { subject, version });
                let mut schemas = session.schemas().await?;
                call(schemas.delete_schema_version(request)).await.map_err(failed)?;
                vec![version]
            }
            (None, true) => {
                let request =
                    session.request(DeleteSubjectRequest { subject: subject.to_string() });
                let mut control = session.control().await?;
                call(control.delete_subject(request)).await.map_err(failed)?.versions
            }
            _ => return Err(OpError::usage("give either --version or --all")),
        };
        Ok(Deleted { subject: subject.to_string(), versions })
    }
}

impl Output for Deleted {
    fn text(&self) -> String {
        let versions: Vec<String> = self.versions.iter().map(u32::to_string).collect();
        format!("Deleted: {} version {}", self.subject, versions.join(", "))
    }
}
