//! `danube ctl topics get-failure-policy` and `set-failure-policy`.
//!
//! The wire carries a policy whole, so `set` reads what holds now and changes what was given. A
//! policy may be set before the first consumer comes; it starts from the broker's fallback then.

use crate::channel::{self, call};
use crate::ctl::admin::{Admin, SubscriptionArgument};
use crate::failure::Failure;
use crate::output::{self, Format};
use danube_core::{SubscriptionName, TopicName};
use danube_wire::proto::danube_admin::{
    GetSubscriptionFailurePolicyRequest, SetSubscriptionFailurePolicyRequest,
    SubscriptionBackoffStrategy, SubscriptionFailurePolicy, SubscriptionPoisonPolicy,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

/// Print what a subscription does with failures
#[derive(Debug, clap::Args)]
pub struct GetArguments {
    #[command(flatten)]
    subscription: SubscriptionArgument,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// Change what a subscription does with failures; what is not given stays
#[derive(Debug, clap::Args)]
pub struct SetArguments {
    #[command(flatten)]
    subscription: SubscriptionArgument,
    #[command(flatten)]
    change: Change,
}

#[derive(Debug, clap::Args)]
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

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Backoff {
    /// The same delay each time
    Fixed,
    /// Twice the delay each time
    Exponential,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Poison {
    /// They go to the dead-letter topic
    #[value(name = "dead_letter", alias = "dead-letter")]
    DeadLetter,
    /// They stay and hold up what comes after them
    Block,
    /// They are dropped
    Drop,
}

/// Prints one line per field.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn get(arguments: GetArguments, admin: &Admin) -> Result<(), Failure> {
    let (topic, subscription) = arguments.subscription.names()?;
    let policy = current(&topic, &subscription, admin).await.map_err(|failed| match failed {
        Failed::Connect(failure) => failure,
        Failed::Call(status) => {
            let doing = format!("failure policy of `{subscription}` on `{topic}` cannot be read");
            channel::failure(&doing, &status)
        }
    })?;
    match (arguments.output, policy) {
        (Format::Text, Some(policy)) => output::line(text(&topic, &subscription, &policy)),
        (Format::Text, None) => output::line(format!(
            "Topic: {topic}\nSubscription: {subscription}\nFailure Policy: None"
        )),
        (Format::Json, policy) => {
            output::json(&policy.map_or(Value::Null, |p| document(&topic, &subscription, &p)))
        }
    }
}

/// Sets it and prints what holds then.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn set(arguments: SetArguments, admin: &Admin) -> Result<(), Failure> {
    let (topic, subscription) = arguments.subscription.names()?;
    let doing = format!("failure policy of `{subscription}` on `{topic}` cannot be set");
    let before = match current(&topic, &subscription, admin).await {
        Ok(policy) => policy.unwrap_or_else(fallback),
        Err(Failed::Call(status)) if status.code() == Code::NotFound => fallback(),
        Err(Failed::Call(status)) => return Err(channel::failure(&doing, &status)),
        Err(Failed::Connect(failure)) => return Err(failure),
    };
    let policy = arguments.change.apply(before, &topic)?;
    let mut topics = admin.topics().await?;
    let request = SetSubscriptionFailurePolicyRequest {
        topic: topic.to_string(),
        subscription: subscription.to_string(),
        failure_policy: Some(policy.clone()),
    };
    let answer = call(topics.set_subscription_failure_policy(request)).await;
    answer.map_err(|status| channel::failure(&doing, &status))?;
    output::line(text(&topic, &subscription, &policy))
}

impl Change {
    fn apply(
        self,
        mut policy: SubscriptionFailurePolicy,
        topic: &TopicName,
    ) -> Result<SubscriptionFailurePolicy, Failure> {
        fn put<T>(field: &mut T, given: Option<T>) {
            if let Some(given) = given {
                *field = given;
            }
        }
        put(&mut policy.max_redelivery_count, self.max_redelivery_count);
        put(&mut policy.ack_timeout_ms, self.ack_timeout_ms);
        put(&mut policy.base_redelivery_delay_ms, self.base_redelivery_delay_ms);
        put(&mut policy.max_redelivery_delay_ms, self.max_redelivery_delay_ms);
        if let Some(backoff) = self.backoff_strategy {
            policy.set_backoff_strategy(match backoff {
                Backoff::Fixed => SubscriptionBackoffStrategy::Fixed,
                Backoff::Exponential => SubscriptionBackoffStrategy::Exponential,
            });
        }
        if let Some(poison) = self.poison_policy {
            policy.set_poison_policy(match poison {
                Poison::DeadLetter => SubscriptionPoisonPolicy::DeadLetter,
                Poison::Block => SubscriptionPoisonPolicy::Block,
                Poison::Drop => SubscriptionPoisonPolicy::Drop,
            });
        }
        if let Some(given) = self.dead_letter_topic {
            policy.dead_letter_topic = Some(TopicName::parse(&given)?.to_string());
        }
        if policy.poison_policy() == SubscriptionPoisonPolicy::DeadLetter
            && policy.dead_letter_topic.is_none()
        {
            policy.dead_letter_topic = Some(topic.dead_letter()?.to_string());
        }
        Ok(policy)
    }
}

/// Why the policy that holds now could not be read.
enum Failed {
    Connect(Failure),
    Call(Status),
}

async fn current(
    topic: &TopicName,
    subscription: &SubscriptionName,
    admin: &Admin,
) -> Result<Option<SubscriptionFailurePolicy>, Failed> {
    let mut topics = admin.topics().await.map_err(Failed::Connect)?;
    let request = GetSubscriptionFailurePolicyRequest {
        topic: topic.to_string(),
        subscription: subscription.to_string(),
    };
    let answer = call(topics.get_subscription_failure_policy(request)).await;
    Ok(answer.map_err(Failed::Call)?.failure_policy)
}

/// What the broker does where nobody said anything, on the wire.
fn fallback() -> SubscriptionFailurePolicy {
    let policy = danube_core::FailurePolicy::default();
    SubscriptionFailurePolicy {
        max_redelivery_count: policy.max_redelivery_count,
        ack_timeout_ms: policy.ack_timeout_ms,
        base_redelivery_delay_ms: policy.base_redelivery_delay_ms,
        max_redelivery_delay_ms: policy.max_redelivery_delay_ms,
        backoff_strategy: SubscriptionBackoffStrategy::Exponential.into(),
        dead_letter_topic: None,
        poison_policy: SubscriptionPoisonPolicy::Block.into(),
    }
}

fn backoff_word(policy: &SubscriptionFailurePolicy) -> &'static str {
    match policy.backoff_strategy() {
        SubscriptionBackoffStrategy::Fixed => "fixed",
        SubscriptionBackoffStrategy::Exponential => "exponential",
    }
}

