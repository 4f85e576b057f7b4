//! `topics get-schema-config`, and what the verbs around it share.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::TopicName;
use danube_wire::proto::danube_schema::GetTopicSchemaConfigRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the schema subject of a topic and how it validates
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct GetSchemaConfig {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
}

/// What becomes of a message that does not fit.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Policy {
    /// It is taken, and nothing is looked at
    #[default]
    None,
    /// It is taken, counted, and told in the broker's log
    Warn,
    /// It is refused
    Enforce,
}

impl Policy {
    /// As the wire has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Warn => "warn",
            Policy::Enforce => "enforce",
        }
    }
}

/// Subject and validation of a topic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Config {
    topic: String,
    schema_subject: String,
    /// 0 when nobody has registered the subject.
    schema_id: u64,
    validation_policy: String,
    enable_payload_validation: bool,
}

impl Operation for GetSchemaConfig {
    type Output = Config;
    const SPEC: Spec = Spec {
        path: ("topics", "get-schema-config"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/orders",
    };

    async fn run(self, session: &Session) -> Result<Config, OpError> {
        current(&self.topic.name()?, session).await
    }
}

/// What holds now.
pub(super) async fn current(topic: &TopicName, session: &Session) -> Result<Config, OpError> {
    let mut schemas = session.schemas().await?;
    let request = GetTopicSchemaConfigRequest { topic_name: topic.to_string() };
    let found = call(schemas.get_topic_schema_config(request)).await.map_err(|status| {
        channel::error(&format!("schema of topic `{topic}` cannot be read"), &status)
    })?;
    Ok(Config {
        topic: topic.to_string(),
        schema_subject: found.schema_subject,
        schema_id: found.schema_id,
        validation_policy: found.validation_policy,
        enable_payload_validation: found.enable_payload_validation,
    })
}

impl Output for Config {
    fn text(&self) -> String {
        format!(
            "Topic: {}\nSchema Subject: {}\nSchema ID: {}\nValidation Policy: {}\n\
             Payload Validation: {}",
            self.topic,
            self.schema_subject,
            self.schema_id,
            self.validation_policy,
            if self.enable_payload_validation { "on" } else { "off" }
        )
    }
}
