//! Limits of a topic: their names, and a set of them as one layer has it.
//!
//! The names are those of the product's admin interface and of its configuration. Who enforces
//! them is the broker. Law: 0 means no limit, and a limit that a set does not name is left to the
//! layer below.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Producers on one topic partition.
    MaxProducersPerTopic,
    /// Subscriptions of one topic partition.
    MaxSubscriptionsPerTopic,
    /// Consumers on one topic partition, over all subscriptions.
    MaxConsumersPerTopic,
    /// Consumers of one subscription.
    MaxConsumersPerSubscription,
    /// Messages that one topic partition takes, per second.
    MaxPublishRate,
    /// Messages that one subscription hands out, per second.
    MaxSubscriptionDispatchRate,
    /// Largest message, in bytes.
    MaxMessageSize,
}

/// All of them, in the order of their numbers.
pub const LIMITS: [Limit; 7] = [
    Limit::MaxProducersPerTopic,
    Limit::MaxSubscriptionsPerTopic,
    Limit::MaxConsumersPerTopic,
    Limit::MaxConsumersPerSubscription,
    Limit::MaxPublishRate,
    Limit::MaxSubscriptionDispatchRate,
    Limit::MaxMessageSize,
];

impl Limit {
    /// The stored spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Limit::MaxProducersPerTopic => "max_producers_per_topic",
            Limit::MaxSubscriptionsPerTopic => "max_subscriptions_per_topic",
            Limit::MaxConsumersPerTopic => "max_consumers_per_topic",
            Limit::MaxConsumersPerSubscription => "max_consumers_per_subscription",
            Limit::MaxPublishRate => "max_publish_rate",
            Limit::MaxSubscriptionDispatchRate => "max_subscription_dispatch_rate",
            Limit::MaxMessageSize => "max_message_size",
        }
    }

    /// What it counts, for people.
    pub fn unit(self) -> &'static str {
        match self {
            Limit::MaxPublishRate | Limit::MaxSubscriptionDispatchRate => "messages per second",
            Limit::MaxMessageSize => "bytes",
            _ => "",
        }
    }

    /// Parses a name; `-` equals `_`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), listing the names.
    pub fn parse(text: &str) -> Result<Limit, Fault> {
        let wanted = text.to_ascii_lowercase().replace('-', "_");
        LIMITS.into_iter().find(|limit| limit.as_str() == wanted).ok_or_else(|| {
            Fault::invalid(format!(
                "unknown limit `{}`; known are {}",
                text.escape_debug(),
                LIMITS.map(Limit::as_str).join(", ")
            ))
        })
    }
}

/// The limits that one layer sets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(BTreeMap<Limit, u32>);

impl Limits {
    /// What this layer says about `limit`; `None` when it leaves it to the layer below.
    pub fn get(&self, limit: Limit) -> Option<u32> {
        self.0.get(&limit).copied()
    }

    /// Sets one; `None` leaves it to the layer below.
    pub fn set(&mut self, limit: Limit, value: Option<u32>) {
        match value {
            Some(value) => drop(self.0.insert(limit, value)),
            None => drop(self.0.remove(&limit)),
        }
    }

    /// Those that are set, in the order of [`LIMITS`].
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u32)> {
        self.0.iter().map(|(limit, value)| (*limit, *value))
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that they can work.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid) for a message size of 0, which would be none.
    pub fn check(&self) -> Result<(), Fault> {
        match self.get(Limit::MaxMessageSize) {
            Some(0) => Err(Fault::invalid(
                "max_message_size is 0, so no message could be published; give bytes",
            )),
            _ => Ok(()),
        }
    }
}

impl FromIterator<(Limit, u32)> for Limits {
    fn from_iter<I: IntoIterator<Item = (Limit, u32)>>(limits: I) -> Limits {
        Limits(limits.into_iter().collect())
    }
}
