//! `topics create-subscription`: before its first consumer.

use crate::args::SubscriptionArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::Position;
use danube_wire::proto::control::CreateSubscriptionRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Create a subscription before its first consumer comes
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct CreateSubscription {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
    /// Who receives a message: exclusive, shared, failover or key_shared [default: shared]
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(default, rename = "type")]
    r#type: Option<String>,
    /// The first message it is to see: earliest, latest, offset:N or time:RFC3339 [default: latest]
    #[arg(long, value_name = "POSITION")]
    #[serde(default)]
    start: Option<Position>,
}

/// What was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Created {
    subscription: String,
    /// The topic, or its partitions.
    topics: Vec<String>,
}

impl Operation for CreateSubscription {
    type Output = Created;
    const SPEC: Spec = Spec {
        path: ("topics", "create-subscription"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs -s worker-pool --type shared --start earliest",
    };

    async fn run(self, session: &Session) -> Result<Created, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let request = CreateSubscriptionRequest {
            topic: topic.to_string(),
            subscription: subscription.to_string(),
            r#type: self.r#type,
            position: self.start.map(String::from),
        };
        let mut control = session.control().await?;
        let answer = call(control.create_subscription(session.request(request))).await;
        let answer = answer.map_err(|status| {
            let doing = format!("subscription `{subscription}` of `{topic}` cannot be created");
            channel::error(&doing, &status)
        })?;
        Ok(Created { subscription: subscription.to_string(), topics: answer.topics })
    }
}

impl Output for Created {
    fn text(&self) -> String {
        let lines = self.topics.iter();
        let lines = lines
            .map(|topic| format!("created subscription {} of topic {topic}", self.subscription));
        lines.collect::<Vec<_>>().join("\n")
    }
}