fn poison_word(policy: &SubscriptionFailurePolicy) -> &'static str {
    match policy.poison_policy() {
        SubscriptionPoisonPolicy::DeadLetter => "dead_letter",
        SubscriptionPoisonPolicy::Block => "block",
        SubscriptionPoisonPolicy::Drop => "drop",
    }
}

fn text(
    topic: &TopicName,
    subscription: &SubscriptionName,
    policy: &SubscriptionFailurePolicy,
) -> String {
    format!(
        "Topic: {topic}\n\
         Subscription: {subscription}\n\
         Max Redelivery Count: {}\n\
         Ack Timeout Ms: {}\n\
         Base Redelivery Delay Ms: {}\n\
         Max Redelivery Delay Ms: {}\n\
         Backoff Strategy: {}\n\
         Dead Letter Topic: {}\n\
         Poison Policy: {}",
        policy.max_redelivery_count,
        policy.ack_timeout_ms,
        policy.base_redelivery_delay_ms,
        policy.max_redelivery_delay_ms,
        backoff_word(policy),
        policy.dead_letter_topic.as_deref().unwrap_or("None"),
        poison_word(policy),
    )
}

fn document(
    topic: &TopicName,
    subscription: &SubscriptionName,
    policy: &SubscriptionFailurePolicy,
) -> Value {
    json!({
        "topic": topic.as_str(),
        "subscription": subscription.as_str(),
        "max_redelivery_count": policy.max_redelivery_count,
        "ack_timeout_ms": policy.ack_timeout_ms,
        "base_redelivery_delay_ms": policy.base_redelivery_delay_ms,
        "max_redelivery_delay_ms": policy.max_redelivery_delay_ms,
        "backoff_strategy": backoff_word(policy),
        "dead_letter_topic": policy.dead_letter_topic,
        "poison_policy": poison_word(policy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let policy = change.apply(fallback(), &topic).expect("well formed");
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
        .assert_eq(&text(&topic, &subscription, &policy));
        let change = Change { dead_letter_topic: Some("no-slash".into()), ..nothing() };
        assert!(change.apply(policy, &topic).is_err());
    }
}
