//! `danube bench fanout`: one producer, many subscriptions, each of which gets everything.
//!
//! The producer stays a bounded number of messages ahead of the slowest subscription, so that a
//! healthy broker need not drop anything; what never comes is counted, and the run goes on.

use super::drive::STALL_MAX;
use super::inlet::{Inlet, Prepared};
use super::load::{Extent, Load, Pace, Subject, fresh};
use super::outlet::outlets;
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use super::source::Source;
use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Messages that the producer is ahead of the slowest subscription at most.
const AHEAD_MAX: u64 = 1_024;
/// When nothing arrives for this long, what is missing counts as lost.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// Publish once, receive many times, and measure deliveries
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    load: Load,
    /// Subscriptions that each get every message
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    subscriptions: u32,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, extent, load, subscriptions } = arguments;
    measure(&subject, extent, &load, subscriptions).await?.print(load.output)
}

/// What arrived, subscription by subscription.
#[derive(Debug)]
struct Arrivals {
    counts: Vec<AtomicU64>,
    news: Notify,
}

impl Arrivals {
    fn slowest(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Acquire)).min().unwrap_or_default()
    }

    fn total(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Acquire)).sum()
    }

    /// Waits until the slowest has `count`; false when nothing came for too long.
    async fn reach(&self, count: u64) -> bool {
        loop {
            let news = self.news.notified();
            if self.slowest() >= count {
                return true;
            }
            let before = self.total();
            let waited = tokio::time::timeout(SILENCE_MAX, news).await;
            if waited.is_err() && self.total() == before {
                return false;
            }
        }
    }
}

/// Measures.
///
/// # Errors
/// As [`run`].
pub async fn measure(
    subject: &Subject,
    extent: Extent,
    load: &Load,
    subscriptions: u32,
) -> Result<Report, Failure> {
    let topic = subject.make_topic().await?;
    let mut outlets =
        outlets(subject, topic.as_str(), &Load { connections: 1, ..load.clone() }).await?;
    let outlet = outlets.pop().expect("one connection");
    let arrivals = Arc::new(Arrivals {
        counts: (0..subscriptions).map(|_| AtomicU64::new(0)).collect(),
        news: Notify::new(),
    });
    let mut receiving = JoinSet::new();
    let progress = Progress::new("delivering");
    for index in 0..subscriptions {
        let name = fresh("bench");
        let inlet = Prepared::new(subject, topic.as_str(), &name, "bench").await?.open().await?;
        receiving.spawn(receive(inlet, Arc::clone(&arrivals), index as usize, progress.clone()));
    }
    let watch = Watch::start(subject.process())?;
    let started = Instant::now();
    let pace = Arc::new(Pace::starting_now(extent));
    let (mut published, mut given_up, mut latencies) = (0, 0, Latencies::new());
    loop {
        let burst = Pace::part_of(&pace, u64::from(load.in_flight));
        let mut source = Source::new(Arc::new(burst), load.payload());
        let in_flight = load.in_flight as usize;
        let sent = outlet.run(in_flight, &mut source, &mut latencies, &Progress::none()).await?;
        published += sent;
        if sent == 0 {
            break;
        }
        let wanted = (published - given_up).saturating_sub(AHEAD_MAX);
        if !arrivals.reach(wanted).await {
            given_up = published - arrivals.slowest();
        }
    }
    arrivals.reach(published - given_up).await;
    let elapsed = started.elapsed();
    let usage = watch.and_then(Watch::end);
    progress.finish();
    let delivered = arrivals.total();
    receiving.abort_all();
    Ok(Report {
        setting: format!("{published} published to {subscriptions} subscriptions of {topic}"),
        size: load.size,
        messages: delivered,
        lost: Some((published * u64::from(subscriptions)).saturating_sub(delivered)),
        latencies,
        latency_of: "publish to acknowledgement",
        elapsed,
        usage,
        ..Report::new("fanout")
    })
}

async fn receive(mut inlet: Inlet, arrivals: Arc<Arrivals>, index: usize, progress: Progress) {
    let (mut taken, mut acked) = (Vec::new(), Latencies::new());
    // It ends with the run; a failure shows as what is missing.
    while let Ok(Ok(())) = tokio::time::timeout(STALL_MAX, inlet.take(&mut taken, &mut acked)).await
    {
        arrivals.counts[index].fetch_add(taken.len() as u64, Ordering::AcqRel);
        progress.more(taken.len() as u64);
        taken.clear();
        arrivals.news.notify_one();
    }
}
