//! `danube bench suite`: every workload against one broker, as one table.
//!
//! The workloads are those by which brokers are compared elsewhere (w1 to w8), with the same sizes,
//! counts and messages in flight; each goes to topics of its own, made for an intent. The bare
//! stream and the bare call of this machine are measured in the same run.
//!
//! Law: a row is the median of its runs, and shows how far apart they were.

use super::load::{Extent, Load, Subject};
use super::report::Report;
use super::{consume, e2e, echo, fanout, publish, queue, topics};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::wire::Wire;
use serde_json::{Value, json};
use std::fmt::Write;

/// Run all workloads and print a table of them
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Runs of each workload; the table has the median
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=99)
    )]
    runs: u32,
    /// Only workloads whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A tenth of the work: for a first impression, not for a figure to quote
    #[arg(long)]
    quick: bool,
    /// How to print the table
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// What a workload does.
#[derive(Debug, Clone, Copy)]
enum Kind {
    EchoStream,
    EchoCall,
    Publish,
    EndToEnd { rate: u32 },
    Drain,
    Fanout { subscriptions: u32 },
    Queue { workers: u32 },
    Topics { topics: u32, rounds: u32 },
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    kind: Kind,
    intent: &'static str,
    count: u64,
    size: u64,
    in_flight: u32,
    connections: u32,
    batch: Option<u32>,
}

const BASE: Workload = Workload {
    name: "",
    kind: Kind::Publish,
    intent: "event_stream",
    count: 200_000,
    size: 1_024,
    in_flight: 256,
    connections: 1,
    batch: None,
};

const BATCHES: Workload = Workload { count: 2_000_000, in_flight: 6_400, batch: Some(100), ..BASE };

const WORKLOADS: &[Workload] = &[
    Workload { name: "echo-stream-100", kind: Kind::EchoStream, ..BATCHES },
    Workload { name: "w0-batches-100", ..BATCHES },
    Workload { name: "w1-pub-durable-1p", ..BASE },
    Workload { name: "echo-call-1", kind: Kind::EchoCall, count: 5_000, in_flight: 1, ..BASE },
    Workload { name: "w2-pub-durable-sync", count: 5_000, in_flight: 1, ..BASE },
    Workload { name: "w3-e2e", kind: Kind::EndToEnd { rate: 2_000 }, count: 20_000, ..BASE },
    Workload { name: "w4-backlog", kind: Kind::Drain, ..BASE },
    Workload {
        name: "w5-fanout",
        kind: Kind::Fanout { subscriptions: 10 },
        intent: "realtime",
        count: 100_000,
        size: 100,
        ..BASE
    },
    Workload {
        name: "w6-work-queue",
        kind: Kind::Queue { workers: 8 },
        count: 100_000,
        size: 256,
        connections: 8,
        ..BASE
    },
    Workload { name: "w7-fsync-1", intent: "audit_log", count: 5_000, in_flight: 1, ..BASE },
    Workload { name: "w7-fsync-256", intent: "audit_log", ..BASE },
    Workload {
        name: "w8-many-topics",
        kind: Kind::Topics { topics: 1_000, rounds: 20 },
        intent: "audit_log",
        ..BASE
    },
];

/// Runs the suite and prints the table.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, runs, only, quick, output } = arguments;
    let is_wanted = |workload: &&Workload| {
        // One call per message knows no batches.
        let is_possible = subject.wire == Wire::Native || workload.batch.is_none();
        let is_named = only.iter().any(|name| workload.name.contains(name));
        is_possible && (only.is_empty() || is_named)
    };
    let mut rows = Vec::new();
    for workload in WORKLOADS.iter().filter(is_wanted) {
        let workload = if quick { workload.quick() } else { *workload };
        let mut reports = Vec::new();
        for run in 1..=runs {
            eprintln!("{}: run {run} of {runs}", workload.name);
            reports.push(workload.measure(&subject).await?);
        }
        reports.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
        rows.push(Row { name: workload.name, reports });
    }
    if rows.is_empty() {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        return Err(Failure::usage("--only leaves no workload")
            .help(format!("the workloads are {}", names.join(", "))));
    }
    match output {
        Format::Text => output::line(table(&rows)),
        Format::Json => output::json(&Value::Array(rows.iter().map(Row::document).collect())),
    }
}

