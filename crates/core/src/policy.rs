//! How a subscription delivers and what it does with failures.
//!
//! [`FailurePolicy::default`] is the broker's fallback for topics without an intent; its numbers
//! are those of the product's seed.

use crate::fault::Fault;
use crate::intent::PoisonPolicy;
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

/// Who of a subscription's consumers receives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionType {
    /// One consumer, everything in order.
    Exclusive,
    /// All consumers in turn.
    Shared,
    /// The longest-attached consumer; the next one when it goes.
    Failover,
    /// The consumer that owns the message's key; one message of a key at a time.
    KeyShared,
}

impl SubscriptionType {
    /// The stored spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            SubscriptionType::Exclusive => "exclusive",
            SubscriptionType::Shared => "shared",
            SubscriptionType::Failover => "failover",
            SubscriptionType::KeyShared => "key_shared",
        }
    }

    /// Parses a word; case does not matter, and `-` and `_` are skipped.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid) for any other word.
    pub fn parse(text: &str) -> Result<SubscriptionType, Fault> {
        match text.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "exclusive" => Ok(SubscriptionType::Exclusive),
            "shared" => Ok(SubscriptionType::Shared),
            "failover" => Ok(SubscriptionType::Failover),
            "keyshared" => Ok(SubscriptionType::KeyShared),
            _ => Err(Fault::invalid(format!(
                "unknown subscription type `{}`; known are exclusive, shared, failover, key_shared",
                text.escape_debug()
            ))),
        }
    }
}

/// How the delay grows from one re-delivery to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The same delay each time.
    Fixed,
    /// Twice the delay each time.
    Exponential,
}

impl Backoff {
    /// The stored spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Backoff::Fixed => "fixed",
            Backoff::Exponential => "exponential",
        }
    }
}

/// The document at `/topics/{ns}/{topic}/subscriptions/{sub}/failure_policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailurePolicy {
    /// Re-deliveries allowed: a message is delivered at most one more time than this.
    pub max_redelivery_count: u32,
    /// How long a consumer may hold a message, in milliseconds.
    pub ack_timeout_ms: u64,
    /// Delay before the first re-delivery, in milliseconds.
    pub base_redelivery_delay_ms: u64,
    /// Longest delay before a re-delivery, in milliseconds; it also caps what a client asks for.
    pub max_redelivery_delay_ms: u64,
    /// How the delay grows.
    pub backoff_strategy: Backoff,
    /// Where poison goes under [`PoisonPolicy::DeadLetter`].
    #[serde(default)]
    pub dead_letter_topic: Option<TopicName>,
    /// What becomes of poison.
    pub poison_policy: PoisonPolicy,
}

/// Where a value of a failure policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicySource {
    /// The broker's own default.
    Fallback,
    /// The intent that the topic was made with.
    Intent,
    /// `set-failure-policy`, and the topic would give another.
    Override,
}

impl PolicySource {
    /// `fallback`, `intent` or `override`.
    pub fn as_str(self) -> &'static str {
        match self {
            PolicySource::Fallback => "fallback",
            PolicySource::Intent => "intent",
            PolicySource::Override => "override",
        }
    }
}

/// Where each value of a failure policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of FailurePolicy")]
pub struct PolicySources {
    pub max_redelivery_count: PolicySource,
    pub ack_timeout_ms: PolicySource,
    pub base_redelivery_delay_ms: PolicySource,
    pub max_redelivery_delay_ms: PolicySource,
    pub backoff_strategy: PolicySource,
    pub dead_letter_topic: PolicySource,
    pub poison_policy: PolicySource,
}

impl Default for FailurePolicy {
    fn default() -> FailurePolicy {
        FailurePolicy {
            max_redelivery_count: 5,
            ack_timeout_ms: 30_000,
            base_redelivery_delay_ms: 1_000,
            max_redelivery_delay_ms: 60_000,
            backoff_strategy: Backoff::Exponential,
            dead_letter_topic: None,
            poison_policy: PoisonPolicy::Block,
        }
    }
}

impl FailurePolicy {
    /// Where the values come from, on a topic whose subscriptions have `inherited` unless somebody
    /// sets something else; `from_intent` if that has anything of an intent.
    pub fn sources(&self, inherited: &FailurePolicy, from_intent: bool) -> PolicySources {
        let source = |is_same: bool, can_be_intent: bool| match (is_same, can_be_intent) {
            (false, _) => PolicySource::Override,
            (true, true) if from_intent => PolicySource::Intent,
            (true, _) => PolicySource::Fallback,
        };
        let (own, given) = (self, inherited);
        PolicySources {
            max_redelivery_count: source(
                own.max_redelivery_count == given.max_redelivery_count,
                true,
            ),
            ack_timeout_ms: source(own.ack_timeout_ms == given.ack_timeout_ms, false),
            base_redelivery_delay_ms: source(
                own.base_redelivery_delay_ms == given.base_redelivery_delay_ms,
                true,
            ),
            max_redelivery_delay_ms: source(
                own.max_redelivery_delay_ms == given.max_redelivery_delay_ms,
                false,
            ),
            backoff_strategy: source(own.backoff_strategy == given.backoff_strategy, false),
            dead_letter_topic: source(own.dead_letter_topic == given.dead_letter_topic, true),
            poison_policy: source(own.poison_policy == given.poison_policy, true),
        }
    }

