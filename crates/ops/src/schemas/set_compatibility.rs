//! `schemas set-compatibility`.

use super::definition::SubjectArg;
use super::get_compatibility::with_level;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::Compatibility;
use danube_core::schema::{JsonLevel, ProtobufLevel};
use danube_wire::proto::control::SetCompatibilityRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Set what a subject promises about its versions; what is not given stays
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct SetCompatibility {
    #[command(flatten)]
    #[serde(flatten)]
    subject: SubjectArg,
    #[command(flatten)]
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(required = true, multiple = true)]
struct Change {
    /// none, backward, forward or full
    #[arg(long, value_name = "MODE")]
    #[serde(default)]
    mode: Option<String>,
    /// How open objects of JSON Schema are compared: lenient or strict
    #[arg(long, value_name = "LEVEL")]
    #[serde(default)]
    json_level: Option<String>,
    /// What of a Protobuf schema others depend on: wire or json
    #[arg(long, value_name = "LEVEL")]
    #[serde(default)]
    protobuf_level: Option<String>,
}

/// What the subject promises from now on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Promised {
    subject: String,
    compatibility_mode: String,
    json_level: String,
    protobuf_level: String,
}

impl Operation for SetCompatibility {
    type Output = Promised;
    const SPEC: Spec = Spec {
        path: ("schemas", "set-compatibility"),
        permission: Permission::ManageSchema,
        effect: Effect::Write,
        example: "order-events --mode full",
    };

    async fn run(self, session: &Session) -> Result<Promised, OpError> {
        let subject = self.subject.name()?;
        let mode: Option<Compatibility> =
            self.change.mode.as_deref().map(str::parse).transpose()?;
        let json: Option<JsonLevel> =
            self.change.json_level.as_deref().map(str::parse).transpose()?;
        let protobuf: Option<ProtobufLevel> =
            self.change.protobuf_level.as_deref().map(str::parse).transpose()?;
        let request = session.request(SetCompatibilityRequest {
            subject: subject.to_string(),
            compatibility_mode: mode.map(|mode| mode.to_string()),
            json_level: json.map(|level| level.to_string()),
            protobuf_level: protobuf.map(|level| level.to_string()),
        });
        let mut control = session.control().await?;
        let wire = call(control.set_compatibility(request)).await.map_err(|status| {
            channel::error(&format!("compatibility of `{subject}` cannot be set"), &status)
        })?;
        Ok(Promised {
            subject: subject.to_string(),
            compatibility_mode: wire.compatibility_mode,
            json_level: wire.json_level,
            protobuf_level: wire.protobuf_level,
        })
    }
}

impl Output for Promised {
    fn text(&self) -> String {
        let Promised { subject, compatibility_mode, json_level, protobuf_level } = self;
        let mode = with_level(compatibility_mode, None, json_level, protobuf_level);
        format!("Subject: {subject}\nCompatibility: {mode}")
    }
}
