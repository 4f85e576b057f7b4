//! `schemas list-subjects`.

use super::or_dash;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_wire::proto::danube_schema::ListSubjectsRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print all subjects
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct ListSubjects {}

/// Subjects by name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Listed(Vec<Subject>);

#[derive(Debug, Serialize, JsonSchema)]
struct Subject {
    subject: String,
    schema_type: String,
    latest_version: u32,
    compatibility_mode: String,
    schema_id: u64,
    tags: Vec<String>,
}

impl Operation for ListSubjects {
    type Output = Listed;
    const SPEC: Spec = Spec {
        path: ("schemas", "list-subjects"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "",
    };

    async fn run(self, session: &Session) -> Result<Listed, OpError> {
        let mut schemas = session.schemas().await?;
        let answer = call(schemas.list_subjects(ListSubjectsRequest {})).await;
        let answer =
            answer.map_err(|status| channel::error("subjects cannot be listed", &status))?;
        let subjects = answer.subjects.into_iter().map(|wire| Subject {
            subject: wire.subject,
            schema_type: wire.schema_type,
            latest_version: wire.latest_version,
            // In upper case on this one message of the wire.
            compatibility_mode: wire.compatibility_mode.to_ascii_lowercase(),
            schema_id: wire.schema_id,
            tags: wire.tags,
        });
        Ok(Listed(subjects.collect()))
    }
}

impl Output for Listed {
    fn text(&self) -> String {
        let mut table =
            Table::new(&["SUBJECT", "TYPE", "LATEST", "COMPATIBILITY", "SCHEMA ID", "TAGS"]);
        for subject in &self.0 {
            table.row([
                subject.subject.clone(),
                subject.schema_type.clone(),
                subject.latest_version.to_string(),
                subject.compatibility_mode.clone(),
                subject.schema_id.to_string(),
                or_dash(&subject.tags.join(",")),
            ]);
        }
        table.render()
    }
}
