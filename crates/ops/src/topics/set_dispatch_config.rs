//! `topics set-dispatch-config`.

use super::get_dispatch_config::DispatchConfig;
use crate::args::SubscriptionArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use danube_core::change::UNACKED_MESSAGES_MAX;
use danube_wire::proto::danube_admin::{
    SetSubscriptionDispatchConfigRequest, SubscriptionDispatchConfig,
};
use serde::{Deserialize, Serialize};

/// Set how many messages of a subscription may be delivered and not acknowledged
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct SetDispatchConfig {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
    /// How many, 1 to 10000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(UNACKED_MESSAGES_MAX)))]
    max_unacked_messages: u32,
}

impl Operation for SetDispatchConfig {
    type Output = DispatchConfig;
    const SPEC: Spec = Spec {
        path: ("topics", "set-dispatch-config"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs -s worker-pool --max-unacked-messages 256",
    };

    async fn run(self, session: &Session) -> Result<DispatchConfig, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let max_unacked_messages = self.max_unacked_messages;
        let mut topics = session.topics().await?;
        let request = SetSubscriptionDispatchConfigRequest {
            topic: topic.to_string(),
            subscription: subscription.to_string(),
            dispatch_config: Some(SubscriptionDispatchConfig { max_unacked_messages }),
        };
        call(topics.set_subscription_dispatch_config(session.request(request))).await.map_err(
            |status| {
                let doing =
                    format!("dispatch config of `{subscription}` on `{topic}` cannot be set");
                channel::error(&doing, &status)
            },
        )?;
        Ok(DispatchConfig { topic, subscription, max_unacked_messages })
    }
}
