//! `danube bench consume`: how fast a filled subscription is received and acknowledged.
//!
//! The subscription is made first, then filled without a consumer; the clock runs from the
//! opening of the stream to the last acknowledgement.

use super::drive::drive;
use super::inlet::Prepared;
use super::load::{Load, Pace, Subject, fresh};
use super::outlet::outlets;
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Instant;

/// Fill a subscription, then measure how fast it is received and acknowledged
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    load: Load,
    /// How many messages
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    count: u64,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, load, count } = arguments;
    measure(&subject, &load, count).await?.print(load.output)
}

/// Fills and measures.
///
/// # Errors
/// As [`run`].
pub async fn measure(subject: &Subject, load: &Load, count: u64) -> Result<Report, Failure> {
    if !subject.is_reliable() {
        return Err(Failure::usage("a non-reliable topic keeps nothing to consume later")
            .help("use danube bench e2e --non-reliable"));
    }
    let topic = subject.make_topic().await?;
    let outlets = outlets(subject, topic.as_str(), load).await?;
    let outlets: Vec<_> = outlets.into_iter().map(Arc::new).collect();
    let prepared = Prepared::new(subject, topic.as_str(), &fresh("bench"), "bench").await?;
    let progress = Progress::new("filling");
    let filled = drive(&outlets, load, Pace::of_count(count), &progress).await?;
    progress.finish();
    drop(outlets);

    let progress = Progress::new("consuming");
    let watch = Watch::start(subject.process())?;
    let mut latencies = Latencies::new();
    let started = Instant::now();
    let mut inlet = prepared.open().await?;
    let (mut received, mut taken) = (0, Vec::new());
    while received < count {
        inlet.take(&mut taken, &mut latencies).await?;
        received += taken.len() as u64;
        progress.more(taken.len() as u64);
        taken.clear();
    }
    inlet.settle(&mut latencies).await?;
    let elapsed = started.elapsed();
    let usage = watch.and_then(Watch::end);
    progress.finish();
    Ok(Report {
        setting: format!("one consumer, from {topic}"),
        size: load.size,
        messages: received,
        latencies,
        latency_of: "ack to its answer",
        elapsed,
        usage,
        setup: Some(filled.elapsed),
        ..Report::new("consume")
    })
}
