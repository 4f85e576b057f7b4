//! One layer of the configuration: every key, each of them optional.
//!
//! The same type reads the YAML file, a `DANUBE_*` variable and a flag, so a key exists in all of
//! them or in none. It checks no value; that is done once, on the merged result.

use danube_broker::BrokerOptions;
use figment::value::{Dict, Map};
use figment::{Metadata, Profile, Provider};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The keys of the configuration file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a mapping of keys to values")]
pub struct Layer {
    /// `standalone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Where everything is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// Where the log is kept, if not in the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wal_dir: Option<PathBuf>,
    /// Where clients connect, `address:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_addr: Option<String>,
    /// Where `danube ctl` connects, `address:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_addr: Option<String>,
    /// Where the console, `/healthz`, `/readyz` and `/metrics` are, `address:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_addr: Option<String>,
    /// What clients are told to connect to, `host:port`, if not the broker address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertised_addr: Option<String>,
    /// Whether a producer on an unknown topic creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_create_topics: Option<bool>,
    /// Namespaces that exist from the first start on, besides `default` and `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_namespaces: Option<Vec<String>>,
    /// `on`, `read-only`, `off`, or `auto`: `on` where only this machine reaches the HTTP address,
    /// else `read-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// `text` or `json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<String>,
    /// What is logged: a level, or directives such as `info,danube_broker=debug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// Where traces go, `http://host:4317`; none are made without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// How messages are handed to consumers.
    pub dispatch: DispatchLayer,
    /// How the log is kept.
    pub storage: StorageLayer,
    /// What clients may use; 0 is no limit.
    pub policies: PoliciesLayer,
    /// What `/metrics` shows.
    pub metrics: MetricsLayer,
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, expecting = "a mapping of keys to values")]
        pub struct $name {
            $($(#[$field_doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,)+
        }
    };
}

section! {
    /// Section `dispatch`.
    DispatchLayer {
        /// Messages a consumer may hold without an ack, 1 to 10,000.
        max_unacked_messages: u32,
    }
}
section! {
    /// Section `storage`.
    StorageLayer {
        /// Longest time that writes wait for others to share a sync with, in milliseconds.
        flush_interval_ms: u64,
        /// Largest group written at once, in bytes.
        flush_max_batch_bytes: u64,
        /// Longest time that what was acknowledged without a sync stays so, in milliseconds.
        sync_interval_ms: u64,
        /// Size of one journal file, in bytes.
        journal_file_bytes: u64,
        /// Memory for recent messages of all topics, in bytes.
        cache_bytes: u64,
    }
}
section! {
    /// Section `policies`.
    PoliciesLayer {
        /// Largest message, in bytes.
        max_message_size: u64,
        /// Producers of one topic.
        max_producers_per_topic: u32,
        /// Subscriptions of one topic.
        max_subscriptions_per_topic: u32,
        /// Consumers of one topic.
        max_consumers_per_topic: u32,
        /// Consumers of one subscription.
        max_consumers_per_subscription: u32,
        /// Messages that one topic partition takes, per second.
        max_publish_rate: u32,
        /// Messages that one subscription hands out, per second.
        max_subscription_dispatch_rate: u32,
    }
}

section! {
    /// Section `metrics`.
    MetricsLayer {
        /// Topics with series of their own.
        topics_max: u32,
        /// Subscriptions with series of their own.
        subscriptions_max: u32,
    }
}

/// A layer and the name of where it came from, as errors print it.
#[derive(Debug)]
pub struct Source {
    name: String,
    layer: Layer,
}

impl Source {
    /// A source called `name`, such as ``config file `danube.yml` ``.
    pub fn new(name: impl Into<String>, layer: Layer) -> Source {
        Source { name: name.into(), layer }
    }

    /// A source that sets one key.
    pub fn single(name: impl Into<String>, set: impl FnOnce(&mut Layer)) -> Source {
        let mut layer = Layer::default();
        set(&mut layer);
        Source::new(name, layer)
    }

    /// What holds where nobody says anything.
    pub fn defaults(options: &BrokerOptions) -> Source {
        let policies = &options.policies;
        let storage = &options.storage;
        let layer = Layer {
            mode: Some("standalone".into()),
            data_dir: Some(options.data_dir.clone()),
            wal_dir: options.wal_dir.clone(),
            broker_addr: Some(options.broker_addr.to_string()),
            admin_addr: Some(options.admin_addr.to_string()),
            http_addr: Some(options.http_addr.to_string()),
            advertised_addr: options.advertised_addr.clone(),
            auto_create_topics: Some(options.auto_create_topics),
            bootstrap_namespaces: Some(options.bootstrap_namespaces.clone()),
            console: Some("auto".into()),
            log_format: Some("text".into()),
            log_level: None,
            otlp_endpoint: None,
            dispatch: DispatchLayer {
                max_unacked_messages: Some(options.dispatch.max_unacked_messages),
            },
            storage: StorageLayer {
                flush_interval_ms: Some(storage.flush_interval_ms),
                flush_max_batch_bytes: Some(storage.flush_max_batch_bytes),
                sync_interval_ms: Some(storage.sync_interval_ms),
                journal_file_bytes: Some(storage.journal_file_bytes),
                cache_bytes: Some(storage.cache_bytes),
            },
            policies: PoliciesLayer {
                max_message_size: Some(policies.max_message_size),
                max_producers_per_topic: Some(policies.max_producers_per_topic),
                max_subscriptions_per_topic: Some(policies.max_subscriptions_per_topic),
                max_consumers_per_topic: Some(policies.max_consumers_per_topic),
                max_consumers_per_subscription: Some(policies.max_consumers_per_subscription),
                max_publish_rate: Some(policies.max_publish_rate),
                max_subscription_dispatch_rate: Some(policies.max_subscription_dispatch_rate),
            },
            metrics: MetricsLayer {
                topics_max: Some(options.metrics.topics_max),
                subscriptions_max: Some(options.metrics.subscriptions_max),
            },
        };
        Source::new("default", layer)
    }
}

impl Provider for Source {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        figment::providers::Serialized::defaults(&self.layer).data()
    }
}
