//! The list of metrics as a page for people and as lines for tests.
//!
//! Law: both are made from the list and from nothing else, so that neither can be out of date.

use super::list::METRICS;
use std::fmt::Write as _;

/// One line per metric: its name, its type and its labels.
pub(super) fn contract() -> String {
    let line = |metric: &super::list::Metric| {
        format!("{} {} {}", metric.name, metric.kind.as_str(), metric.labels.join(","))
    };
    METRICS.iter().map(|metric| line(metric).trim_end().to_owned() + "\n").collect()
}

const HEAD: &str = "# Metrics

Generated from the list in `crates/broker/src/metrics/list.rs`; do not edit. `GET /metrics` on the
HTTP address answers OpenMetrics text. How to scrape, look and be woken: [operations](../operations.md).

A topic or subscription that nobody has used since the broker started, and that has nothing waiting,
has no series.

## Topics and subscriptions by the thousand

At most `metrics.topics_max` topics (100) and `metrics.subscriptions_max` subscriptions (200) have
series of their own: the busiest, where older traffic counts less, and, up to a quarter of the
places, subscriptions with a message that blocks. All others are summed in one series whose `topic`
and `subscription` are `_rest`; of ages it shows the largest. Each count is in exactly one series and
no series ever goes back, so rates over `sum(...)` are right however topics come and go. With these
bounds a scrape has at most 13,000 series, at 20,000 topics as at 200.

";

const TAIL: &str = "
## Names of the existing product that are not here

They have nothing to count on one broker: `danube_client_redirects_total`, `danube_rebalancing_*`,
`danube_cluster_imbalance_cv` (no other brokers), `danube_authz_*` (no access rights yet),
`danube_cloud_*`, `danube_handoff_*`, `danube_durable_history_*` (no durable tier yet).
`danube_wal_flush_total` and `danube_wal_flush_latency_ms` have no label `topic`, since one group
commit serves all topics; `danube_wal_reads_total` takes the place of `danube_wal_reader_create_total`,
since readers are not made but asked.
";

/// The page `docs/reference/metrics.md`.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("## All of them\n\n| name | type | labels | meaning |\n|---|---|---|---|\n");
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels, help) =
            (metric.name, metric.kind.as_str(), labels.join(", "), metric.help);
        writeln!(page, "| `{name}` | {kind} | {labels} | {help} |")
            .expect("writing to a string does not fail");
    }
    page + TAIL
}
