//! `danube bench publish`: from the call to the acknowledgement.

use super::drive::drive;
use super::echo;
use super::load::{Extent, Load, Pace, Subject};
use super::outlet::outlets;
use super::process::Watch;
use super::report::{Progress, Report};
use super::schema;
use crate::failure::Failure;
use crate::output::{self, Format};
use serde_json::json;
use std::sync::Arc;

/// How long one turn of one topic takes with `--compare-schema`, when nobody says.
const SCHEMA_ROUND_SECONDS: u64 = 2;

/// Publish, and measure until the acknowledgement
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    load: Load,
    /// Measure a bare gRPC echo first, with the same load, and print the ratio
    #[arg(long)]
    compare_echo: bool,
    /// Publish to two topics by turns, one of which enforces a schema, and print the ratio
    #[arg(long, conflicts_with_all = ["compare_echo", "topic", "count", "pid"])]
    compare_schema: bool,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, extent, load, compare_echo, compare_schema } = arguments;
    if compare_schema {
        let seconds = extent.seconds.unwrap_or(SCHEMA_ROUND_SECONDS);
        return schema::run(&subject, seconds, &load).await;
    }
    if !compare_echo {
        return measure(&subject, extent, &load).await?.print(load.output);
    }
    let echo = echo::yardstick(subject.wire, extent, &load).await?;
    let publish = measure(&subject, extent, &load).await?;
    let ratio = publish.rate() / echo.rate();
    match load.output {
        Format::Text => output::line(format!(
            "{}\n{}\npublish reaches {:.1} % of echo",
            echo.text(),
            publish.text(),
            ratio * 100.0
        )),
        Format::Json => output::json(&json!({
            "echo": echo.document(), "publish": publish.document(), "ratio": ratio,
        })),
    }
}

/// Measures, after a warm-up.
///
/// # Errors
/// As [`run`].
pub async fn measure(subject: &Subject, extent: Extent, load: &Load) -> Result<Report, Failure> {
    let topic = subject.make_topic().await?;
    let outlets = outlets(subject, topic.as_str(), load).await?;
    let outlets: Vec<_> = outlets.into_iter().map(Arc::new).collect();
    let progress = Progress::new("warming up");
    drive(&outlets, load, Pace::of_count(load.warm_up), &progress).await?;
    progress.finish();

    let progress = Progress::new("publishing");
    let watch = Watch::start(subject.process())?;
    let measured = drive(&outlets, load, Pace::starting_now(extent), &progress).await?;
    let usage = watch.and_then(Watch::end);
    progress.finish();
    Ok(Report {
        setting: format!("{}, to {topic}", echo::setting(load)),
        size: load.size,
        messages: measured.latencies.count(),
        latencies: measured.latencies,
        latency_of: "call to acknowledgement",
        elapsed: measured.elapsed,
        usage,
        ..Report::new("publish")
    })
}
