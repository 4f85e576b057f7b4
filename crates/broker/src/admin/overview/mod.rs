//! What the broker does now, what needs attention first, and a page of its topics with figures.
//!
//! One pass over the catalog. A loaded topic's figures are those that its actor left last, so that
//! none is woken; what is not loaded does nothing, and the log knows how far it is. Only the few
//! topics that seem to need attention are asked why.
//!
//! Law: a look costs what its answer shows and one short step per topic; nothing is loaded for it.

mod attention;
mod oldest;

pub(crate) use oldest::Ages;

use crate::clock::Clock;
use crate::context::{BROKER_ID, Context};
use crate::topic::Vital;
use danube_core::{Delivery, Fault, NamespaceName, Offset, SubscriptionId, TopicName, catalog};
use danube_store::{Bounds, TopicLog};
use danube_wire::proto::control::{self, Figures, TopicFigures};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Topics of one page.
const ROWS_MAX: u32 = 500;

pub(super) async fn call(
    context: &Arc<Context>,
    request: control::OverviewRequest,
) -> Result<control::OverviewResponse, Fault> {
    let order = Order::parse(&request.sort)?;
    let namespace = match request.namespace.as_str() {
        "" => None,
        name => Some(NamespaceName::parse(name)?),
    };
    if request.limit > ROWS_MAX {
        return Err(Fault::invalid(format!(
            "cannot tell `{}` topics at once; ask for at most {ROWS_MAX}",
            request.limit
        )));
    }
    let view = context.meta.view();
    let parts: Vec<Part<'_>> =
        view.topics().map(|(name, topic)| Part::look(context, name, topic)).collect();
    let total = sum(parts.iter());
    let mut rows = rows(&view, &parts);
    let topics = rows.len() as u64;
    let search = request.search.to_lowercase();
    rows.retain(|row| {
        let is_there = namespace.as_ref().is_none_or(|wanted| row.name.namespace() == *wanted);
        is_there && (search.is_empty() || row.name.as_str().to_lowercase().contains(&search))
    });
    order.sort(&mut rows);
    let found = rows.len() as u64;
    let page = rows.into_iter().skip(request.skip as usize).take(request.limit as usize);
    let page = page.map(Row::tell).collect();
    let (attention, attention_total) = attention::of(context, &parts).await;
    let stats = context.store.stats();
    Ok(control::OverviewResponse {
        broker_id: BROKER_ID.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: context.started_at.0,
        now: Clock::wall().0,
        total: Some(total),
        topics,
        attention,
        attention_total,
        oldest: oldest::of(context, &parts).await,
        found,
        rows: page,
        log_files: stats.files + stats.segments,
        log_bytes: stats.bytes + stats.segment_bytes,
        cache_bytes: stats.cache_bytes,
        log_failures: stats.failures,
    })
}

/// One topic partition as it stands.
struct Part<'a> {
    name: &'a TopicName,
    topic: &'a catalog::Topic,
    /// Where there is one.
    log: Option<TopicLog>,
    bounds: Bounds,
    vital: Vital,
    is_loaded: bool,
}

impl<'a> Part<'a> {
    fn look(context: &Context, name: &'a TopicName, topic: &'a catalog::Topic) -> Part<'a> {
        let log = (topic.delivery == Delivery::Reliable)
            .then(|| context.store.topic(topic.id, topic.epoch));
        let nothing = Bounds { start: Offset(0), next: Offset(0) };
        let bounds = log.as_ref().map_or(nothing, TopicLog::bounds);
        let loaded = context.topics.if_loaded(topic.id);
        let vital = match (&loaded, &log) {
            (Some(handle), _) => handle.vitals().read(context.clock.now()),
            (None, Some(log)) => asleep(log, bounds, topic),
            (None, None) => Vital::default(),
        };
        Part { name, topic, log, bounds, vital, is_loaded: loaded.is_some() }
    }

    /// Dead letters that no replay has published again.
    fn letters(&self) -> u64 {
        let Some(log) = self.log.as_ref().filter(|_| self.name.is_dead_letter()) else { return 0 };
        let kept = self.bounds.next.0 - self.bounds.start.0;
        log.subscription(SubscriptionId::REPLAY, Offset(0)).backlog(self.bounds.next).min(kept)
    }
}

/// The figures of a topic that is not loaded.
fn asleep(log: &TopicLog, bounds: Bounds, topic: &catalog::Topic) -> Vital {
    let mut vital = Vital::default();
    for known in topic.subscriptions.values() {
        let progress = log.subscription(known.id, known.start);
        vital.sums.subscriptions += 1;
        vital.sums.backlog += progress.backlog(bounds.next);
        vital.sums.blocked += progress.failures().filter(|(_, a)| a.blocked).count() as u64;
    }
    vital
}

