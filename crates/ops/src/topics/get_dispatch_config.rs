//! `topics get-dispatch-config`.

use crate::args::SubscriptionArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::{SubscriptionName, TopicName};
use danube_wire::proto::danube_admin::GetSubscriptionDispatchConfigRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print how many messages of a subscription may be delivered and not acknowledged
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct GetDispatchConfig {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
}

/// What holds now.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DispatchConfig {
    #[schemars(with = "String")]
    pub(super) topic: TopicName,
    #[schemars(with = "String")]
    pub(super) subscription: SubscriptionName,
    pub(super) max_unacked_messages: u32,
}

impl Operation for GetDispatchConfig {
    type Output = DispatchConfig;
    const SPEC: Spec = Spec {
        path: ("topics", "get-dispatch-config"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/agent-jobs -s worker-pool",
    };

    async fn run(self, session: &Session) -> Result<DispatchConfig, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let mut topics = session.topics().await?;
        let request = GetSubscriptionDispatchConfigRequest {
            topic: topic.to_string(),
            subscription: subscription.to_string(),
        };
        let doing = format!("dispatch config of `{subscription}` on `{topic}` cannot be read");
        let answer = call(topics.get_subscription_dispatch_config(request)).await;
        let answer = answer.map_err(|status| channel::error(&doing, &status))?;
        let config = answer
            .dispatch_config
            .ok_or_else(|| OpError::refused(format!("{doing}: the broker's answer holds none")))?;
        let max_unacked_messages = config.max_unacked_messages;
        Ok(DispatchConfig { topic, subscription, max_unacked_messages })
    }
}

impl Output for DispatchConfig {
    fn text(&self) -> String {
        format!(
            "Topic: {}\nSubscription: {}\nMax Unacked Messages: {}",
            self.topic, self.subscription, self.max_unacked_messages
        )
    }
}