impl Workload {
    fn quick(self) -> Workload {
        let kind = match self.kind {
            Kind::Topics { topics, rounds } => {
                Kind::Topics { topics: topics / 10, rounds: rounds / 2 }
            }
            kind => kind,
        };
        Workload { count: self.count / 10, kind, ..self }
    }

    async fn measure(&self, subject: &Subject) -> Result<Report, Failure> {
        let extent = Extent { count: Some(self.count), seconds: None };
        let load = Load {
            size: self.size,
            in_flight: self.in_flight,
            connections: self.connections,
            batch: self.batch,
            warm_up: u64::from(self.in_flight).clamp(100, 10_000),
            output: Format::Text,
        };
        let subject = subject.with_intent(self.intent);
        match self.kind {
            Kind::EchoStream => echo::yardstick(Wire::Native, extent, &load).await,
            Kind::EchoCall => echo::yardstick(Wire::Compatible, extent, &load).await,
            Kind::Publish => publish::measure(&subject, extent, &load).await,
            Kind::EndToEnd { rate } => e2e::measure(&subject, extent, &load, Some(rate)).await,
            Kind::Drain => consume::measure(&subject, &load, self.count).await,
            Kind::Fanout { subscriptions } => {
                fanout::measure(&subject, extent, &load, subscriptions).await
            }
            Kind::Queue { workers } => queue::measure(&subject, &load, self.count, workers).await,
            Kind::Topics { topics, rounds } => {
                topics::measure(&subject, &load, topics, rounds).await
            }
        }
    }
}

/// The runs of one workload, slowest first.
struct Row {
    name: &'static str,
    reports: Vec<Report>,
}

impl Row {
    fn median(&self) -> &Report {
        &self.reports[self.reports.len() / 2]
    }

    /// From the slowest run to the fastest.
    fn spread(&self) -> (f64, f64) {
        let rate = |report: Option<&Report>| report.map_or(0.0, Report::rate);
        (rate(self.reports.first()), rate(self.reports.last()))
    }

    fn document(&self) -> Value {
        let (min, max) = self.spread();
        json!({
            "workload": self.name,
            "runs": self.reports.len(),
            "messages_per_second_min": min,
            "messages_per_second_max": max,
            "median": self.median().document(),
        })
    }
}

/// The rows as Markdown.
fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| workload | msg/s median (min..max) | MB/s | p50 | p99 | p99.9 ms | server CPU s | server \
         CPU µs/msg | peak RSS MB | lost | twice | runs | setup s |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    );
    let whole = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    for row in rows {
        let (report, (min, max)) = (row.median(), row.spread());
        let usage = report.usage.as_ref();
        write!(
            table,
            "\n| {} | {:.0} ({min:.0}..{max:.0}) | {:.1} | {:.3} | {:.3} | {:.3} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            report.rate(),
            report.megabytes_per_second(),
            report.percentile_ms(50.0),
            report.percentile_ms(99.0),
            report.percentile_ms(99.9),
            usage.map_or(String::new(), |usage| format!("{:.2}", usage.cpu_ms as f64 / 1e3)),
            report.cpu_us_per_message().map_or(String::new(), |us| format!("{us:.2}")),
            usage.map_or(String::new(), |usage| format!("{:.0}", usage.peak_kib as f64 / 1024.0)),
            whole(report.lost),
            whole(report.duplicates),
            row.reports.len(),
            report.setup.map_or(String::new(), |setup| format!("{:.2}", setup.as_secs_f64())),
        )
        .expect("a String takes everything");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::time::Duration;

    #[test]
    fn a_row_has_the_median_and_how_far_apart_the_runs_were() {
        let report = |ms| Report {
            messages: 1_000,
            size: 1_000,
            lost: Some(0),
            elapsed: Duration::from_millis(ms),
            ..Report::new("publish")
        };
        let rows = [Row { name: "w1", reports: [4, 2, 1].map(report).into() }];
        expect![[r#"
            | workload | msg/s median (min..max) | MB/s | p50 | p99 | p99.9 ms | server CPU s | server CPU µs/msg | peak RSS MB | lost | twice | runs | setup s |
            |---|---|---|---|---|---|---|---|---|---|---|---|---|
            | w1 | 500000 (250000..1000000) | 500.0 | 0.000 | 0.000 | 0.000 |  |  |  | 0 |  | 3 |  |"#]].assert_eq(&table(&rows));
    }
}
