//! What `describe` and the metrics tell of a topic: plain values, made by the actor on request.

use danube_core::name::ConsumerName;
use danube_core::subscription::Failing;
use danube_core::{ConsumerId, Offset, SubscriptionName, SubscriptionType};

/// A topic partition as it stands.
#[derive(Debug, Clone)]
pub(crate) struct TopicDescription {
    /// First offset that can still be read.
    pub(crate) start: Offset,
    /// Offset of the next message.
    pub(crate) next: Offset,
    pub(crate) subscriptions: Vec<SubscriptionDescription>,
}

/// A subscription as it stands.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionDescription {
    pub(crate) name: SubscriptionName,
    pub(crate) kind: SubscriptionType,
    /// First unfinished offset.
    pub(crate) cursor: Offset,
    /// Unfinished messages.
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    pub(crate) waiting_redelivery: u64,
    pub(crate) blocked: u64,
    pub(crate) consumers: Vec<ConsumerDescription>,
    /// Deliveries that may be unsettled at a time; 0 where there is no such bound.
    pub(crate) window_max: u32,
    /// Messages skipped because nobody's key filter takes them.
    pub(crate) unmatched: u64,
    /// Messages dropped since the topic was loaded.
    pub(crate) dropped: u64,
    /// The first reason why nothing moves, in words.
    pub(crate) why: String,
    /// The same as a word; empty where nothing is kept.
    pub(crate) why_code: &'static str,
    /// Messages that failed and are not finished, those that block first; some of them.
    pub(crate) failing: Vec<Failing>,
}

/// A consumer as it stands.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerDescription {
    pub(crate) id: ConsumerId,
    pub(crate) name: ConsumerName,
    /// Whether it has an open stream.
    pub(crate) connected: bool,
    pub(crate) in_flight: u64,
    pub(crate) key_filters: Vec<String>,
}
