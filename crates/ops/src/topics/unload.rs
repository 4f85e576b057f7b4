//! `topics unload`.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_admin::TopicRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Let a broker put a topic out of its memory; its clients come back by themselves
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Unload {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
}

/// What was unloaded.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unloaded {
    unloaded: String,
}

impl Operation for Unload {
    type Output = Unloaded;
    const SPEC: Spec = Spec {
        path: ("topics", "unload"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs",
    };

    async fn run(self, session: &Session) -> Result<Unloaded, OpError> {
        let topic = self.topic.name()?;
        let mut topics = session.topics().await?;
        let request = session.request(TopicRequest { name: topic.to_string() });
        call(topics.unload_topic(request)).await.map_err(|status| {
            channel::error(&format!("topic `{topic}` cannot be unloaded"), &status)
        })?;
        Ok(Unloaded { unloaded: topic.to_string() })
    }
}

impl Output for Unloaded {
    fn text(&self) -> String {
        format!("unloaded topic {}", self.unloaded)
    }
}
