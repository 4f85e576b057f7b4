//! Makes a subscription where there is none, and remembers a consumer of it.

use super::{Attachment, Outcome, Stamp};
use crate::catalog::{Catalog, Consumer, Map, Subscription, Topic};
use crate::fault::Fault;
use crate::ids::{Offset, TopicId};
use crate::name::{ConsumerName, SubscriptionName, TopicName};
use crate::policy::SubscriptionType;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "subscription created",
    "consumer added",
    "filters changed",
    "kind adopted",
    "unchanged",
    "unknown topic: not_found",
    "filters: invalid",
];

/// Key filters of one consumer.
pub const KEY_FILTERS_MAX: usize = 256;
/// Longest key filter, in bytes.
pub const KEY_FILTER_LEN_MAX: usize = 255;

/// Makes a subscription where there is none, which then inherits its failure policy, and remembers
/// that the consumer belongs to it.
///
/// A subscription of another kind takes the given one; whether that is allowed, because nobody is
/// connected, the broker knows and checks before it proposes. It may also ask
/// [`Topic::knows_consumer`] first and save the proposal.
///
/// ```
/// # use danube_core::{catalog::Catalog, change::*, name::ConsumerName};
/// # use danube_core::{FaultKind, Offset, SubscriptionName, SubscriptionType, TopicId, WallMs};
/// let attach = AttachConsumer {
///     topic: TopicId(1),
///     subscription: SubscriptionName::parse("workers")?,
///     kind: SubscriptionType::Shared,
///     start: Offset(0),
///     consumer: ConsumerName::parse("worker-1")?,
///     key_filters: vec![],
/// };
/// let command = Command::new(attach.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachConsumer {
    /// The topic or topic partition.
    pub topic: TopicId,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// Who receives a message.
    pub kind: SubscriptionType,
    /// The first offset that a new subscription is to see; an existing one stays where it is.
    pub start: Offset,
    /// The consumer.
    pub consumer: ConsumerName,
    /// Which keys the consumer wants; none means all.
    pub key_filters: Vec<String>,
}

impl AttachConsumer {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let Some((name, _)) = catalog.topic_by_id(self.topic) else {
            return Err(Fault::not_found(format!(
                "consumer `{}` cannot attach: topic number {} does not exist; it was deleted",
                self.consumer, self.topic
            )));
        };
        let name = name.clone();
        self.check_filters(&name)?;
        let topic = catalog.topic_mut(&name).expect("it was found by its number");
        let known =
            topic.knows_consumer(&self.subscription, self.kind, &self.consumer, &self.key_filters);
        let attachment = match topic.subscriptions.contains_key(&self.subscription) {
            true if known => Attachment::Unchanged,
            true => Attachment::Updated,
            false => {
                self.create(topic, &name, stamp)?;
                Attachment::SubscriptionCreated
            }
        };
        let subscription =
            topic.subscriptions.get_mut(&self.subscription).expect("there or just made");
        if !known {
            subscription.kind = self.kind;
            let key_filters = self.key_filters.clone();
            let consumer = Consumer { key_filters, attached_at: stamp.at };
            subscription.remember(self.consumer.clone(), consumer);
        }
        Ok(Outcome::ConsumerAttached { subscription: subscription.id, attachment })
    }

    fn create(&self, topic: &mut Topic, name: &TopicName, stamp: Stamp) -> Result<(), Fault> {
        let failure_policy = topic.inherited_policy(name, &self.subscription);
        topic.policies_ahead.remove_mut(&self.subscription);
        let subscription = Subscription {
            id: topic.take_subscription_id()?,
            kind: self.kind,
            start: self.start,
            created_at: stamp.at,
            failure_policy,
            max_unacked_messages: None,
            consumers: Map::new_sync(),
        };
        topic.subscriptions.insert_mut(self.subscription.clone(), subscription);
        Ok(())
    }

    fn check_filters(&self, topic: &TopicName) -> Result<(), Fault> {
        let refuse = |why: String| {
            Err(Fault::invalid(format!(
                "consumer `{}` cannot attach to topic `{topic}`: {why}",
                self.consumer
            )))
        };
        if self.key_filters.len() > KEY_FILTERS_MAX {
            let count = self.key_filters.len();
            return refuse(format!("`{count}` key filters; at most {KEY_FILTERS_MAX} are allowed"));
        }
        match self.key_filters.iter().find(|filter| filter.len() > KEY_FILTER_LEN_MAX) {
            None => Ok(()),
            Some(filter) => refuse(format!(
                "a key filter has {} bytes; at most {KEY_FILTER_LEN_MAX} are allowed",
                filter.len()
            )),
        }
    }
}
