//! What the broker counts, under the names its dashboards know.
//!
//! ```text
//! topic, subscription ─▶ their block of numbers ◀─ shelf ─▶ rows ─┐
//! calls, log, catalog, process ─────────────────────────▶ figures ┼─▶ list ─▶ text
//! ```
//!
//! A topic or subscription has its block for as long as it is loaded, so counting a message is an
//! addition to a word of memory. How many have series of their own is bounded (`chosen.rs`). What is
//! left to others: when something counts.
//!
//! Law: no message waits for a scrape, and each broker counts for itself: two of them in one
//! process (as in tests) do not mix.

mod chosen;
mod figures;
mod list;
mod numbers;
mod reference;
mod scrape;
mod shelf;
#[cfg(test)]
mod tests;

pub(crate) use figures::{Figures, Process};

use crate::options::MetricsOptions;
use danube_core::subscription::{Note, Stats};
use danube_core::{FaultKind, SubscriptionName, TopicName, ValidationPolicy, WallMs};
use list::{
    SUBSCRIPTION_CLASSES, SubscriptionCounter, SubscriptionGauge, SubscriptionHistogram,
    TOPIC_CLASSES, TopicCounter, TopicGauge, TopicHistogram,
};
use numbers::{Block, Number};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use scrape::Scrape;
use shelf::{Gauges, Names, Ranking, Shelf};
use std::sync::Arc;
use std::time::Duration;

/// Labels of a call's metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    service: &'static str,
    method: &'static str,
    result: &'static str,
}

/// The page `docs/reference/metrics.md`, made from the list of metrics.
pub fn metrics_page() -> String {
    reference::page()
}

/// Name, type and labels of each metric, one per line.
pub fn metrics_contract() -> String {
    reference::contract()
}

/// Everything one broker counts.
pub(crate) struct Metrics {
    calls: Family<CallLabels, Counter>,
    topics: Arc<Shelf>,
    subscriptions: Arc<Shelf>,
    loads: Number,
    unloads: Arc<Number>,
}

fn topic_block() -> Block {
    Block::new(TopicCounter::LEN, TopicGauge::LEN, &TOPIC_CLASSES)
}

fn subscription_block() -> Block {
    Block::new(SubscriptionCounter::LEN, SubscriptionGauge::LEN, &SUBSCRIPTION_CLASSES)
}

/// What is stored of the oldest message is when it was published; its age is shown, in seconds.
fn show_subscription_gauge(place: usize, stored: u64, wall_ms: u64) -> f64 {
    if place == SubscriptionGauge::OldestAt as usize && stored > 0 {
        return wall_ms.saturating_sub(stored) as f64 / 1_000.0;
    }
    stored as f64
}

impl Metrics {
    pub(crate) fn new(options: &MetricsOptions) -> Metrics {
        let plain: fn(usize, u64, u64) -> f64 = |_, stored, _| stored as f64;
        let topics = Shelf::new(
            options.topics_max as usize,
            1,
            topic_block,
            Ranking { traffic: TopicCounter::MessagesIn as usize, trouble: None },
            Gauges { show: plain, is_max: |_| false },
        );
        let subscriptions = Shelf::new(
            options.subscriptions_max as usize,
            2,
            subscription_block,
            Ranking {
                traffic: SubscriptionCounter::MessagesOut as usize,
                trouble: Some(SubscriptionGauge::TerminalBlocked as usize),
            },
            Gauges {
                show: show_subscription_gauge,
                is_max: |place| place == SubscriptionGauge::OldestAt as usize,
            },
        );
        Metrics {
            calls: Family::default(),
            topics: Arc::new(topics),
            subscriptions: Arc::new(subscriptions),
            loads: Number::default(),
            unloads: Arc::default(),
        }
    }

    /// Counts one answered call.
    pub(crate) fn call(&self, service: &'static str, method: &'static str, result: &'static str) {
        self.calls.get_or_create(&CallLabels { service, method, result }).inc();
    }

    /// The numbers of a topic that is loaded now.
    pub(crate) fn topic(&self, name: &TopicName) -> Arc<TopicMetrics> {
        self.loads.add(1);
        let names = vec![name.to_string()];
        Arc::new(TopicMetrics {
            block: self.topics.add(names.clone()),
            names,
            shelf: Arc::clone(&self.topics),
            unloads: Arc::clone(&self.unloads),
        })
    }

