//! A namespace and the limits of its topics.
//!
//! The names of the limits are those of the product's admin interface. Who enforces them is the
//! broker. Law: 0 means no limit.

use crate::ids::WallMs;
use serde::{Deserialize, Serialize};

/// Where topics live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// When it was made; 0 for the namespaces that were always there.
    pub created_at: WallMs,
    /// The limits of its topics.
    pub policies: NamespacePolicies,
}

impl Namespace {
    /// A namespace with the default limits.
    pub fn new(created_at: WallMs) -> Namespace {
        Namespace { created_at, policies: NamespacePolicies::default() }
    }
}

/// The document at `/namespaces/{ns}/policy`. 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamespacePolicies {
    /// Producers on one topic partition.
    pub max_producers_per_topic: u32,
    /// Subscriptions of one topic partition.
    pub max_subscriptions_per_topic: u32,
    /// Consumers on one topic partition, over all subscriptions.
    pub max_consumers_per_topic: u32,
    /// Consumers of one subscription.
    pub max_consumers_per_subscription: u32,
    /// Messages that one topic partition takes, per second.
    pub max_publish_rate: u32,
    /// Messages that one subscription hands out, per second.
    pub max_subscription_dispatch_rate: u32,
    /// Largest message, in bytes.
    pub max_message_size: u32,
}

impl Default for NamespacePolicies {
    /// No limits but the size of a message: 10 MiB.
    fn default() -> NamespacePolicies {
        NamespacePolicies {
            max_producers_per_topic: 0,
            max_subscriptions_per_topic: 0,
            max_consumers_per_topic: 0,
            max_consumers_per_subscription: 0,
            max_publish_rate: 0,
            max_subscription_dispatch_rate: 0,
            max_message_size: 10 << 20,
        }
    }
}
