//! `danube bench queue`: several producers and several workers on one topic at once, each message
//! to one worker.
//!
//! The clock stops when every message was received and acknowledged.

use super::drive::{STALL_MAX, drive_from};
use super::inlet::{Inlet, Prepared};
use super::load::{Load, Pace, Subject, fresh};
use super::outlet::outlets;
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use super::source::{STAMP_LEN, Seen, Source, stamp};
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Handfuls of messages that wait to be counted.
const COUNTED_MAX: usize = 1_024;

/// Publish and work at the same time, each message to one of several workers
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
    /// Workers of the subscription
    #[arg(
        long,
        value_name = "N",
        default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    workers: u32,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, load, count, workers } = arguments;
    measure(&subject, &load, count, workers).await?.print(load.output)
}

/// Measures.
///
/// # Errors
/// As [`run`].
pub async fn measure(
    subject: &Subject,
    load: &Load,
    count: u64,
    workers: u32,
) -> Result<Report, Failure> {
    if load.size_bytes() < STAMP_LEN {
        return Err(Failure::usage(format!("--size must be at least {STAMP_LEN} here")));
    }
    let topic = subject.make_topic().await?;
    let opened = outlets(subject, topic.as_str(), load).await?;
    let outlets: Vec<_> = opened.into_iter().map(Arc::new).collect();
    let subscription = fresh("bench");
    let (count_them, mut counted) = mpsc::channel(COUNTED_MAX);
    let (all_came, is_over) = watch::channel(false);
    let mut working = JoinSet::new();
    for index in 0..workers {
        let name = format!("bench-{index}");
        let prepared = Prepared::new(subject, topic.as_str(), &subscription, &name).await?;
        working.spawn(work(prepared.open().await?, count_them.clone(), is_over.clone()));
    }
    drop((count_them, is_over));

    let progress = Progress::new("working");
    let watch = Watch::start(subject.process())?;
    let epoch = Instant::now();
    let pace = Arc::new(Pace::of_count(count));
    let source = |_| Source::new(Arc::clone(&pace), load.payload()).stamped(epoch);
    let quiet = Progress::none();
    let publishing = drive_from(&outlets, load, source, &quiet);
    let seeing = async {
        let mut seen = Seen::default();
        while seen.unique < count {
            match tokio::time::timeout(STALL_MAX, counted.recv()).await {
                Ok(Some(numbers)) => numbers.into_iter().for_each(|number| {
                    seen.mark(number);
                    progress.one_more();
                }),
                _ => break,
            }
        }
        seen
    };
    let (published, seen) = tokio::join!(publishing, seeing);
    // Nobody listens any more only when all workers have failed.
    let _ = all_came.send(true);
    let mut acked = Latencies::new();
    while let Some(ended) = working.join_next().await {
        acked.add(&ended.expect("a worker does not panic")?);
    }
    let elapsed = epoch.elapsed();
    let usage = watch.and_then(Watch::end);
    progress.finish();
    Ok(Report {
        setting: format!("{}, {workers} workers, over {topic}", super::echo::setting(load)),
        size: load.size,
        messages: seen.unique,
        lost: Some(count - seen.unique),
        duplicates: Some(seen.duplicates),
        latencies: published?.latencies,
        latency_of: "publish to acknowledgement",
        elapsed,
        usage,
        ..Report::new("queue")
    })
}

async fn work(
    mut inlet: Inlet,
    counted: mpsc::Sender<Vec<u64>>,
    mut is_over: watch::Receiver<bool>,
) -> Result<Latencies, Failure> {
    let (mut taken, mut acked) = (Vec::new(), Latencies::new());
    loop {
        tokio::select! {
            took = inlet.take(&mut taken, &mut acked) => took?,
            _ = is_over.changed() => break,
        }
        let numbers = taken.drain(..).filter_map(|payload| stamp(&payload));
        let numbers = numbers.map(|(_, number)| number).collect();
        if counted.send(numbers).await.is_err() {
            break;
        }
    }
    inlet.settle(&mut acked).await?;
    Ok(acked)
}
