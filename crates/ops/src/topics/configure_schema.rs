//! `topics configure-schema`: which subject a topic has, and how it validates.

use super::get_schema_config::{Config, Policy};
use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use danube_core::SubjectName;
use danube_wire::proto::danube_schema::ConfigureTopicSchemaRequest;
use serde::{Deserialize, Serialize};

/// Set the schema subject of a topic and what becomes of messages that do not fit
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct ConfigureSchema {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    /// The subject
    #[arg(long, value_name = "SUBJECT")]
    subject: String,
    /// What becomes of a message that does not fit
    #[arg(long, value_enum, value_name = "POLICY", default_value = "none")]
    #[serde(default)]
    validation_policy: Policy,
    /// Decode and check payloads, not only the schema ids
    #[arg(long)]
    #[serde(default)]
    enable_payload_validation: bool,
}

impl Operation for ConfigureSchema {
    type Output = Config;
    const SPEC: Spec = Spec {
        path: ("topics", "configure-schema"),
        permission: Permission::ManageSchema,
        effect: Effect::Write,
        example: "/default/orders --subject orders-value --validation-policy enforce",
    };

    async fn run(self, session: &Session) -> Result<Config, OpError> {
        let topic = self.topic.name()?;
        let subject = SubjectName::parse(&self.subject)?;
        let request = session.request(ConfigureTopicSchemaRequest {
            topic_name: topic.to_string(),
            schema_subject: subject.to_string(),
            validation_policy: self.validation_policy.word().to_owned(),
            enable_payload_validation: self.enable_payload_validation,
        });
        let mut schemas = session.schemas().await?;
        call(schemas.configure_topic_schema(request)).await.map_err(|status| {
            channel::error(&format!("schema of topic `{topic}` cannot be set"), &status)
        })?;
        super::get_schema_config::current(&topic, session).await
    }
}
