//! Removes a subscription.

use super::{Outcome, Stamp, TopicRef};
use crate::catalog::Catalog;
use crate::fault::Fault;
use crate::name::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "deleted",
    "deleted on partitions",
    "unknown topic: not_found",
    "unknown subscription: not_found",
];

/// Removes a subscription with its failure policy, from a topic or from all its partitions that
/// have it.
///
/// ```
/// # use danube_core::{FaultKind, SubscriptionName, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let delete = DeleteSubscription {
///     topic: TopicName::parse("/default/jobs")?,
///     subscription: SubscriptionName::parse("workers")?,
/// };
/// let command = Command::new(delete.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteSubscription {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
}

impl DeleteSubscription {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        let mut deleted = Vec::new();
        for name in partitions {
            let topic = catalog.topic_mut(&name).expect("the catalog listed it");
            let id = topic.subscriptions.get(&self.subscription).map(|existing| existing.id);
            if let Some(id) = id {
                topic.subscriptions.remove_mut(&self.subscription);
                deleted.push((TopicRef { name, id: topic.id }, id));
            }
        }
        if deleted.is_empty() {
            return Err(Fault::not_found(format!(
                "topic `{}` has no subscription `{}`",
                self.topic, self.subscription
            )));
        }
        Ok(Outcome::SubscriptionDeleted { deleted })
    }
}
