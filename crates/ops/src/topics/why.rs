//! `topics why`: the first reason why a subscription does not move.

use super::description;
use crate::args::SubscriptionArg;
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print why a subscription does not move
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Why {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
}

/// The reasons, by partition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Reasons(Vec<Reason>);

#[derive(Debug, Serialize, JsonSchema)]
struct Reason {
    topic: String,
    /// Empty while it moves.
    why: String,
}

impl Operation for Why {
    type Output = Reasons;
    const SPEC: Spec = Spec {
        path: ("topics", "why"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/agent-jobs -s worker-pool",
    };

    async fn run(self, session: &Session) -> Result<Reasons, OpError> {
        let (topic, name) = self.subscription.names()?;
        let answer = description(&topic, session).await?;
        let found = answer.subscriptions.into_iter().filter(|s| s.name == name.as_str());
        let reasons: Vec<Reason> =
            found.map(|found| Reason { topic: found.topic, why: found.why }).collect();
        if reasons.is_empty() {
            return Err(OpError::refused(format!("topic `{topic}` has no subscription `{name}`"))
                .help(format!("see what it has: danube ctl topics subscriptions {topic}")));
        }
        Ok(Reasons(reasons))
    }
}

impl Output for Reasons {
    fn text(&self) -> String {
        let line = |reason: &Reason| {
            let why = if reason.why.is_empty() { "it moves" } else { &reason.why };
            format!("{}: {why}", reason.topic)
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
