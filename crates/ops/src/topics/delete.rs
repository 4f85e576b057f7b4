//! `topics delete`.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::TopicName;
use danube_wire::proto::danube_admin::TopicRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delete a topic with all its messages and subscriptions
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Delete {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
}

/// What was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    #[schemars(with = "String")]
    deleted: TopicName,
}

impl Operation for Delete {
    type Output = Deleted;
    const SPEC: Spec = Spec {
        path: ("topics", "delete"),
        permission: Permission::ManageTopic,
        effect: Effect::Destructive,
        example: "/default/agent-jobs",
    };

    async fn run(self, session: &Session) -> Result<Deleted, OpError> {
        let topic = self.topic.name()?;
        let mut topics = session.topics().await?;
        let request = TopicRequest { name: topic.to_string() };
        call(topics.delete_topic(session.request(request))).await.map_err(|status| {
            channel::error(&format!("topic `{topic}` cannot be deleted"), &status)
        })?;
        Ok(Deleted { deleted: topic })
    }
}

impl Output for Deleted {
    fn text(&self) -> String {
        format!("deleted topic {}", self.deleted)
    }
}
