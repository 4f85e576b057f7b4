//! `topics set-failure-policy`.
//!
//! The wire carries a policy whole, so this reads what holds now and changes what was given. A
//! policy may be set before the first consumer comes; it starts from what the topic gives then.

use super::failure_policy::{Policy, explain};
use crate::args::SubscriptionArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use danube_core::{FailurePolicy, PoisonPolicy, TopicName};
use danube_wire::convert;
use danube_wire::proto::danube_admin::SetSubscriptionFailurePolicyRequest;
use serde::{Deserialize, Serialize};

/// Change what a subscription does with failures; what is not given stays
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct SetFailurePolicy {
    #[command(flatten)]
    #[serde(flatten)]
    subscription: SubscriptionArg,
    #[command(flatten)]
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(required = true, multiple = true)]
struct Change {
    /// Re-deliveries after the first delivery
    #[arg(long, value_name = "N")]
    max_redelivery_count: Option<u32>,
    /// How long a consumer may hold a message, in milliseconds
    #[arg(long, value_name = "MS")]
    ack_timeout_ms: Option<u64>,
    /// Delay before the first re-delivery, in milliseconds
    #[arg(long, value_name = "MS")]
    base_redelivery_delay_ms: Option<u64>,
    /// Longest delay before a re-delivery, in milliseconds
    #[arg(long, value_name = "MS")]
    max_redelivery_delay_ms: Option<u64>,
    /// How the delay grows
    #[arg(long, value_enum, value_name = "STRATEGY")]
    backoff_strategy: Option<Backoff>,
    /// Where messages go that failed for good
    #[arg(long, value_name = "TOPIC")]
    dead_letter_topic: Option<String>,
    /// What becomes of messages that failed for good
    #[arg(long, value_enum, value_name = "POLICY")]
    poison_policy: Option<Poison>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Backoff {
    /// The same delay each time
    Fixed,
    /// Twice the delay each time
    Exponential,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Poison {
    /// They go to the dead-letter topic
    #[value(name = "dead_letter", alias = "dead-letter")]
    DeadLetter,
    /// They stay and hold up what comes after them
    Block,
    /// They are dropped
    Drop,
}

impl Operation for SetFailurePolicy {
    type Output = Policy;
    const SPEC: Spec = Spec {
        path: ("topics", "set-failure-policy"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs -s worker-pool --max-redelivery-count 8",
    };

    async fn run(self, session: &Session) -> Result<Policy, OpError> {
        let (topic, subscription) = self.subscription.names()?;
        let doing = format!("failure policy of `{subscription}` on `{topic}` cannot be set");
        let found = explain(&topic, &subscription, session, &doing).await?;
        let before = found.policy.or(found.inherited).unwrap_or_default();
        let policy = self.change.apply(before, &topic)?;
        let mut topics = session.topics().await?;
        let request = SetSubscriptionFailurePolicyRequest {
            topic: topic.to_string(),
            subscription: subscription.to_string(),
            failure_policy: Some(convert::to_admin_failure_policy(&policy)?),
        };
        let answer = call(topics.set_subscription_failure_policy(session.request(request))).await;
        answer.map_err(|status| channel::error(&doing, &status))?;
        Ok(Policy::of(&topic, &subscription, policy))
    }
}

impl Change {
    fn apply(self, mut policy: FailurePolicy, topic: &TopicName) -> Result<FailurePolicy, OpError> {
        fn put<T>(field: &mut T, given: Option<T>) {
            if let Some(given) = given {
                *field = given;
            }
        }
        put(&mut policy.max_redelivery_count, self.max_redelivery_count);
        put(&mut policy.ack_timeout_ms, self.ack_timeout_ms);
        put(&mut policy.base_redelivery_delay_ms, self.base_redelivery_delay_ms);
        put(&mut policy.max_redelivery_delay_ms, self.max_redelivery_delay_ms);
        let backoff = self.backoff_strategy.map(|given| match given {
            Backoff::Fixed => danube_core::Backoff::Fixed,
            Backoff::Exponential => danube_core::Backoff::Exponential,
        });
        put(&mut policy.backoff_strategy, backoff);
        let poison = self.poison_policy.map(|given| match given {
            Poison::DeadLetter => PoisonPolicy::DeadLetter,
            Poison::Block => PoisonPolicy::Block,
            Poison::Drop => PoisonPolicy::Drop,
        });
        put(&mut policy.poison_policy, poison);
        if let Some(given) = self.dead_letter_topic {
            policy.dead_letter_topic = Some(TopicName::parse(&given)?);
        }
        if policy.poison_policy == PoisonPolicy::DeadLetter && policy.dead_letter_topic.is_none() {
            policy.dead_letter_topic = Some(topic.dead_letter()?);
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Output;
    use danube_core::SubscriptionName;
    use expect_test::expect;

    fn nothing() -> Change {
        Change {
            max_redelivery_count: None,
            ack_timeout_ms: None,
            base_redelivery_delay_ms: None,
            max_redelivery_delay_ms: None,
            backoff_strategy: None,
            dead_letter_topic: None,
            poison_policy: None,
        }
    }

    #[test]
    fn what_is_not_given_stays_and_dead_letters_have_a_place_to_go() {
        let topic = TopicName::parse("/default/jobs-part-1").expect("well formed");
        let subscription = SubscriptionName::parse("workers").expect("well formed");
        let change = Change {
            max_redelivery_count: Some(8),
            poison_policy: Some(Poison::DeadLetter),
            ..nothing()
        };
        let policy = change.apply(FailurePolicy::default(), &topic).expect("well formed");
        expect![[r#"
            Topic: /default/jobs-part-1
            Subscription: workers
            Max Redelivery Count: 8
            Ack Timeout Ms: 30000
            Base Redelivery Delay Ms: 1000
            Max Redelivery Delay Ms: 60000
            Backoff Strategy: exponential
            Dead Letter Topic: /default/jobs-dlq
            Poison Policy: dead_letter"#]]
        .assert_eq(&Policy::of(&topic, &subscription, policy.clone()).text());
        let change = Change { dead_letter_topic: Some("no-slash".into()), ..nothing() };
        assert!(change.apply(policy, &topic).is_err());
    }
}
