//! `topics subscriptions`.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_admin::TopicRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the names of a topic's subscriptions
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Subscriptions {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
}

/// Names, in order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Names(Vec<String>);

impl Operation for Subscriptions {
    type Output = Names;
    const SPEC: Spec = Spec {
        path: ("topics", "subscriptions"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/agent-jobs",
    };

    async fn run(self, session: &Session) -> Result<Names, OpError> {
        let topic = self.topic.name()?;
        let mut topics = session.topics().await?;
        let request = TopicRequest { name: topic.to_string() };
        let answer = call(topics.list_subscriptions(request)).await.map_err(|status| {
            channel::error(&format!("subscriptions of topic `{topic}` cannot be listed"), &status)
        })?;
        Ok(Names(answer.subscriptions))
    }
}

impl Output for Names {
    fn text(&self) -> String {
        self.0.join("\n")
    }
}
