//! What the broker counts, under the names its dashboards know.
//!
//! Handles for a topic or subscription are looked up once, when it is loaded, so that counting a
//! message is one atomic addition. Each broker has a registry of its own: two of them in one
//! process (as in tests) do not mix.

use danube_core::subscription::{Note, Stats};
use danube_core::{SubscriptionName, TopicName, ValidationPolicy};
use danube_store::StoreStats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::OnceLock;
use std::time::Duration;

/// Labels of a topic's metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TopicLabels {
    topic: String,
}

/// Labels of a subscription's metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SubscriptionLabels {
    topic: String,
    subscription: String,
}

/// Labels of a call's metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    service: &'static str,
    method: &'static str,
    result: &'static str,
}

/// Labels of what is counted when a message meets its topic's schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    topic: String,
    policy: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MisfitLabels {
    topic: String,
    reason: &'static str,
}

/// Buckets from a tenth of a millisecond to about three seconds.
#[derive(Clone)]
struct LatencyBuckets;

impl MetricConstructor<Histogram> for LatencyBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(0.1, 2.0, 16))
    }
}

type PerTopic<M> = Family<TopicLabels, M>;
type PerSubscription<M> = Family<SubscriptionLabels, M>;

/// All families of one broker.
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    topics_owned: Gauge,
    messages_in: PerTopic<Counter>,
    bytes_in: PerTopic<Counter>,
    producers: PerTopic<Gauge>,
    consumers: PerTopic<Gauge>,
    subscriptions: PerTopic<Gauge>,
    send_latency_ms: Family<TopicLabels, Histogram, LatencyBuckets>,
    messages_out: PerSubscription<Counter>,
    bytes_out: PerSubscription<Counter>,
    active_consumers: PerSubscription<Gauge>,
    lag: PerSubscription<Gauge>,
    pending_redelivery: PerSubscription<Gauge>,
    terminal_blocked: PerSubscription<Gauge>,
    nacks: PerSubscription<Counter>,
    redeliveries: PerSubscription<Counter>,
    ack_timeouts: PerSubscription<Counter>,
    exhausted: PerSubscription<Counter>,
    dead_letters: PerSubscription<Counter>,
    dropped: PerSubscription<Counter>,
    unmatched: PerSubscription<Counter>,
    stalls: PerSubscription<Counter>,
    schema_checks: Family<PolicyLabels, Counter>,
    schema_misfits: Family<MisfitLabels, Counter>,
    gaps: PerSubscription<Counter>,
    journal: JournalMetrics,
}