    /// The numbers of a subscription that is loaded now.
    pub(crate) fn subscription(
        &self,
        topic: &TopicName,
        subscription: &SubscriptionName,
    ) -> SubscriptionMetrics {
        let names = vec![topic.to_string(), subscription.to_string()];
        SubscriptionMetrics {
            block: self.subscriptions.add(names.clone()),
            names,
            shelf: Arc::clone(&self.subscriptions),
        }
    }

    /// Everything as OpenMetrics text; `now` is on the broker's own clock.
    pub(crate) fn render(&self, figures: Figures, now: Duration, wall: WallMs) -> String {
        let scrape = Scrape {
            calls: self.calls.clone(),
            figures: Figures { loads: self.loads.get(), unloads: self.unloads.get(), ..figures },
            topics: self.topics.rows(now, wall.0),
            subscriptions: self.subscriptions.rows(now, wall.0),
            sums: self.topics.sums(),
        };
        scrape.text()
    }
}

/// The numbers of one topic.
pub(crate) struct TopicMetrics {
    block: Arc<Block>,
    names: Names,
    shelf: Arc<Shelf>,
    unloads: Arc<Number>,
}

impl Drop for TopicMetrics {
    fn drop(&mut self) {
        self.shelf.remove(&self.names, &self.block);
        self.unloads.add(1);
    }
}

impl TopicMetrics {
    fn count(&self, counter: TopicCounter, count: u64) {
        self.block.counters[counter as usize].add(count);
    }

    fn gauge(&self, gauge: TopicGauge, value: u64) {
        self.block.gauges[gauge as usize].set(value);
    }

    fn observe(&self, place: TopicHistogram, value: u64, times: u64) {
        self.block.histograms[place as usize].observe(value, times);
    }

    /// Counts messages that were stored together and answered together.
    pub(crate) fn published(&self, count: usize, bytes: usize, latency: Duration) {
        self.stored(count, bytes, latency);
        self.count(TopicCounter::Sent, count as u64);
    }

    /// Counts messages that were stored and that nobody published.
    pub(crate) fn stored(&self, count: usize, bytes: usize, latency: Duration) {
        let (count, bytes) = (count as u64, bytes as u64);
        self.count(TopicCounter::MessagesIn, count);
        self.count(TopicCounter::BytesIn, bytes);
        self.observe(TopicHistogram::SendLatency, micros(latency), 1);
        self.observe(TopicHistogram::MessageSize, bytes / count.max(1), count);
    }

    /// Counts what of that went to the log.
    pub(crate) fn appended(&self, count: usize, bytes: usize) {
        self.count(TopicCounter::Appends, count as u64);
        self.count(TopicCounter::AppendBytes, bytes as u64);
    }

    /// Counts messages that their producer was refused.
    pub(crate) fn refused(&self, kind: FaultKind, count: u64) {
        self.count(TopicCounter::refused(kind), count);
    }

    /// Counts a message that is held against its topic's schema.
    pub(crate) fn checked(&self, policy: ValidationPolicy) {
        let counter = match policy {
            ValidationPolicy::Enforce => TopicCounter::CheckedEnforce,
            ValidationPolicy::Warn | ValidationPolicy::None => TopicCounter::CheckedWarn,
        };
        self.count(counter, 1);
    }

    /// Counts a message that does not fit it.
    pub(crate) fn misfit(&self, misfit: MisfitKind) {
        let counter = match misfit {
            MisfitKind::MissingSchemaId => TopicCounter::MissingSchemaId,
            MisfitKind::SubjectMismatch => TopicCounter::SubjectMismatch,
            MisfitKind::UnknownVersion => TopicCounter::UnknownVersion,
            MisfitKind::PayloadInvalid => TopicCounter::PayloadInvalid,
            MisfitKind::UnknownSubject => TopicCounter::UnknownSubject,
            MisfitKind::SchemaUnusable => TopicCounter::SchemaUnusable,
        };
        self.count(counter, 1);
    }

    /// Counts a turn of the topic's actor. Nobody else calls this.
    pub(crate) fn turn(&self, by_timer: bool) {
        let counter =
            if by_timer { TopicCounter::HeartbeatPolls } else { TopicCounter::NotifierPolls };
        self.block.counters[counter as usize].add_alone(1);
    }

    pub(crate) fn producers(&self, count: usize) {
        self.gauge(TopicGauge::Producers, count as u64);
    }

    pub(crate) fn consumers(&self, count: u64) {
        self.gauge(TopicGauge::Consumers, count);
    }

    pub(crate) fn subscriptions(&self, count: usize) {
        self.gauge(TopicGauge::Subscriptions, count as u64);
    }

