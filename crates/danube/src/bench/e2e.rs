//! `danube bench e2e`: from the call that publishes to the arrival at a consumer.
//!
//! With a rate, messages are due at their times and their age counts from then, whatever became of
//! those before. Without one, on a reliable topic, a message is in flight until it arrived, so that
//! the time is that of the path and not of a growing backlog. On a non-reliable one it is in flight
//! until the broker answered, because what is dropped never arrives; the report says how many did
//! not.

use super::drive::drive_from;
use super::inlet::{Inlet, Prepared};
use super::load::{Extent, Load, Pace, Subject, fresh};
use super::outlet::{Outlet, outlets};
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use super::source::{STAMP_LEN, Seen, Source, stamp};
use crate::failure::Failure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// How long a non-reliable topic may be silent before what is missing counts as dropped.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// Publish and receive at the same time, and measure from one end to the other
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    load: Load,
    /// Publish this many messages a second, over all connections together, ready or not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, extent, load, rate } = arguments;
    measure(&subject, extent, &load, rate).await?.print(load.output)
}

/// Measures, after a warm-up.
///
/// # Errors
/// As [`run`].
pub async fn measure(
    subject: &Subject,
    extent: Extent,
    load: &Load,
    rate: Option<u32>,
) -> Result<Report, Failure> {
    if load.size_bytes() < STAMP_LEN {
        return Err(Failure::usage(format!("--size must be at least {STAMP_LEN} here")));
    }
    let topic = subject.make_topic().await?;
    let opened = outlets(subject, topic.as_str(), load).await?;
    let outlets = opened.into_iter().map(Arc::new).collect();
    let prepared = Prepared::new(subject, topic.as_str(), &fresh("bench"), "bench").await?;
    let inlet = prepared.open().await?;
    let course = Course { load: load.clone(), reliable: subject.is_reliable(), rate, outlets };
    let course = Arc::new(course);

    let progress = Progress::new("warming up");
    let (inlet, _) = course.start(inlet, Pace::of_count(load.warm_up), &progress).await?;
    progress.finish();

    let progress = Progress::new("sending");
    let watch = Watch::start(subject.process())?;
    let (_, outcome) = course.start(inlet, Pace::starting_now(extent), &progress).await?;
    let usage = watch.and_then(Watch::end);
    progress.finish();
    let pace = match rate {
        Some(rate) => format!("{rate} messages a second"),
        None => super::echo::setting(load),
    };
    Ok(Report {
        setting: format!("{pace}, over {topic}"),
        size: load.size,
        messages: outcome.seen.unique,
        lost: Some(outcome.sent - outcome.seen.unique),
        duplicates: Some(outcome.seen.duplicates),
        latencies: outcome.latencies,
        latency_of: "call to arrival",
        elapsed: outcome.elapsed,
        usage,
        ..Report::new("e2e")
    })
}

/// The publishing end of a run.
struct Course {
    load: Load,
    reliable: bool,
    rate: Option<u32>,
    outlets: Vec<Arc<Outlet>>,
}

struct Outcome {
    sent: u64,
    seen: Seen,
    latencies: Latencies,
    elapsed: Duration,
}

impl Course {
    /// Runs on a thread of the runtime, as a service's consumer does: waking the program's first
    /// thread for each message would be measured too.
    async fn start(
        self: &Arc<Course>,
        mut inlet: Inlet,
        pace: Pace,
        progress: &Progress,
    ) -> Result<(Inlet, Outcome), Failure> {
        let (course, progress) = (Arc::clone(self), progress.clone());
        let running = tokio::spawn(async move {
            let outcome = course.run(&mut inlet, pace, &progress).await?;
            Ok((inlet, outcome))
        });
        running.await.expect("a course does not panic")
    }

    async fn run(
        &self,
        inlet: &mut Inlet,
        pace: Pace,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let epoch = Instant::now();
        let in_flight = usize::try_from(self.load.in_flight).expect("within the flag's range");
        let permits = Arc::new(Semaphore::new(in_flight));
        let mut sending = self.send(epoch, pace, &permits);
        let mut sent = None;
        let (mut seen, mut latencies, mut acked) =
            (Seen::default(), Latencies::new(), Latencies::new());
        let (mut taken, mut last_arrival) = (Vec::new(), epoch);
        while sent.is_none_or(|sent| seen.unique < sent) {
            let is_silent = async {
                match (self.reliable, sent) {
                    (false, Some(_)) => tokio::time::sleep(SILENCE_MAX).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut sending, if sent.is_none() => {
                    sent = Some(ended.expect("an outlet does not panic")?);
                }
                took = inlet.take(&mut taken, &mut acked) => {
                    took?;
                    last_arrival = Instant::now();
                    for payload in taken.drain(..) {
                        let (at, number) = stamp(&payload).unwrap_or_default();
                        latencies.record((last_arrival - epoch).saturating_sub(at));
                        seen.mark(number);
                        if self.reliable && self.rate.is_none() {
                            permits.add_permits(1);
                        }
                        progress.one_more();
                    }
                }
                () = is_silent => break,
            }
        }
        inlet.settle(&mut acked).await?;
        let sent = sent.expect("the loop ends when it is known");
        Ok(Outcome { sent, seen, latencies, elapsed: last_arrival.duration_since(epoch) })
    }

    /// Publishes in the background; the answer is how many messages.
    fn send(
        &self,
        epoch: Instant,
        pace: Pace,
        permits: &Arc<Semaphore>,
    ) -> JoinHandle<Result<u64, Failure>> {
        let (load, outlets) = (self.load.clone(), self.outlets.clone());
        let (reliable, rate) = (self.reliable, self.rate);
        let (pace, permits) = (Arc::new(pace), Arc::clone(permits));
        tokio::spawn(async move {
            let source = |_| {
                let source = Source::new(Arc::clone(&pace), load.payload()).stamped(epoch);
                match rate {
                    Some(rate) => source.paced((rate / load.connections).max(1), epoch),
                    None if reliable => source.limited(Arc::clone(&permits)),
                    None => source,
                }
            };
            let quiet = Progress::none();
            drive_from(&outlets, &load, source, &quiet).await.map(|sent| sent.latencies.count())
        })
    }
}
