//! Says what a subscription does with failures.

use super::{Outcome, Stamp, TopicRef};
use crate::catalog::{Catalog, POLICIES_AHEAD_MAX};
use crate::fault::{Fault, FaultKind};
use crate::intent::{Delivery, PoisonPolicy};
use crate::name::{SubscriptionName, TopicName};
use crate::policy::FailurePolicy;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "set",
    "set on partitions",
    "set ahead",
    "unknown topic: not_found",
    "not reliable: precondition",
    "policy: invalid",
    "own dead letters: invalid",
    "no dead-letter topic: precondition",
    "dead letters partitioned: precondition",
    "dead letters not reliable: precondition",
    "too many ahead: exhausted",
];

/// Sets the failure policy of a subscription, on a topic or on all its partitions. A subscription
/// that does not exist yet will have it from its first day.
///
/// ```
/// # use danube_core::{FailurePolicy, FaultKind, SubscriptionName, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let set = SetFailurePolicy {
///     topic: TopicName::parse("/default/jobs")?,
///     subscription: SubscriptionName::parse("workers")?,
///     policy: FailurePolicy::default(),
/// };
/// let command = Command::new(set.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetFailurePolicy {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// The policy.
    pub policy: FailurePolicy,
}

impl SetFailurePolicy {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        self.policy.check()?;
        self.check_dead_letters(catalog, &partitions)?;
        let mut topics = Vec::with_capacity(partitions.len());
        for name in partitions {
            topics.push(self.set(catalog, name)?);
        }
        Ok(Outcome::FailurePolicySet { topics })
    }

    fn set(&self, catalog: &mut Catalog, name: TopicName) -> Result<TopicRef, Fault> {
        let topic = catalog.topic_mut(&name).expect("the catalog listed it");
        if topic.delivery == Delivery::NonReliable {
            return Err(Fault::precondition(format!(
                "topic `{name}` is NonReliable: nothing is delivered again there, so subscription \
                 `{}` can have no failure policy",
                self.subscription
            )));
        }
        let (subscription, policy) = (self.subscription.clone(), self.policy.clone());
        if let Some(existing) = topic.subscriptions.get_mut(&subscription) {
            existing.failure_policy = Some(policy);
        } else if topic.policies_ahead.contains_key(&subscription)
            || topic.policies_ahead.size() < POLICIES_AHEAD_MAX
        {
            topic.policies_ahead.insert_mut(subscription, policy);
        } else {
            return Err(Fault::new(
                FaultKind::Exhausted,
                format!(
                    "topic `{name}` has {POLICIES_AHEAD_MAX} failure policies for subscriptions \
                     that do not exist; create subscription `{subscription}` first"
                ),
            ));
        }
        Ok(TopicRef { name, id: topic.id })
    }

    fn check_dead_letters(&self, catalog: &Catalog, sources: &[TopicName]) -> Result<(), Fault> {
        let Some(target) = &self.policy.dead_letter_topic else { return Ok(()) };
        if self.policy.poison_policy != PoisonPolicy::DeadLetter {
            return Ok(());
        }
        if sources.contains(target) {
            return Err(Fault::invalid(format!(
                "topic `{target}` cannot be its own dead-letter topic; name another"
            )));
        }
        match catalog.topic(target) {
            Some(topic) if topic.delivery == Delivery::Reliable => Ok(()),
            Some(_) => Err(Fault::precondition(format!(
                "dead-letter topic `{target}` is NonReliable and would lose what is sent there; \
                 name a Reliable one"
            ))),
            None if !catalog.partitions(target).is_empty() => Err(Fault::precondition(format!(
                "dead-letter topic `{target}` has partitions; name a plain topic"
            ))),
            None => Err(Fault::precondition(format!(
                "dead-letter topic `{target}` does not exist; create it first"
            ))),
        }
    }
}
