//! `schemas get-compatibility`.

use super::definition::SubjectArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::control::DescribeSubjectRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print what a subject promises about its versions, and which topics depend on it
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct GetCompatibility {
    #[command(flatten)]
    #[serde(flatten)]
    subject: SubjectArg,
}

/// The promise.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Promise {
    subject: String,
    schema_id: u64,
    schema_type: String,
    compatibility_mode: String,
    json_level: String,
    protobuf_level: String,
    versions: Vec<u32>,
    topics: Vec<String>,
}

impl Operation for GetCompatibility {
    type Output = Promise;
    const SPEC: Spec = Spec {
        path: ("schemas", "get-compatibility"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "order-events",
    };

    async fn run(self, session: &Session) -> Result<Promise, OpError> {
        let subject = self.subject.name()?;
        let mut control = session.control().await?;
        let request = DescribeSubjectRequest { subject: subject.to_string() };
        let wire = call(control.describe_subject(request)).await.map_err(|status| {
            channel::error(&format!("subject `{subject}` cannot be described"), &status)
        })?;
        Ok(Promise {
            subject: wire.subject,
            schema_id: wire.schema_id,
            schema_type: wire.schema_type,
            compatibility_mode: wire.compatibility_mode,
            json_level: wire.json_level,
            protobuf_level: wire.protobuf_level,
            versions: wire.versions,
            topics: wire.topics,
        })
    }
}

/// The mode, with the level where the language has one.
pub(super) fn with_level(
    mode: &str,
    schema_type: Option<&str>,
    json: &str,
    protobuf: &str,
) -> String {
    match schema_type {
        Some("json_schema") => format!("{mode} ({json})"),
        Some("protobuf") => format!("{mode} ({protobuf})"),
        Some(_) => mode.to_owned(),
        None => format!("{mode} (JSON Schema: {json}, Protobuf: {protobuf})"),
    }
}

impl Output for Promise {
    fn text(&self) -> String {
        let versions: Vec<String> = self.versions.iter().map(u32::to_string).collect();
        let mode = with_level(
            &self.compatibility_mode,
            Some(&self.schema_type),
            &self.json_level,
            &self.protobuf_level,
        );
        format!(
            "Subject: {}\nSchema ID: {}\nType: {}\nCompatibility: {mode}\nVersions: {}\nTopics: {}",
            self.subject,
            self.schema_id,
            self.schema_type,
            versions.join(", "),
            if self.topics.is_empty() { "None".to_owned() } else { self.topics.join(", ") }
        )
    }
}