/// Gauges that mirror what the log counts by itself.
#[derive(Default)]
struct JournalMetrics {
    files: Gauge,
    bytes: Gauge,
    cache_bytes: Gauge,
    frames: Gauge,
    groups: Gauge,
    syncs: Gauge,
    failures: Gauge,
    damaged_topics: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            calls: Family::default(),
            topics_owned: Gauge::default(),
            messages_in: Family::default(),
            bytes_in: Family::default(),
            producers: Family::default(),
            consumers: Family::default(),
            subscriptions: Family::default(),
            send_latency_ms: Family::new_with_constructor(LatencyBuckets),
            messages_out: Family::default(),
            bytes_out: Family::default(),
            active_consumers: Family::default(),
            lag: Family::default(),
            pending_redelivery: Family::default(),
            terminal_blocked: Family::default(),
            nacks: Family::default(),
            redeliveries: Family::default(),
            ack_timeouts: Family::default(),
            exhausted: Family::default(),
            dead_letters: Family::default(),
            dropped: Family::default(),
            unmatched: Family::default(),
            stalls: Family::default(),
            schema_checks: Family::default(),
            schema_misfits: Family::default(),
            gaps: Family::default(),
            journal: JournalMetrics::default(),
        };
        metrics.register();
        metrics
    }

    /// The one table of names; counters get `_total` appended when they are written out.
    fn register(&mut self) {
        let mut registry = Registry::default();
        macro_rules! table {
            ($($name:literal $help:literal $metric:expr;)*) => {
                $(registry.register($name, $help, $metric.clone());)*
            };
        }
        table! {
            "danube_broker_rpc" "Calls answered" self.calls;
            "danube_broker_topics_owned" "Topics and topic partitions served here" self.topics_owned;
            "danube_topic_messages_in" "Messages published" self.messages_in;
            "danube_topic_bytes_in" "Bytes published" self.bytes_in;
            "danube_topic_active_producers" "Producers attached" self.producers;
            "danube_topic_active_consumers" "Consumers with an open stream" self.consumers;
            "danube_topic_active_subscriptions" "Subscriptions" self.subscriptions;
            "danube_producer_send_latency_ms" "From a publish's arrival to its answer" self.send_latency_ms;
            "danube_consumer_messages_out" "Messages handed to connections" self.messages_out;
            "danube_consumer_bytes_out" "Bytes handed to connections" self.bytes_out;
            "danube_subscription_active_consumers" "Consumers with an open stream" self.active_consumers;
            "danube_subscription_lag_messages" "Messages not finished" self.lag;
            "danube_subscription_pending_redelivery" "Messages waiting for a retry" self.pending_redelivery;
            "danube_subscription_terminal_blocked" "Messages that block" self.terminal_blocked;
            "danube_subscription_nack" "Negative acknowledgements" self.nacks;
            "danube_subscription_redelivery" "Deliveries after the first" self.redeliveries;
            "danube_subscription_ack_timeout" "Deliveries that were not settled in time" self.ack_timeouts;
            "danube_subscription_retry_exhausted" "Messages that failed for good" self.exhausted;
            "danube_subscription_dlq" "Copies in the dead-letter topic" self.dead_letters;
            "danube_subscription_dropped" "Messages dropped: a full queue, nobody there, or policy drop" self.dropped;
            "danube_subscription_unmatched" "Messages that match nobody's key filter" self.unmatched;
            "danube_subscription_stall" "Times that it was found standing still though it could move; the log says why" self.stalls;
            "danube_schema_validation" "Messages looked at, by policy" self.schema_checks;
            "danube_schema_validation_failures" "Messages that do not fit their topic's schema" self.schema_misfits;
            "danube_subscription_gap" "Places where messages are missing that were not finished" self.gaps;
            "danube_wal_files" "Journal files" self.journal.files;
            "danube_wal_bytes" "Bytes in journal files" self.journal.bytes;
            "danube_wal_cache_bytes" "Bytes of recent messages in memory" self.journal.cache_bytes;
            "danube_wal_frames" "Frames written since the start" self.journal.frames;
            "danube_wal_groups" "Group commits since the start" self.journal.groups;
            "danube_wal_syncs" "Data syncs since the start" self.journal.syncs;
            "danube_wal_failures" "Failed group commits since the start" self.journal.failures;
            "danube_wal_damaged_topics" "Topics out of service because of damage" self.journal.damaged_topics;
        }
        self.registry = registry;
    }

    /// Counts one answered call.
    pub(crate) fn call(&self, service: &'static str, method: &'static str, result: &'static str) {
        self.calls.get_or_create(&CallLabels { service, method, result }).inc();
    }

    pub(crate) fn topics_owned(&self, count: usize) {
        self.topics_owned.set(gauge(count as u64));
    }

    pub(crate) fn journal(&self, stats: &StoreStats) {
        let journal = &self.journal;
        journal.files.set(gauge(stats.files));
        journal.bytes.set(gauge(stats.bytes));
        journal.cache_bytes.set(gauge(stats.cache_bytes));
        journal.frames.set(gauge(stats.frames));
        journal.groups.set(gauge(stats.groups));
        journal.syncs.set(gauge(stats.syncs));
        journal.failures.set(gauge(stats.failures));
        journal.damaged_topics.set(gauge(stats.topics_damaged));
    }

    pub(crate) fn topic(&self, name: &TopicName) -> TopicMetrics {
        let labels = TopicLabels { topic: name.to_string() };
        TopicMetrics {
            messages_in: self.messages_in.get_or_create(&labels).clone(),
            bytes_in: self.bytes_in.get_or_create(&labels).clone(),
            producers: self.producers.get_or_create(&labels).clone(),
            consumers: self.consumers.get_or_create(&labels).clone(),
            subscriptions: self.subscriptions.get_or_create(&labels).clone(),
            send_latency_ms: self.send_latency_ms.get_or_create(&labels).clone(),
        }
    }

    pub(crate) fn schema(&self, name: &TopicName) -> SchemaMetrics {
        SchemaMetrics {
            topic: name.clone(),
            checks: self.schema_checks.clone(),
            misfits: self.schema_misfits.clone(),
            warned: OnceLock::new(),
            enforced: OnceLock::new(),
        }
    }

    pub(crate) fn subscription(
        &self,
        topic: &TopicName,
        subscription: &SubscriptionName,
    ) -> SubscriptionMetrics {
        let labels =
            SubscriptionLabels { topic: topic.to_string(), subscription: subscription.to_string() };
        SubscriptionMetrics {
            messages_out: self.messages_out.get_or_create(&labels).clone(),
            bytes_out: self.bytes_out.get_or_create(&labels).clone(),
            active_consumers: self.active_consumers.get_or_create(&labels).clone(),
            lag: self.lag.get_or_create(&labels).clone(),
            pending_redelivery: self.pending_redelivery.get_or_create(&labels).clone(),
            terminal_blocked: self.terminal_blocked.get_or_create(&labels).clone(),
            nacks: self.nacks.get_or_create(&labels).clone(),
            redeliveries: self.redeliveries.get_or_create(&labels).clone(),
            ack_timeouts: self.ack_timeouts.get_or_create(&labels).clone(),
            exhausted: self.exhausted.get_or_create(&labels).clone(),
            dead_letters: self.dead_letters.get_or_create(&labels).clone(),
            dropped: self.dropped.get_or_create(&labels).clone(),
            unmatched: self.unmatched.get_or_create(&labels).clone(),
            stalls: self.stalls.get_or_create(&labels).clone(),
            gaps: self.gaps.get_or_create(&labels).clone(),
        }
    }

    /// Everything as Prometheus (OpenMetrics) text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The metrics of one topic.
