//! Says how many deliveries of a subscription may be unsettled at a time.

use super::{Outcome, Stamp, TopicRef};
use crate::catalog::Catalog;
use crate::fault::Fault;
use crate::intent::Delivery;
use crate::name::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "set",
    "set on partitions",
    "unknown topic: not_found",
    "unknown subscription: not_found",
    "not reliable: precondition",
    "window: invalid",
];

/// Most deliveries of one subscription that may be unsettled at a time.
pub const UNACKED_MESSAGES_MAX: u32 = 10_000;

/// Sets the window of a subscription, on a topic or on all its partitions that have it.
///
/// ```
/// # use danube_core::{FaultKind, SubscriptionName, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let set = SetDispatchConfig {
///     topic: TopicName::parse("/default/jobs")?,
///     subscription: SubscriptionName::parse("workers")?,
///     max_unacked_messages: 256,
/// };
/// let command = Command::new(set.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetDispatchConfig {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// Deliveries that may be unsettled at a time, 1 to [`UNACKED_MESSAGES_MAX`].
    pub max_unacked_messages: u32,
}

impl SetDispatchConfig {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        if !(1..=UNACKED_MESSAGES_MAX).contains(&self.max_unacked_messages) {
            return Err(Fault::invalid(format!(
                "max_unacked_messages of subscription `{}` on `{}` cannot be `{}`; give 1 to \
                 {UNACKED_MESSAGES_MAX}",
                self.subscription, self.topic, self.max_unacked_messages
            )));
        }
        let mut topics = Vec::new();
        for name in partitions {
            let topic = catalog.topic_mut(&name).expect("the catalog listed it");
            if topic.delivery == Delivery::NonReliable {
                return Err(Fault::precondition(format!(
                    "topic `{name}` is NonReliable: nothing waits for an ack there, so subscription \
                     `{}` can have no max_unacked_messages",
                    self.subscription
                )));
            }
            if let Some(existing) = topic.subscriptions.get_mut(&self.subscription) {
                existing.max_unacked_messages = Some(self.max_unacked_messages);
                topics.push(TopicRef { name, id: topic.id });
            }
        }
        if topics.is_empty() {
            return Err(Fault::not_found(format!(
                "topic `{}` has no subscription `{}`; it can be set once its first consumer came",
                self.topic, self.subscription
            )));
        }
        Ok(Outcome::DispatchConfigSet { topics })
    }
}