    /// Delay before the delivery that follows attempt `attempt` (the first delivery is attempt 1),
    /// in milliseconds. What the client asked for is a floor; `max_redelivery_delay_ms` caps both.
    pub fn redelivery_delay_ms(&self, attempt: u32, asked_ms: Option<u64>) -> u64 {
        let own = match self.backoff_strategy {
            Backoff::Fixed => self.base_redelivery_delay_ms,
            Backoff::Exponential => {
                let factor = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
                self.base_redelivery_delay_ms.saturating_mul(factor)
            }
        };
        own.max(asked_ms.unwrap_or(0)).min(self.max_redelivery_delay_ms)
    }

    /// Whether a message that failed at attempt `attempt` has no re-delivery left.
    pub fn is_exhausted(&self, attempt: u32) -> bool {
        attempt > self.max_redelivery_count
    }

    /// Checks that the fields fit together.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), naming the field.
    pub fn check(&self) -> Result<(), Fault> {
        if self.ack_timeout_ms == 0 {
            return Err(Fault::invalid("ack_timeout_ms is 0; every delivery would fail at once"));
        }
        if self.poison_policy == PoisonPolicy::DeadLetter && self.dead_letter_topic.is_none() {
            return Err(Fault::invalid(
                "poison policy `dead_letter` needs a dead_letter_topic; name one",
            ));
        }
        if self.poison_policy == PoisonPolicy::None {
            return Err(Fault::invalid(
                "poison policy `none` is for NonReliable topics; use dead_letter, block or drop",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_delays_double_up_to_the_cap_and_never_overflow() {
        let policy = FailurePolicy::default();
        let gaps: Vec<u64> =
            (1..=8).map(|attempt| policy.redelivery_delay_ms(attempt, None)).collect();
        assert_eq!(gaps, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        for attempt in [0, 63, 64, 65, 66, u32::MAX] {
            let delay = policy.redelivery_delay_ms(attempt, None);
            assert!((1_000..=60_000).contains(&delay), "attempt {attempt}: {delay}");
        }
    }

    #[test]
    fn a_clients_delay_is_a_floor_and_capped() {
        let fixed = FailurePolicy { backoff_strategy: Backoff::Fixed, ..FailurePolicy::default() };
        assert_eq!(fixed.redelivery_delay_ms(9, None), 1_000);
        assert_eq!(fixed.redelivery_delay_ms(9, Some(0)), 1_000);
        assert_eq!(fixed.redelivery_delay_ms(9, Some(2_500)), 2_500);
        assert_eq!(fixed.redelivery_delay_ms(9, Some(u64::MAX)), 60_000);
    }

    #[test]
    fn max_redelivery_count_counts_redeliveries() {
        let policy = FailurePolicy { max_redelivery_count: 2, ..FailurePolicy::default() };
        assert!(!policy.is_exhausted(1) && !policy.is_exhausted(2) && policy.is_exhausted(3));
        let none = FailurePolicy { max_redelivery_count: 0, ..policy };
        assert!(none.is_exhausted(1), "with 0 the first failure is terminal");
    }

    #[test]
    fn a_policy_that_cannot_work_is_refused() {
        let policy = FailurePolicy::default();
        assert!(policy.check().is_ok());
        let no_target = FailurePolicy { poison_policy: PoisonPolicy::DeadLetter, ..policy.clone() };
        assert!(no_target.check().is_err());
        assert!(FailurePolicy { ack_timeout_ms: 0, ..policy }.check().is_err());
    }

    #[test]
    fn every_value_says_where_it_comes_from() {
        use PolicySource::{Fallback, Intent, Override};
        let inherited = FailurePolicy { max_redelivery_count: 3, ..FailurePolicy::default() };
        let set = FailurePolicy { ack_timeout_ms: 7, ..inherited.clone() };
        let sources = set.sources(&inherited, true);
        assert_eq!(
            [sources.max_redelivery_count, sources.ack_timeout_ms, sources.backoff_strategy],
            [Intent, Override, Fallback]
        );
        let sources = set.sources(&inherited, false);
        assert_eq!([sources.max_redelivery_count, sources.poison_policy], [Fallback; 2]);
    }
}
