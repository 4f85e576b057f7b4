//! Words of the wire as words of the core, and back.
//!
//! An enum of the wire is a bare number that may be any; it becomes a word of the core or a
//! refusal that names it. Whether words fit together is left to the core.

use crate::proto::{control, danube, danube_admin, stream};
use danube::consumer_request::SubscriptionType as WireType;
use danube_admin::{SubscriptionBackoffStrategy, SubscriptionPoisonPolicy};
use danube_core::{
    Backoff, Delivery, FailurePolicy, Fault, Offset, PoisonPolicy, Position, SubscriptionType,
    TopicName, WallMs,
};

fn unknown(what: &str, number: i32) -> Fault {
    Fault::invalid(format!("unknown {what} `{number}`; this broker does not know that number"))
}

/// A `DispatchStrategy`; `danube` and `danube_admin` number it alike.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for any other number.
pub fn delivery(number: i32) -> Result<Delivery, Fault> {
    match danube::DispatchStrategy::try_from(number) {
        Ok(danube::DispatchStrategy::NonReliable) => Ok(Delivery::NonReliable),
        Ok(danube::DispatchStrategy::Reliable) => Ok(Delivery::Reliable),
        Err(_) => Err(unknown("dispatch strategy", number)),
    }
}

/// A `danube.stream.v1.Delivery` for a topic that is to be made.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for an unknown number.
pub fn stream_delivery(number: i32) -> Result<Delivery, Fault> {
    match stream::Delivery::try_from(number) {
        Ok(stream::Delivery::Unspecified | stream::Delivery::Reliable) => Ok(Delivery::Reliable),
        Ok(stream::Delivery::NonReliable) => Ok(Delivery::NonReliable),
        Err(_) => Err(unknown("delivery", number)),
    }
}

/// A `danube.stream.v1.SubscriptionType`.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for an unknown number.
pub fn stream_subscription_type(number: i32) -> Result<SubscriptionType, Fault> {
    match stream::SubscriptionType::try_from(number) {
        Ok(stream::SubscriptionType::Shared) => Ok(SubscriptionType::Shared),
        Ok(stream::SubscriptionType::Exclusive) => Ok(SubscriptionType::Exclusive),
        Ok(stream::SubscriptionType::Failover) => Ok(SubscriptionType::Failover),
        Ok(stream::SubscriptionType::KeyShared) => Ok(SubscriptionType::KeyShared),
        Err(_) => Err(unknown("subscription type", number)),
    }
}

/// A `danube.stream.v1.Position`; absent is the latest.
pub fn stream_position(position: Option<stream::Position>) -> Position {
    use stream::position::At;
    match position.and_then(|position| position.at) {
        Some(At::Earliest(_)) => Position::Earliest,
        Some(At::Offset(offset)) => Position::Offset(Offset(offset)),
        Some(At::Time(at)) => Position::Time(WallMs(at)),
        Some(At::Latest(_)) | None => Position::Latest,
    }
}

/// A delivery as `danube.control.v1` spells it: `NonReliable` or `Reliable`; case does not matter,
/// and `-` and `_` are skipped.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for any other word.
pub fn delivery_word(word: &str) -> Result<Delivery, Fault> {
    Delivery::parse(word)
}

/// A `ConsumerRequest.SubscriptionType`.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for any other number.
pub fn subscription_type(number: i32) -> Result<SubscriptionType, Fault> {
    match WireType::try_from(number) {
        Ok(WireType::Exclusive) => Ok(SubscriptionType::Exclusive),
        Ok(WireType::Shared) => Ok(SubscriptionType::Shared),
        Ok(WireType::Failover) => Ok(SubscriptionType::Failover),
        Ok(WireType::KeyShared) => Ok(SubscriptionType::KeyShared),
        Err(_) => Err(unknown("subscription type", number)),
    }
}

/// The number of `kind` in `ConsumerRequest.SubscriptionType`.
pub fn subscription_type_number(kind: SubscriptionType) -> i32 {
    let wire = match kind {
        SubscriptionType::Exclusive => WireType::Exclusive,
        SubscriptionType::Shared => WireType::Shared,
        SubscriptionType::Failover => WireType::Failover,
        SubscriptionType::KeyShared => WireType::KeyShared,
    };
    wire.into()
}

