//! `schemas versions`.

use super::definition::SubjectArg;
use super::{at_seconds, or_dash};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_wire::proto::danube_schema::ListVersionsRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the versions of a subject
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Versions {
    #[command(flatten)]
    #[serde(flatten)]
    subject: SubjectArg,
}

/// Versions by number.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Listed(Vec<Version>);

#[derive(Debug, Serialize, JsonSchema)]
struct Version {
    version: u32,
    schema_id: u64,
    /// In seconds since 1970.
    created_at: u64,
    created_by: String,
    description: String,
    fingerprint: String,
}

impl Operation for Versions {
    type Output = Listed;
    const SPEC: Spec = Spec {
        path: ("schemas", "versions"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "order-events",
    };

    async fn run(self, session: &Session) -> Result<Listed, OpError> {
        let subject = self.subject.name()?;
        let mut schemas = session.schemas().await?;
        let request = ListVersionsRequest { subject: subject.to_string() };
        let answer = call(schemas.list_versions(request)).await.map_err(|status| {
            channel::error(&format!("versions of `{subject}` cannot be listed"), &status)
        })?;
        let versions = answer.versions.into_iter().map(|wire| Version {
            version: wire.version,
            schema_id: wire.schema_id,
            created_at: wire.created_at,
            created_by: wire.created_by,
            description: wire.description,
            fingerprint: wire.fingerprint,
        });
        Ok(Listed(versions.collect()))
    }
}

impl Output for Listed {
    fn text(&self) -> String {
        let mut table = Table::new(&["VERSION", "CREATED", "BY", "FINGERPRINT", "DESCRIPTION"]);
        for version in &self.0 {
            table.row([
                version.version.to_string(),
                at_seconds(version.created_at),
                or_dash(&version.created_by),
                version.fingerprint.clone(),
                or_dash(&version.description),
            ]);
        }
        table.render()
    }
}
