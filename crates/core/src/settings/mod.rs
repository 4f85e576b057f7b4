//! The settings that hold for a topic, each with where it comes from.
//!
//! Four layers: the broker's default, the policies of the namespace, the intent, and what somebody
//! set for the topic itself; the last one that speaks wins. Who asks for messages, acks, limits or
//! retention asks here, and `explain` prints the same values, so the two cannot differ.
//!
//! Law: a setting is resolved from the catalog and the broker's defaults alone, the same way for
//! whoever asks.

mod explain;
mod limits;
#[cfg(test)]
mod tests;

pub use explain::{Explained, Explanation, explain};
pub use limits::{LIMITS, Limit, Limits};

use crate::catalog::{Catalog, Topic};
use crate::intent::{Delivery, WalSyncMode};
use crate::name::TopicName;
use crate::retention::Retention;

/// Which layer a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything: the broker's configuration, or what the product does by itself.
    BrokerDefault,
    /// The policies of the topic's namespace.
    NamespacePolicy,
    /// The intent that the topic was made with.
    Intent,
    /// Somebody set it for this topic or subscription.
    Override,
}

impl Origin {
    /// The word that people and programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::BrokerDefault => "broker default",
            Origin::NamespacePolicy => "namespace policy",
            Origin::Intent => "intent",
            Origin::Override => "override",
        }
    }
}

/// A value and the layer it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<T> {
    /// What holds.
    pub value: T,
    /// Who says so.
    pub origin: Origin,
}

impl<T> Setting<T> {
    fn new(value: T, origin: Origin) -> Setting<T> {
        Setting { value, origin }
    }
}

/// What the broker was started with, as far as topics inherit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerDefaults {
    /// Its limits; one that is missing is no limit.
    pub limits: Limits,
    /// Deliveries of one subscription that may be unsettled.
    pub max_unacked_messages: u32,
    /// The same once a native client has consumed from it.
    pub max_unacked_messages_native: u32,
}

/// Everything that holds for one topic partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// How messages travel.
    pub delivery: Setting<Delivery>,
    /// What an acknowledged publish, and an acknowledged ack, survive.
    pub wal_sync_mode: Setting<WalSyncMode>,
    /// Age from which on messages may go, in milliseconds; 0 is for ever.
    pub retention_time_ms: Setting<u64>,
    /// Size above which the oldest messages may go, in bytes; 0 is no limit.
    pub retention_bytes: Setting<u64>,
    /// Whether messages that every subscription has finished may go at once.
    pub drop_finished: Setting<bool>,
    limits: [Setting<u32>; LIMITS.len()],
}

impl TopicSettings {
    /// Resolves the layers for the topic `name`.
    pub fn resolve(
        catalog: &Catalog,
        name: &TopicName,
        topic: &Topic,
        broker: &BrokerDefaults,
    ) -> TopicSettings {
        use Origin::{BrokerDefault, Intent, NamespacePolicy, Override};
        let profile = if topic.settings.is_some() { Intent } else { BrokerDefault };
        let own = &topic.overrides;
        let layered = |own: Option<u64>, given: Option<u64>| match own {
            Some(value) => Setting::new(value, Override),
            None => Setting::new(given.unwrap_or(0), profile),
        };
        let keeps = Retention::by_default(name, topic.settings.as_ref());
        let namespace = catalog.namespace(&name.namespace()).map(|known| &known.policies);
        let limit = |limit: Limit| {
            let of_namespace = || namespace.and_then(|policies| policies.get(limit));
            match (own.limits.get(limit), of_namespace()) {
                (Some(value), _) => Setting::new(value, Override),
                (None, Some(value)) => Setting::new(value, NamespacePolicy),
                (None, None) => Setting::new(broker.limits.get(limit).unwrap_or(0), BrokerDefault),
            }
        };
        TopicSettings {
            delivery: Setting::new(
                topic.delivery,
                if profile == Intent { Intent } else { Override },
            ),
            wal_sync_mode: match own.wal_sync_mode {
                Some(mode) => Setting::new(mode, Override),
                None => Setting::new(topic.wal_sync_mode(), profile),
            },
            retention_time_ms: layered(own.retention_time_ms, keeps.time_ms),
            retention_bytes: layered(own.retention_bytes, keeps.bytes),
            drop_finished: Setting::new(keeps.drop_finished, profile),
            limits: LIMITS.map(limit),
        }
    }

    /// One of the limits; 0 is no limit.
    pub fn limit(&self, limit: Limit) -> Setting<u32> {
        self.limits[limit as usize]
    }

    /// What the log keeps.
    pub fn retention(&self) -> Retention {
        let limited = |value: u64| (value > 0).then_some(value);
        Retention {
            time_ms: limited(self.retention_time_ms.value),
            bytes: limited(self.retention_bytes.value),
            drop_finished: self.drop_finished.value,
            past_unfinished: false,
        }
    }
}
