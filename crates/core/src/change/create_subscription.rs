//! Makes a subscription before its first consumer.

use super::{Outcome, Stamp, TopicRef};
use crate::catalog::{Catalog, Map, Subscription};
use crate::fault::Fault;
use crate::ids::Offset;
use crate::intent::Delivery;
use crate::name::{SubscriptionName, TopicName};
use crate::policy::SubscriptionType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "created",
    "created on partitions",
    "type set",
    "unchanged",
    "unknown topic: not_found",
    "not reliable: precondition",
];

/// Makes a subscription of a topic, or of all its partitions; it inherits its failure policy. One
/// that exists takes the given type; whether that is allowed, because nobody is connected, the
/// broker knows and checks before it proposes.
///
/// ```
/// # use danube_core::{FaultKind, SubscriptionName, SubscriptionType, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let create = CreateSubscription {
///     topic: TopicName::parse("/default/jobs")?,
///     subscription: SubscriptionName::parse("workers")?,
///     kind: SubscriptionType::Shared,
///     starts: Default::default(),
/// };
/// let command = Command::new(create.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSubscription {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// Who receives a message.
    pub kind: SubscriptionType,
    /// The first offset it is to see, by topic partition; 0 where none is given.
    pub starts: BTreeMap<TopicName, Offset>,
}

impl CreateSubscription {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        let mut topics = Vec::new();
        for name in partitions {
            let topic = catalog.topic_mut(&name).expect("the catalog listed it");
            if topic.delivery == Delivery::NonReliable {
                return Err(Fault::precondition(format!(
                    "topic `{name}` is NonReliable: a subscription of it exists only while somebody \
                     listens, so it cannot be made ahead"
                )));
            }
            if let Some(known) = topic.subscriptions.get_mut(&self.subscription) {
                known.kind = self.kind;
                continue;
            }
            let subscription = Subscription {
                id: topic.take_subscription_id()?,
                kind: self.kind,
                start: self.starts.get(&name).copied().unwrap_or(Offset(0)),
                created_at: stamp.at,
                failure_policy: topic.inherited_policy(&name, &self.subscription),
                max_unacked_messages: None,
                consumers: Map::new_sync(),
            };
            topic.policies_ahead.remove_mut(&self.subscription);
            topic.subscriptions.insert_mut(self.subscription.clone(), subscription);
            topics.push(TopicRef { id: topic.id, name });
        }
        Ok(Outcome::SubscriptionCreated { topics })
    }
}