pub(crate) struct TopicMetrics {
    messages_in: Counter,
    bytes_in: Counter,
    producers: Gauge,
    consumers: Gauge,
    subscriptions: Gauge,
    send_latency_ms: Histogram,
}

impl TopicMetrics {
    pub(crate) fn published(&self, bytes: usize, latency: Duration) {
        self.messages_in.inc();
        self.bytes_in.inc_by(bytes as u64);
        self.send_latency_ms.observe(latency.as_secs_f64() * 1_000.0);
    }

    /// Counts a batch; its latency is observed once, since all of it was answered together.
    pub(crate) fn published_batch(&self, count: usize, bytes: usize, latency: Duration) {
        self.messages_in.inc_by(count as u64);
        self.bytes_in.inc_by(bytes as u64);
        self.send_latency_ms.observe(latency.as_secs_f64() * 1_000.0);
    }

    pub(crate) fn producers(&self, count: usize) {
        self.producers.set(gauge(count as u64));
    }

    pub(crate) fn consumers(&self, count: u64) {
        self.consumers.set(gauge(count));
    }

    pub(crate) fn subscriptions(&self, count: usize) {
        self.subscriptions.set(gauge(count as u64));
    }
}

/// What one topic counts of the messages that meet its schema; shown only once there is something.
pub(crate) struct SchemaMetrics {
    topic: TopicName,
    checks: Family<PolicyLabels, Counter>,
    misfits: Family<MisfitLabels, Counter>,
    warned: OnceLock<Counter>,
    enforced: OnceLock<Counter>,
}

impl SchemaMetrics {
    pub(crate) fn checked(&self, policy: ValidationPolicy) {
        let counter = match policy {
            ValidationPolicy::Enforce => &self.enforced,
            ValidationPolicy::Warn | ValidationPolicy::None => &self.warned,
        };
        let make = || {
            let labels = PolicyLabels { topic: self.topic.to_string(), policy: policy.as_str() };
            self.checks.get_or_create(&labels).clone()
        };
        counter.get_or_init(make).inc();
    }

    pub(crate) fn failed(&self, reason: &'static str) {
        let labels = MisfitLabels { topic: self.topic.to_string(), reason };
        self.misfits.get_or_create(&labels).inc();
    }
}

/// The metrics of one subscription.
pub(crate) struct SubscriptionMetrics {
    messages_out: Counter,
    bytes_out: Counter,
    active_consumers: Gauge,
    lag: Gauge,
    pending_redelivery: Gauge,
    terminal_blocked: Gauge,
    nacks: Counter,
    redeliveries: Counter,
    ack_timeouts: Counter,
    exhausted: Counter,
    dead_letters: Counter,
    dropped: Counter,
    unmatched: Counter,
    stalls: Counter,
    gaps: Counter,
}

impl SubscriptionMetrics {
    pub(crate) fn delivered_batch(&self, count: usize, bytes: usize) {
        self.messages_out.inc_by(count as u64);
        self.bytes_out.inc_by(bytes as u64);
    }

    pub(crate) fn dropped(&self, count: u64) {
        self.dropped.inc_by(count);
    }

    pub(crate) fn note(&self, note: Note) {
        match note {
            Note::Nack(_) => self.nacks.inc(),
            Note::AckTimeout(_) => self.ack_timeouts.inc(),
            Note::Redelivery(_) => self.redeliveries.inc(),
            Note::RetryExhausted(_) => self.exhausted.inc(),
            Note::DeadLetter(_) => self.dead_letters.inc(),
            Note::Dropped(_) => self.dropped.inc(),
            Note::Unmatched(_) => self.unmatched.inc(),
            Note::Gap { .. } => self.gaps.inc(),
            // These show in the gauges and in the log.
            Note::ConsumerGone(_) | Note::DeadLetterFailed(_) | Note::Blocked(_) => return,
        };
    }

    /// It stands still though it could move.
    pub(crate) fn stalled(&self) {
        self.stalls.inc();
    }

    pub(crate) fn unmatched(&self) {
        self.unmatched.inc();
    }

    /// Messages skipped so far because nobody's key filter takes them.
    pub(crate) fn unmatched_total(&self) -> u64 {
        self.unmatched.get()
    }

    /// Messages dropped so far.
    pub(crate) fn dropped_total(&self) -> u64 {
        self.dropped.get()
    }

    pub(crate) fn active_consumers(&self, count: u64) {
        self.active_consumers.set(gauge(count));
    }

    pub(crate) fn measure(&self, stats: &Stats) {
        self.active_consumers(stats.consumers);
        self.lag.set(gauge(stats.backlog));
        self.pending_redelivery.set(gauge(stats.waiting_redelivery));
        self.terminal_blocked.set(gauge(stats.blocked));
    }
}
