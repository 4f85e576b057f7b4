//! A failure policy as it is read and shown.

use crate::channel::call;
use crate::error::OpError;
use crate::operation::Output;
use crate::session::Session;
use danube_core::{SubscriptionName, TopicName};
use danube_wire::proto::danube_admin::{
    GetSubscriptionFailurePolicyRequest, SubscriptionBackoffStrategy, SubscriptionFailurePolicy,
    SubscriptionPoisonPolicy,
};
use serde::Serialize;
use tonic::Status;

/// A policy and whose it is.
#[derive(Debug, Serialize)]
pub struct Policy {
    topic: TopicName,
    subscription: SubscriptionName,
    max_redelivery_count: u32,
    ack_timeout_ms: u64,
    base_redelivery_delay_ms: u64,
    max_redelivery_delay_ms: u64,
    backoff_strategy: &'static str,
    dead_letter_topic: Option<String>,
    poison_policy: &'static str,
}

impl Policy {
    pub(super) fn of(
        topic: &TopicName,
        subscription: &SubscriptionName,
        policy: &SubscriptionFailurePolicy,
    ) -> Policy {
        Policy {
            topic: topic.clone(),
            subscription: subscription.clone(),
            max_redelivery_count: policy.max_redelivery_count,
            ack_timeout_ms: policy.ack_timeout_ms,
            base_redelivery_delay_ms: policy.base_redelivery_delay_ms,
            max_redelivery_delay_ms: policy.max_redelivery_delay_ms,
            backoff_strategy: match policy.backoff_strategy() {
                SubscriptionBackoffStrategy::Fixed => "fixed",
                SubscriptionBackoffStrategy::Exponential => "exponential",
            },
            dead_letter_topic: policy.dead_letter_topic.clone(),
            poison_policy: match policy.poison_policy() {
                SubscriptionPoisonPolicy::DeadLetter => "dead_letter",
                SubscriptionPoisonPolicy::Block => "block",
                SubscriptionPoisonPolicy::Drop => "drop",
            },
        }
    }
}

impl Output for Policy {
    fn text(&self) -> String {
        format!(
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
            self.dead_letter_topic.as_deref().unwrap_or("None"),
            self.poison_policy,
        )
    }
}

/// The policy that holds now, or the status with which the broker refused to tell.
pub(super) async fn current(
    topic: &TopicName,
    subscription: &SubscriptionName,
    session: &Session,
) -> Result<Result<Option<SubscriptionFailurePolicy>, Status>, OpError> {
    let mut topics = session.topics().await?;
    let request = GetSubscriptionFailurePolicyRequest {
        topic: topic.to_string(),
        subscription: subscription.to_string(),
    };
    let answer = call(topics.get_subscription_failure_policy(request)).await;
    Ok(answer.map(|answer| answer.failure_policy))
}