    /// How many dead letters it keeps that were not replayed.
    pub(crate) fn dead_letters(&self, count: u64) {
        self.gauge(TopicGauge::DeadLetters, count);
    }
}

/// Why a message does not fit its topic's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MisfitKind {
    MissingSchemaId,
    SubjectMismatch,
    UnknownVersion,
    PayloadInvalid,
    UnknownSubject,
    SchemaUnusable,
}

/// The numbers of one subscription. Its topic's actor alone counts them.
pub(crate) struct SubscriptionMetrics {
    block: Arc<Block>,
    names: Names,
    shelf: Arc<Shelf>,
}

impl Drop for SubscriptionMetrics {
    fn drop(&mut self) {
        self.shelf.remove(&self.names, &self.block);
    }
}

impl SubscriptionMetrics {
    fn count(&self, counter: SubscriptionCounter, count: u64) {
        self.block.counters[counter as usize].add_alone(count);
    }

    fn counted(&self, counter: SubscriptionCounter) -> u64 {
        self.block.counters[counter as usize].get()
    }

    fn gauge(&self, gauge: SubscriptionGauge, value: u64) {
        self.block.gauges[gauge as usize].set(value);
    }

    /// Counts messages handed to a connection together.
    pub(crate) fn delivered(&self, count: usize, bytes: usize) {
        self.count(SubscriptionCounter::MessagesOut, count as u64);
        self.count(SubscriptionCounter::BytesOut, bytes as u64);
    }

    /// Counts how long messages took that are delivered for the first time. A producer that says
    /// no time is not counted.
    pub(crate) fn took(&self, published: WallMs, now: WallMs, count: usize) {
        if published.0 > 0 {
            let ms = now.0.saturating_sub(published.0);
            let place = SubscriptionHistogram::PublishToDeliver as usize;
            self.block.histograms[place].observe_alone(ms, count as u64);
        }
    }

    pub(crate) fn dropped(&self, count: u64) {
        self.count(SubscriptionCounter::Dropped, count);
    }

    pub(crate) fn note(&self, note: Note) {
        let counter = match note {
            Note::Nack(_) => SubscriptionCounter::Nacks,
            Note::AckTimeout(_) => SubscriptionCounter::AckTimeouts,
            Note::Redelivery(_) => SubscriptionCounter::Redeliveries,
            Note::RetryExhausted(_) => SubscriptionCounter::Exhausted,
            Note::DeadLetter(_) => SubscriptionCounter::DeadLetters,
            Note::Dropped(_) => SubscriptionCounter::Dropped,
            Note::Unmatched(_) => SubscriptionCounter::Unmatched,
            Note::Gap { first, end } => {
                self.count(SubscriptionCounter::GapMessages, end.0.saturating_sub(first.0));
                SubscriptionCounter::Gaps
            }
            // These show in the gauges and in the log.
            Note::ConsumerGone(_) | Note::DeadLetterFailed(_) | Note::Blocked(_) => return,
        };
        self.count(counter, 1);
    }

    /// It stands still though it could move.
    pub(crate) fn stalled(&self) {
        self.count(SubscriptionCounter::Stalls, 1);
    }

    /// A consumer got more time for a message.
    pub(crate) fn extended(&self) {
        self.count(SubscriptionCounter::Extensions, 1);
    }

    pub(crate) fn unmatched(&self) {
        self.count(SubscriptionCounter::Unmatched, 1);
    }

    /// Messages skipped so far because nobody's key filter takes them.
    pub(crate) fn unmatched_total(&self) -> u64 {
        self.counted(SubscriptionCounter::Unmatched)
    }

    /// Messages dropped so far.
    pub(crate) fn dropped_total(&self) -> u64 {
        self.counted(SubscriptionCounter::Dropped)
    }

    pub(crate) fn active_consumers(&self, count: u64) {
        self.gauge(SubscriptionGauge::ActiveConsumers, count);
    }

    pub(crate) fn measure(&self, stats: &Stats) {
        self.active_consumers(stats.consumers);
        self.gauge(SubscriptionGauge::Lag, stats.backlog);
        self.gauge(SubscriptionGauge::InFlight, stats.queued + stats.in_flight);
        self.gauge(SubscriptionGauge::PendingRedelivery, stats.waiting_redelivery);
        self.gauge(SubscriptionGauge::TerminalBlocked, stats.blocked);
    }

    /// When the first unfinished message was published; 0 when there is none.
    pub(crate) fn oldest(&self, published: WallMs) {
        self.gauge(SubscriptionGauge::OldestAt, published.0);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