/// A failure policy as an administrator sends it. Whether its fields fit together is for
/// [`FailurePolicy::check`], after the caller has filled in what may be left out.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for an unknown number or a bad topic name.
pub fn failure_policy(
    wire: &danube_admin::SubscriptionFailurePolicy,
) -> Result<FailurePolicy, Fault> {
    let backoff_strategy = match SubscriptionBackoffStrategy::try_from(wire.backoff_strategy) {
        Ok(SubscriptionBackoffStrategy::Fixed) => Backoff::Fixed,
        Ok(SubscriptionBackoffStrategy::Exponential) => Backoff::Exponential,
        Err(_) => return Err(unknown("backoff strategy", wire.backoff_strategy)),
    };
    let poison_policy = match SubscriptionPoisonPolicy::try_from(wire.poison_policy) {
        Ok(SubscriptionPoisonPolicy::DeadLetter) => PoisonPolicy::DeadLetter,
        Ok(SubscriptionPoisonPolicy::Block) => PoisonPolicy::Block,
        Ok(SubscriptionPoisonPolicy::Drop) => PoisonPolicy::Drop,
        Err(_) => return Err(unknown("poison policy", wire.poison_policy)),
    };
    let dead_letter_topic = wire.dead_letter_topic.as_deref().filter(|name| !name.is_empty());
    Ok(FailurePolicy {
        max_redelivery_count: wire.max_redelivery_count,
        ack_timeout_ms: wire.ack_timeout_ms,
        base_redelivery_delay_ms: wire.base_redelivery_delay_ms,
        max_redelivery_delay_ms: wire.max_redelivery_delay_ms,
        backoff_strategy,
        dead_letter_topic: dead_letter_topic.map(TopicName::parse).transpose()?,
        poison_policy,
    })
}

/// A failure policy for an administrator's tool.
///
/// # Errors
/// [`Precondition`](danube_core::FaultKind::Precondition) for [`PoisonPolicy::None`], which that
/// contract has no word for and which no subscription that can fail has.
pub fn to_admin_failure_policy(
    policy: &FailurePolicy,
) -> Result<danube_admin::SubscriptionFailurePolicy, Fault> {
    let poison_policy = match policy.poison_policy {
        PoisonPolicy::DeadLetter => SubscriptionPoisonPolicy::DeadLetter,
        PoisonPolicy::Block => SubscriptionPoisonPolicy::Block,
        PoisonPolicy::Drop => SubscriptionPoisonPolicy::Drop,
        PoisonPolicy::None => {
            return Err(Fault::precondition(
                "poison policy `none` is for NonReliable topics, whose subscriptions have no \
                 failure policy; set dead_letter, block or drop",
            ));
        }
    };
    let backoff_strategy = match policy.backoff_strategy {
        Backoff::Fixed => SubscriptionBackoffStrategy::Fixed,
        Backoff::Exponential => SubscriptionBackoffStrategy::Exponential,
    };
    Ok(danube_admin::SubscriptionFailurePolicy {
        max_redelivery_count: policy.max_redelivery_count,
        ack_timeout_ms: policy.ack_timeout_ms,
        base_redelivery_delay_ms: policy.base_redelivery_delay_ms,
        max_redelivery_delay_ms: policy.max_redelivery_delay_ms,
        backoff_strategy: backoff_strategy.into(),
        dead_letter_topic: policy.dead_letter_topic.as_ref().map(ToString::to_string),
        poison_policy: poison_policy.into(),
    })
}

/// A failure policy for `danube ctl`.
pub fn to_control_failure_policy(policy: &FailurePolicy) -> control::FailurePolicy {
    let backoff_strategy = match policy.backoff_strategy {
        Backoff::Fixed => "fixed",
        Backoff::Exponential => "exponential",
    };
    control::FailurePolicy {
        max_redelivery_count: policy.max_redelivery_count,
        ack_timeout_ms: policy.ack_timeout_ms,
        base_redelivery_delay_ms: policy.base_redelivery_delay_ms,
        max_redelivery_delay_ms: policy.max_redelivery_delay_ms,
        backoff_strategy: backoff_strategy.to_owned(),
        dead_letter_topic: policy.dead_letter_topic.as_ref().map(ToString::to_string),
        poison_policy: policy.poison_policy.as_str().to_owned(),
    }
}

