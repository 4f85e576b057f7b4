//! What a broker is started with.
//!
//! Every field has a default that serves a laptop well; the binary layers file, environment and
//! flags over them. Law: nothing here is read while the broker runs, so no two topics can see
//! different settings.

use danube_core::settings::{BrokerDefaults, Limit};
use opentelemetry::global::BoxedTracer;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// All settings of one broker.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    /// Where everything lives: the catalog in `raft/`, the journal in `wal/`.
    pub data_dir: PathBuf,
    /// Where the journal lives instead of `<data_dir>/wal`.
    pub wal_dir: Option<PathBuf>,
    /// Where clients connect (gRPC). Port 0 takes a free one.
    pub broker_addr: SocketAddr,
    /// Where administrators connect (gRPC). Port 0 takes a free one.
    pub admin_addr: SocketAddr,
    /// Where people and Prometheus connect (HTTP). Port 0 takes a free one.
    pub http_addr: SocketAddr,
    /// `host:port` under which clients reach `broker_addr` from where they are; the bound address
    /// when not given.
    pub advertised_addr: Option<String>,
    /// Whether the first producer of an unknown topic creates it.
    pub auto_create_topics: bool,
    /// Namespaces made at start besides `default` and `system`.
    pub bootstrap_namespaces: Vec<String>,
    /// How subscriptions deliver.
    pub dispatch: DispatchOptions,
    /// How the journal writes.
    pub storage: StorageOptions,
    /// Limits.
    pub policies: Policies,
    /// What `/metrics` shows.
    pub metrics: MetricsOptions,
    /// Where spans are made of messages that belong to a recorded trace; `None` makes none.
    pub tracer: Option<Arc<BoxedTracer>>,
}

/// Window of a subscription unless somebody says otherwise, while no native consumer has opened it.
const WINDOW: u32 = 64;
/// The same once one has: a native client says itself how much it takes, so the window need not.
const NATIVE_WINDOW: u32 = 2_048;

/// How subscriptions deliver.
#[derive(Debug, Clone)]
pub struct DispatchOptions {
    /// Deliveries of one subscription that may be unacknowledged at a time, 1 to 10,000.
    pub max_unacked_messages: u32,
}

/// How the journal writes.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Longest time that writes which are not alone wait for more to come with them, in
    /// milliseconds. 0: what comes while a group is written is the next one, and none waits.
    pub flush_interval_ms: u64,
    /// Most bytes of one group commit.
    pub flush_max_batch_bytes: u64,
    /// Longest time that what was acknowledged before a sync stays without one, in milliseconds:
    /// what a power loss may take of `async` and `os_cache_flush` topics. 0 leaves it to the
    /// operating system.
    pub sync_interval_ms: u64,
    /// Size at which a journal file is closed and the next one begun, in bytes.
    pub journal_file_bytes: u64,
    /// Memory for recent messages of all topics together, in bytes.
    pub cache_bytes: u64,
}

/// What `/metrics` shows. The others are summed in one series.
#[derive(Debug, Clone)]
pub struct MetricsOptions {
    /// Topics with series of their own.
    pub topics_max: u32,
    /// Subscriptions with series of their own.
    pub subscriptions_max: u32,
}

/// Limits per topic; 0 means unlimited.
#[derive(Debug, Clone)]
pub struct Policies {
    /// Largest message, in bytes. What official clients can receive (4 MiB less 64 KiB) caps it.
    pub max_message_size: u64,
    /// Producers of one topic.
    pub max_producers_per_topic: u32,
    /// Subscriptions of one topic.
    pub max_subscriptions_per_topic: u32,
    /// Consumers of one topic, over all its subscriptions.
    pub max_consumers_per_topic: u32,
    /// Consumers of one subscription.
    pub max_consumers_per_subscription: u32,
    /// Messages that one topic partition takes, per second.
    pub max_publish_rate: u32,
    /// Messages that one subscription hands out, per second.
    pub max_subscription_dispatch_rate: u32,
}

impl BrokerOptions {
    /// What topics inherit where nobody sets anything.
    pub(crate) fn defaults(&self) -> BrokerDefaults {
        let policies = &self.policies;
        let limits = [
            (Limit::MaxProducersPerTopic, policies.max_producers_per_topic),
            (Limit::MaxSubscriptionsPerTopic, policies.max_subscriptions_per_topic),
            (Limit::MaxConsumersPerTopic, policies.max_consumers_per_topic),
            (Limit::MaxConsumersPerSubscription, policies.max_consumers_per_subscription),
            (Limit::MaxPublishRate, policies.max_publish_rate),
            (Limit::MaxSubscriptionDispatchRate, policies.max_subscription_dispatch_rate),
            (Limit::MaxMessageSize, u32::try_from(policies.max_message_size).unwrap_or(u32::MAX)),
        ];
        BrokerDefaults {
            limits: limits.into_iter().collect(),
            max_unacked_messages: self.dispatch.max_unacked_messages,
            max_unacked_messages_native: self.dispatch.native_window(),
        }
    }
}

impl Default for BrokerOptions {
    fn default() -> BrokerOptions {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        BrokerOptions {
            data_dir: PathBuf::from("./danube-data"),
            wal_dir: None,
            broker_addr: local(6650),
            admin_addr: local(50051),
            http_addr: local(8080),
            advertised_addr: None,
            auto_create_topics: true,
            bootstrap_namespaces: Vec::new(),
            dispatch: DispatchOptions::default(),
            storage: StorageOptions::default(),
            policies: Policies::default(),
            metrics: MetricsOptions::default(),
            tracer: None,
        }
    }
}

impl DispatchOptions {
    /// The window of a subscription that has none of its own and a native consumer.
    pub(crate) fn native_window(&self) -> u32 {
        match self.max_unacked_messages {
            WINDOW => NATIVE_WINDOW,
            configured => configured,
        }
    }
}

impl Default for DispatchOptions {
    fn default() -> DispatchOptions {
        DispatchOptions { max_unacked_messages: WINDOW }
    }
}

impl Default for StorageOptions {
    fn default() -> StorageOptions {
        StorageOptions {
            flush_interval_ms: 0,
            flush_max_batch_bytes: 1 << 20,
            sync_interval_ms: 1000,
            journal_file_bytes: 64 << 20,
            cache_bytes: 32 << 20,
        }
    }
}

impl Default for MetricsOptions {
    fn default() -> MetricsOptions {
        MetricsOptions { topics_max: 100, subscriptions_max: 200 }
    }
}

impl Default for Policies {
    fn default() -> Policies {
        Policies {
            max_message_size: 10 << 20,
            max_producers_per_topic: 0,
            max_subscriptions_per_topic: 0,
            max_consumers_per_topic: 0,
            max_consumers_per_subscription: 0,
            max_publish_rate: 0,
            max_subscription_dispatch_rate: 0,
        }
    }
}
