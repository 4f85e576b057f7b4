//! A failure policy as it is read and shown.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::Output;
use crate::session::Session;
use danube_core::{Backoff, FailurePolicy, SubscriptionName, TopicName};
use danube_wire::convert;
use danube_wire::proto::control;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A policy and whose it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Policy {
    #[schemars(with = "String")]
    topic: TopicName,
    #[schemars(with = "String")]
    subscription: SubscriptionName,
    max_redelivery_count: u32,
    ack_timeout_ms: u64,
    base_redelivery_delay_ms: u64,
    max_redelivery_delay_ms: u64,
    backoff_strategy: &'static str,
    #[schemars(with = "Option<String>")]
    dead_letter_topic: Option<TopicName>,
    poison_policy: &'static str,
    /// By field: `fallback`, `intent` or `override`; empty where nobody asked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    source: BTreeMap<String, String>,
}

impl Policy {
    pub(super) fn of(
        topic: &TopicName,
        subscription: &SubscriptionName,
        policy: FailurePolicy,
    ) -> Policy {
        Policy {
            topic: topic.clone(),
            subscription: subscription.clone(),
            max_redelivery_count: policy.max_redelivery_count,
            ack_timeout_ms: policy.ack_timeout_ms,
            base_redelivery_delay_ms: policy.base_redelivery_delay_ms,
            max_redelivery_delay_ms: policy.max_redelivery_delay_ms,
            backoff_strategy: match policy.backoff_strategy {
                Backoff::Fixed => "fixed",
                Backoff::Exponential => "exponential",
            },
            dead_letter_topic: policy.dead_letter_topic,
            poison_policy: policy.poison_policy.as_str(),
            source: BTreeMap::new(),
        }
    }

    pub(super) fn from(self, sources: Vec<control::FieldSource>) -> Policy {
        let source = sources.into_iter().map(|known| (known.field, known.source)).collect();
        Policy { source, ..self }
    }

    /// For example `intent (poison_policy), fallback (ack_timeout_ms)`.
    fn sources(&self) -> String {
        let mut fields: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (field, source) in &self.source {
            fields.entry(source).or_default().push(field);
        }
        let one = |(source, fields): (&str, Vec<&str>)| format!("{source} ({})", fields.join(", "));
        fields.into_iter().rev().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Output for Policy {
    fn text(&self) -> String {
        let dead_letters = self.dead_letter_topic.as_ref().map(ToString::to_string);
        let mut text = format!(
            "Topic: {}\n\
             Subscription: {}\n\
             Max Redelivery Count: {}\n\
             Ack Timeout Ms: {}\n\
             Base Redelivery Delay Ms: {}\n\
             Max Redelivery Delay Ms: {}\n\
             Backoff Strategy: {}\n\
             Dead Letter Topic: {}\n\
             Poison Policy: {}",
            self.topic,
            self.subscription,
            self.max_redelivery_count,
            self.ack_timeout_ms,
            self.base_redelivery_delay_ms,
            self.max_redelivery_delay_ms,
            self.backoff_strategy,
            dead_letters.as_deref().unwrap_or("None"),
            self.poison_policy,
        );
        if !self.source.is_empty() {
            text.push_str(&format!("\nSource: {}", self.sources()));
        }
        text
    }
}

/// What the broker says of a policy.
pub(super) struct Explained {
    /// What holds, or waits for its subscription.
    pub(super) policy: Option<FailurePolicy>,
    /// What holds unless somebody sets something else; `None` where nothing can fail.
    pub(super) inherited: Option<FailurePolicy>,
    pub(super) sources: Vec<control::FieldSource>,
}

/// The policy that holds now; `doing` is what cannot be done if the broker refuses.
pub(super) async fn explain(
    topic: &TopicName,
    subscription: &SubscriptionName,
    session: &Session,
    doing: &str,
) -> Result<Explained, OpError> {
    let mut control = session.control().await?;
    let request = control::ExplainFailurePolicyRequest {
        topic: topic.to_string(),
        subscription: subscription.to_string(),
    };
    let answer = call(control.explain_failure_policy(request)).await;
    let answer = answer.map_err(|status| channel::error(doing, &status))?;
    let read = |wire: Option<control::FailurePolicy>| {
        wire.as_ref().map(convert::control_failure_policy).transpose()
    };
    Ok(Explained {
        policy: read(answer.policy)?,
        inherited: read(answer.inherited)?,
        sources: answer.sources,
    })
}