/// The failure policy that a broker told `danube ctl`.
///
/// # Errors
/// [`Invalid`](danube_core::FaultKind::Invalid) for a word that this version does not know, or a
/// bad topic name.
pub fn control_failure_policy(wire: &control::FailurePolicy) -> Result<FailurePolicy, Fault> {
    let word = |what: &str, word: &str| {
        Fault::invalid(format!("unknown {what} `{word}`; this version does not know that word"))
    };
    let backoff_strategy = match wire.backoff_strategy.as_str() {
        "fixed" => Backoff::Fixed,
        "exponential" => Backoff::Exponential,
        other => return Err(word("backoff strategy", other)),
    };
    let known =
        [PoisonPolicy::None, PoisonPolicy::DeadLetter, PoisonPolicy::Block, PoisonPolicy::Drop];
    let poison_policy = known
        .into_iter()
        .find(|known| known.as_str() == wire.poison_policy)
        .ok_or_else(|| word("poison policy", &wire.poison_policy))?;
    Ok(FailurePolicy {
        max_redelivery_count: wire.max_redelivery_count,
        ack_timeout_ms: wire.ack_timeout_ms,
        base_redelivery_delay_ms: wire.base_redelivery_delay_ms,
        max_redelivery_delay_ms: wire.max_redelivery_delay_ms,
        backoff_strategy,
        dead_letter_topic: wire.dead_letter_topic.as_deref().map(TopicName::parse).transpose()?,
        poison_policy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_core::{FaultKind, Intent};

    #[test]
    fn known_numbers_come_back_and_others_are_refused_by_number() {
        for number in 0..4 {
            let kind = subscription_type(number).expect("known");
            assert_eq!(subscription_type_number(kind), number);
        }
        assert_eq!((delivery(0), delivery(1)), (Ok(Delivery::NonReliable), Ok(Delivery::Reliable)));
        for fault in [delivery(2).expect_err("2"), subscription_type(-1).expect_err("-1")] {
            assert_eq!(fault.kind, FaultKind::Invalid);
            assert!(fault.message.starts_with("unknown "), "{fault}");
        }
    }

    #[test]
    fn a_delivery_is_taken_in_any_spelling() {
        for word in ["NonReliable", "non_reliable", "NON-RELIABLE"] {
            assert_eq!(delivery_word(word), Ok(Delivery::NonReliable), "{word}");
        }
        for delivery in [Delivery::NonReliable, Delivery::Reliable] {
            assert_eq!(delivery_word(delivery.as_str()), Ok(delivery));
        }
        assert_eq!(delivery_word("fast").expect_err("unknown").kind, FaultKind::Invalid);
    }

    #[test]
    fn a_failure_policy_goes_there_and_back() {
        let jobs = TopicName::parse("/default/jobs").expect("well formed");
        for intent in [Intent::EventStream, Intent::TaskQueue, Intent::AuditLog] {
            let policy = intent.expand(&jobs).failure_policy(&jobs).expect("reliable");
            let wire = to_admin_failure_policy(&policy).expect("has a word");
            assert_eq!(failure_policy(&wire), Ok(policy.clone()));
            let wire = to_control_failure_policy(&policy);
            assert_eq!(wire.poison_policy, policy.poison_policy.as_str());
            assert_eq!(control_failure_policy(&wire), Ok(policy));
        }
    }

    #[test]
    fn a_failure_policy_that_cannot_be_read_is_refused() {
        let wire = danube_admin::SubscriptionFailurePolicy::default();
        // An empty name is how some tools leave it out.
        let empty = danube_admin::SubscriptionFailurePolicy {
            dead_letter_topic: Some(String::new()),
            ..wire.clone()
        };
        assert_eq!(failure_policy(&empty).expect("readable").dead_letter_topic, None);
        for bad in [
            danube_admin::SubscriptionFailurePolicy { poison_policy: 9, ..wire.clone() },
            danube_admin::SubscriptionFailurePolicy { backoff_strategy: 9, ..wire.clone() },
            danube_admin::SubscriptionFailurePolicy {
                dead_letter_topic: Some("jobs".to_owned()),
                ..wire
            },
        ] {
            assert_eq!(failure_policy(&bad).expect_err("bad").kind, FaultKind::Invalid);
        }
        let none = FailurePolicy { poison_policy: PoisonPolicy::None, ..FailurePolicy::default() };
        assert!(to_admin_failure_policy(&none).is_err());
    }
}
