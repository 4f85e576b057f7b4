//! `topics unsubscribe`.

use crate::args::SubscriptionArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::{SubscriptionName, TopicName};
use danube_wire::proto::danube_admin::SubscriptionRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delete a subscription; its consumers are sent away
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Unsubscribe {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
}

/// What was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unsubscribed {
    #[schemars(with = "String")]
    topic: TopicName,
    #[schemars(with = "String")]
    subscription: SubscriptionName,
}

impl Operation for Unsubscribe {
    type Output = Unsubscribed;
    const SPEC: Spec = Spec {
        path: ("topics", "unsubscribe"),
        permission: Permission::ManageTopic,
        effect: Effect::Destructive,
        example: "/default/agent-jobs -s worker-pool",
    };

    async fn run(self, session: &Session) -> Result<Unsubscribed, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let mut topics = session.topics().await?;
        let request = SubscriptionRequest {
            topic: topic.to_string(),
            subscription: subscription.to_string(),
        };
        call(topics.unsubscribe(session.request(request))).await.map_err(|status| {
            let doing =
                format!("subscription `{subscription}` of topic `{topic}` cannot be deleted");
            channel::error(&doing, &status)
        })?;
        Ok(Unsubscribed { topic, subscription })
    }
}

impl Output for Unsubscribed {
    fn text(&self) -> String {
        format!("deleted subscription {} of topic {}", self.subscription, self.topic)
    }
}
