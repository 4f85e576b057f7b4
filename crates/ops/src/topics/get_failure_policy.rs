//! `topics get-failure-policy`.

use super::failure_policy::{Policy, explain};
use crate::args::SubscriptionArg;
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::{SubscriptionName, TopicName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print what a subscription does with failures
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct GetFailurePolicy {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
}

/// The policy; none where nothing can fail.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Found {
    policy: Option<Policy>,
    #[serde(skip)]
    asked: (TopicName, SubscriptionName),
}

impl Operation for GetFailurePolicy {
    type Output = Found;
    const SPEC: Spec = Spec {
        path: ("topics", "get-failure-policy"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/agent-jobs -s worker-pool",
    };

    async fn run(self, session: &Session) -> Result<Found, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let doing = format!("failure policy of `{subscription}` on `{topic}` cannot be read");
        let found = explain(&topic, &subscription, session, &doing).await?;
        if found.policy.is_none() && found.inherited.is_some() {
            return Err(OpError::refused(format!(
                "topic `{topic}` has no subscription `{subscription}` and no policy was set for one"
            ))
            .help(format!("see what it has: danube ctl topics subscriptions {topic}")));
        }
        let policy = found.policy.map(|policy| Policy::of(&topic, &subscription, policy));
        let policy = policy.map(|policy| policy.from(found.sources));
        Ok(Found { policy, asked: (topic, subscription) })
    }
}

impl Output for Found {
    fn text(&self) -> String {
        let (topic, subscription) = &self.asked;
        self.policy.as_ref().map_or_else(
            || format!("Topic: {topic}\nSubscription: {subscription}\nFailure Policy: None"),
            Output::text,
        )
    }
}
