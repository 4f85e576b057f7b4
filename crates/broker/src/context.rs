//! What all parts of one broker share: its options, clocks, catalog, log, counters.
//!
//! Law: nothing in here is locked across an await, and nothing in here belongs to a single topic.

use crate::admin::{Ages, Applying, Replays};
use crate::broker::Addresses;
use crate::clock::Clock;
use crate::metrics::{Figures, Metrics, Process};
use crate::options::BrokerOptions;
use crate::schema::Schemas;
use crate::topics::Topics;
use crate::traces::Traces;
use danube_core::catalog::{Catalog, Topic};
use danube_core::settings::{BrokerDefaults, TopicSettings};
use danube_core::{Incarnation, TopicName, WallMs};
use danube_meta::Meta;
use danube_store::Store;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Bytes of publishes that may wait for their answer at a time, over all topics.
pub(crate) const PUBLISH_BYTES_MAX: usize = 64 << 20;
/// How long a call waits for a topic before it answers "try again". Official clients set no
/// deadline of their own, so every call must end by itself.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// This broker's number, as the catalog and `describe` have it. Standalone is a cluster of one.
pub(crate) const BROKER_ID: u64 = 1;

/// What all parts of one broker share.
pub(crate) struct Context {
    pub(crate) options: BrokerOptions,
    pub(crate) clock: Clock,
    pub(crate) meta: Meta,
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    pub(crate) incarnation: Incarnation,
    pub(crate) topics: Topics,
    pub(crate) replays: Replays,
    pub(crate) applying: Applying,
    /// How old the messages are that overviews looked at.
    pub(crate) ages: Ages,
    /// When this broker started.
    pub(crate) started_at: WallMs,
    /// What topics inherit of the options.
    pub(crate) defaults: BrokerDefaults,
    pub(crate) schemas: Schemas,
    /// One permit per byte of a publish on its way.
    pub(crate) publish_memory: Arc<Semaphore>,
    /// Cancelled when the broker begins to stop: streams end by themselves then.
    pub(crate) stopping: CancellationToken,
    bound: OnceLock<Bound>,
}

/// What is known once the listeners are bound.
struct Bound {
    addresses: Addresses,
    broker_url: String,
}

impl Context {
    pub(crate) fn new(
        options: BrokerOptions,
        meta: Meta,
        store: Store,
        incarnation: Incarnation,
    ) -> Context {
        Context {
            defaults: options.defaults(),
            metrics: Metrics::new(&options.metrics),
            traces: Traces::new(options.tracer.clone()),
            options,
            clock: Clock::start(),
            meta,
            store,
            incarnation,
            topics: Topics::default(),
            replays: Replays::default(),
            applying: Applying::default(),
            ages: Ages::default(),
            started_at: Clock::wall(),
            schemas: Schemas::default(),
            publish_memory: Arc::new(Semaphore::new(PUBLISH_BYTES_MAX)),
            stopping: CancellationToken::new(),
            bound: OnceLock::new(),
        }
    }

    /// Sets the addresses; once, when the listeners are bound and before anybody connects.
    pub(crate) fn set_addresses(&self, addresses: Addresses, broker_url: String) {
        let first = self.bound.set(Bound { addresses, broker_url });
        assert!(first.is_ok(), "the listeners are bound once");
    }

    /// What holds for a topic, with all layers resolved.
    pub(crate) fn settings(
        &self,
        catalog: &Catalog,
        name: &TopicName,
        topic: &Topic,
    ) -> TopicSettings {
        TopicSettings::resolve(catalog, name, topic, &self.defaults)
    }

    /// Everything counted, as OpenMetrics text.
    pub(crate) fn scrape(&self) -> String {
        let figures = Figures {
            topics_owned: self.meta.view().topics().count() as u64,
            topics_loaded: self.topics.len() as u64,
            store: self.store.stats(),
            meta: self.meta.stats(),
            process: Process::read(),
            ..Figures::default()
        };
        self.metrics.render(figures, self.clock.elapsed(), Clock::wall())
    }

    fn bound(&self) -> &Bound {
        self.bound.get().expect("set before anything is served")
    }

    /// Where this broker listens.
    pub(crate) fn addresses(&self) -> Addresses {
        self.bound().addresses
    }

    /// The address that clients are told: with scheme, without trailing slash.
    pub(crate) fn broker_url(&self) -> &str {
        &self.bound().broker_url
    }
}
