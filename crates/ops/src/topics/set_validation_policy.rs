//! `topics set-validation-policy`: what becomes of messages that do not fit their topic's schema.

use super::get_schema_config::{Config, Policy};
use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_schema::UpdateTopicValidationPolicyRequest;
use serde::{Deserialize, Serialize};

/// Set what becomes of messages that do not fit the topic's schema; the subject stays
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct SetValidationPolicy {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    /// The policy
    #[arg(long, value_enum, value_name = "POLICY")]
    policy: Policy,
    /// Decode and check payloads, not only the schema ids; off when not given
    #[arg(long)]
    #[serde(default)]
    enable_payload_validation: bool,
}

impl Operation for SetValidationPolicy {
    type Output = Config;
    const SPEC: Spec = Spec {
        path: ("topics", "set-validation-policy"),
        permission: Permission::ManageSchema,
        effect: Effect::Write,
        example: "/default/orders --policy warn --enable-payload-validation",
    };

    async fn run(self, session: &Session) -> Result<Config, OpError> {
        let topic = self.topic.name()?;
        let request = session.request(UpdateTopicValidationPolicyRequest {
            topic_name: topic.to_string(),
            validation_policy: self.policy.word().to_owned(),
            enable_payload_validation: self.enable_payload_validation,
        });
        let mut schemas = session.schemas().await?;
        call(schemas.update_topic_validation_policy(request)).await.map_err(|status| {
            channel::error(&format!("validation policy of topic `{topic}` cannot be set"), &status)
        })?;
        super::get_schema_config::current(&topic, session).await
    }
}
