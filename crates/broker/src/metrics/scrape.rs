//! One scrape as text: rows and figures, laid out along the list of metrics.
//!
//! Law: the list alone says what is shown; escaping and layout are the library's.

use super::CallLabels;
use super::figures::{Figures, Sample, Value};
use super::list::{Kind, METRICS, Metric, PartLabels, SUBSCRIPTION_CLASSES, Source, TOPIC_CLASSES};
use super::numbers::Classes;
use super::shelf::Row;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::fmt;

/// Everything that one scrape shows.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) calls: Family<CallLabels, Counter>,
    pub(super) figures: Figures,
    pub(super) topics: Vec<Row>,
    pub(super) subscriptions: Vec<Row>,
    /// Counters of all topics together, by place.
    pub(super) sums: Vec<u64>,
}

type Labels<'a> = Vec<(&'a str, &'a str)>;

impl Scrape {
    /// As OpenMetrics text.
    pub(super) fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }

    fn encode_metric(&self, metric: &Metric, mut to: MetricEncoder<'_>) -> fmt::Result {
        match &metric.source {
            Source::Calls => self.calls.encode(to),
            Source::Broker(samples) => {
                samples(&self.figures).iter().try_for_each(|sample| whole(metric, &mut to, sample))
            }
            Source::Sum(counter) => {
                let value = self.sums.get(*counter as usize).copied().unwrap_or(0);
                to.encode_counter::<NoLabelSet, u64, u64>(&value, None)
            }
            Source::TopicCounters(parts) => {
                let parts = parts.iter().map(|(labels, counter)| (*labels, *counter as usize));
                counters(metric, &mut to, &self.topics, parts)
            }
            Source::SubscriptionCounters(parts) => {
                let parts = parts.iter().map(|(labels, counter)| (*labels, *counter as usize));
                counters(metric, &mut to, &self.subscriptions, parts)
            }
            Source::TopicGauge(gauge) => gauges(metric, &mut to, &self.topics, *gauge as usize),
            Source::SubscriptionGauge(gauge) => {
                gauges(metric, &mut to, &self.subscriptions, *gauge as usize)
            }
            Source::TopicHistogram(place) => {
                let classes = TOPIC_CLASSES[*place as usize];
                histograms(metric, &mut to, &self.topics, (*place as usize, classes))
            }
            Source::SubscriptionHistogram(place) => {
                let classes = SUBSCRIPTION_CLASSES[*place as usize];
                histograms(metric, &mut to, &self.subscriptions, (*place as usize, classes))
            }
        }
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        METRICS.iter().try_for_each(|metric| {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            // The library puts the ending behind the name of a counter.
            let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
            let to = encoder.encode_descriptor(name, metric.help, None, kind)?;
            self.encode_metric(metric, to)
        })
    }
}

/// A row's labels, and those of one part of it.
fn labels<'a>(metric: &Metric, row: &'a Row, part: PartLabels) -> Labels<'a> {
    let names = metric.labels.iter().copied().zip(row.names.iter().map(String::as_str));
    names.chain(part.iter().copied()).collect()
}

fn counters(
    metric: &Metric,
    to: &mut MetricEncoder<'_>,
    rows: &[Row],
    parts: impl Iterator<Item = (PartLabels, usize)> + Clone,
) -> fmt::Result {
    for row in rows {
        for (part, counter) in parts.clone() {
            let value = row.counted.counters.get(counter).copied().unwrap_or(0);
            // Errors that never happened would be most of the series.
            if value == 0 && !part.is_empty() && part != parts.clone().next().unwrap_or_default().0
            {
                continue;
            }
            let labels = labels(metric, row, part);
            to.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&value, None)?;
        }
    }
    Ok(())
}

fn gauges(metric: &Metric, to: &mut MetricEncoder<'_>, rows: &[Row], place: usize) -> fmt::Result {
    rows.iter().try_for_each(|row| {
        let labels = labels(metric, row, &[]);
        number(&mut to.encode_family(&labels)?, row.gauges.get(place).copied().unwrap_or(0.0))
    })
}

/// A gauge; whole numbers are written without a fraction.
fn number(to: &mut MetricEncoder<'_>, value: f64) -> fmt::Result {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return to.encode_gauge(&(value as i64));
    }
    to.encode_gauge(&value)
}

fn histograms(
    metric: &Metric,
    to: &mut MetricEncoder<'_>,
    rows: &[Row],
    (place, classes): (usize, &Classes),
) -> fmt::Result {
    rows.iter().try_for_each(|row| {
        let counted = row.counted.histograms.get(place).map_or(&[][..], Vec::as_slice);
        let (sum, counts) = counted.split_last().unwrap_or((&0, &[]));
        let bounds = classes.bounds.iter().map(|bound| *bound as f64 / classes.per_shown);
        let buckets: Vec<(f64, u64)> =
            bounds.chain([f64::INFINITY]).zip(counts.iter().copied()).collect();
        let labels = labels(metric, row, &[]);
        classed(&mut to.encode_family(&labels)?, &buckets, *sum as f64 / classes.per_shown)
    })
}

fn classed(to: &mut MetricEncoder<'_>, buckets: &[(f64, u64)], sum: f64) -> fmt::Result {
    let count = buckets.iter().map(|(_, count)| count).sum();
    to.encode_histogram::<NoLabelSet>(sum, count, buckets, None)
}

/// A figure of the whole broker.
fn whole(metric: &Metric, to: &mut MetricEncoder<'_>, sample: &Sample) -> fmt::Result {
    let mut to = to.encode_family(&sample.labels)?;
    match (&sample.value, metric.kind) {
        (Value::Whole(value), Kind::Counter) => {
            to.encode_counter::<NoLabelSet, u64, u64>(value, None)
        }
        (Value::Broken(value), Kind::Counter) => {
            to.encode_counter::<NoLabelSet, f64, u64>(value, None)
        }
        (Value::Whole(value), _) => to.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX)),
        (Value::Broken(value), _) => to.encode_gauge(value),
        (Value::Classed(buckets, sum), _) => classed(&mut to, buckets, *sum),
    }
}