fn sum<'a, 'b: 'a>(parts: impl Iterator<Item = &'a Part<'b>>) -> Figures {
    let mut figures = Figures::default();
    for Part { bounds, vital, .. } in parts {
        figures.in_per_s += vital.published_rate as f64 / 1_000.0;
        figures.out_per_s += vital.finished_rate as f64 / 1_000.0;
        figures.backlog += vital.sums.backlog;
        figures.in_flight += vital.sums.in_flight;
        figures.waiting += vital.sums.waiting;
        figures.blocked += vital.sums.blocked;
        figures.subscriptions += vital.sums.subscriptions;
        figures.consumers += vital.sums.consumers;
        figures.producers += vital.producers;
        figures.messages += bounds.next.0 - bounds.start.0;
    }
    figures
}

/// A plain topic, or all partitions of one.
struct Row<'a> {
    name: TopicName,
    topic: &'a catalog::Topic,
    partitions: u32,
    figures: Figures,
}

fn rows<'a>(view: &catalog::Catalog, parts: &'a [Part<'a>]) -> Vec<Row<'a>> {
    let mut rows = Vec::with_capacity(parts.len());
    let mut partitioned: BTreeMap<TopicName, Vec<&Part<'_>>> = BTreeMap::new();
    for part in parts {
        match part.name.partition() {
            Some((base, _)) if view.partition_count(&base).is_some() => {
                partitioned.entry(base).or_default().push(part);
            }
            _ => rows.push(Row {
                name: part.name.clone(),
                topic: part.topic,
                partitions: 0,
                figures: sum(std::iter::once(part)),
            }),
        }
    }
    for (name, parts) in partitioned {
        let mut figures = sum(parts.iter().copied());
        // Each partition has every subscription, and a producer and a consumer attach to each.
        let most = |of: fn(&Vital) -> u64| parts.iter().map(|part| of(&part.vital)).max();
        figures.subscriptions = most(|vital| vital.sums.subscriptions).unwrap_or(0);
        figures.consumers = most(|vital| vital.sums.consumers).unwrap_or(0);
        figures.producers = most(|vital| vital.producers).unwrap_or(0);
        let partitions = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        rows.push(Row { name, topic: parts[0].topic, partitions, figures });
    }
    rows
}

impl Row<'_> {
    fn tell(self) -> TopicFigures {
        TopicFigures {
            name: self.name.to_string(),
            partitions: self.partitions,
            delivery: self.topic.delivery.as_str().to_owned(),
            intent: self.topic.settings.as_ref().map(|known| known.intent.as_str().to_owned()),
            wal_sync_mode: self.topic.wal_sync_mode().as_str().to_owned(),
            figures: Some(self.figures),
        }
    }
}

/// In which order topics are told.
#[derive(Debug, Clone, Copy)]
enum Order {
    Name,
    /// By a figure, the highest first.
    Figure(fn(&Figures) -> f64),
}

impl Order {
    fn parse(word: &str) -> Result<Order, Fault> {
        Ok(match word {
            "" | "name" => Order::Name,
            "backlog" => Order::Figure(|figures| figures.backlog as f64),
            "in" => Order::Figure(|figures| figures.in_per_s),
            "out" => Order::Figure(|figures| figures.out_per_s),
            "blocked" => Order::Figure(|figures| figures.blocked as f64),
            "consumers" => Order::Figure(|figures| figures.consumers as f64),
            "messages" => Order::Figure(|figures| figures.messages as f64),
            other => {
                return Err(Fault::invalid(format!(
                    "topics cannot be sorted by `{}`; known are name, backlog, in, out, blocked, \
                     consumers, messages",
                    other.escape_debug()
                )));
            }
        })
    }

    fn sort(self, rows: &mut [Row<'_>]) {
        rows.sort_unstable_by(|a, b| {
            let by_figure = match self {
                Order::Name => std::cmp::Ordering::Equal,
                Order::Figure(of) => of(&b.figures).total_cmp(&of(&a.figures)),
            };
            by_figure.then_with(|| a.name.cmp(&b.name))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_known_or_refused_with_the_known_ones() {
        for word in ["", "name", "backlog", "in", "out", "blocked", "consumers", "messages"] {
            assert!(Order::parse(word).is_ok(), "{word}");
        }
        let fault = Order::parse("size").expect_err("no such order");
        assert!(fault.message.contains("`size`") && fault.message.contains("backlog"), "{fault}");
    }
}
