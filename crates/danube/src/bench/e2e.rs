//! `danube bench e2e`: from the call that publishes to the arrival at a consumer.
//!
//! On a reliable topic a message is in flight until it arrived, so that the time is that of the
//! path and not of a growing backlog. On a non-reliable one it is in flight until the broker
//! answered, because what is dropped never arrives; the report says how many did not.

use super::consume::Subscriber;
use super::drive::{Lane, STALL_MAX, lanes, stalled};
use super::load::{Extent, Load, Pace, Subject};
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use crate::channel;
use crate::failure::Failure;
use bytes::{BufMut, Bytes, BytesMut};
use danube_wire::proto::danube::StreamMessage;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tonic::{Status, Streaming};

/// How long a non-reliable topic may be silent before what is missing counts as dropped.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// Acks in flight; beyond them nothing is received.
const ACKS_MAX: usize = 256;

/// Publish and receive at the same time, and measure from one end to the other
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    load: Load,
}

/// Runs it and prints the report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { subject, extent, load } = arguments;
    let topic = subject.topic()?;
    let reliable = subject.is_reliable();
    let lanes = lanes(&subject.service_addr, topic.as_str(), reliable, &load).await?;
    let subscriber = Subscriber::attach(&subject.service_addr, topic.as_str()).await?;
    let refused = |status: Status| channel::failure("a message did not get through", &status);
    let mut stream = subscriber.open().await.map_err(refused)?;
    let course = Course { load: load.clone(), reliable, lanes, subscriber };

    let progress = Progress::new("warming up");
    let warm_up = course.run(&mut stream, Pace::of_count(load.warm_up), &progress).await;
    warm_up.map_err(refused)?;
    progress.finish();

    let progress = Progress::new("sending");
    let watch = Watch::start(subject.pid)?;
    let ended = course.run(&mut stream, Pace::starting_now(extent), &progress).await;
    let outcome = ended.map_err(refused)?;
    let usage = watch.and_then(Watch::end);
    progress.finish();
    let lost = match outcome.sent - outcome.latencies.count() {
        0 => String::new(),
        lost => format!(", {lost} dropped"),
    };
    let report = Report {
        name: "e2e",
        setting: format!("{}, over {topic}{lost}", super::echo::setting(&load)),
        size: load.size,
        latencies: outcome.latencies,
        latency_of: "call to arrival",
        elapsed: outcome.elapsed,
        usage,
    };
    report.print(load.output)
}

/// Both ends of a run.
struct Course {
    load: Load,
    reliable: bool,
    lanes: Vec<Lane>,
    subscriber: Subscriber,
}

struct Outcome {
    sent: u64,
    latencies: Latencies,
    elapsed: Duration,
}

impl Course {
    async fn run(
        &self,
        stream: &mut Streaming<StreamMessage>,
        pace: Pace,
        progress: &Progress,
    ) -> Result<Outcome, Status> {
        let started = Instant::now();
        let in_flight = usize::try_from(self.load.in_flight).expect("within the flag's range");
        let permits = Arc::new(Semaphore::new(in_flight));
        let pace = Arc::new(pace);
        let (all_sent, mut totals) = mpsc::channel(self.lanes.len());
        let mut publishers = tokio::task::JoinSet::new();
        for lane in &self.lanes {
            let publisher = Publisher {
                lane: lane.clone(),
                pace: Arc::clone(&pace),
                permits: Arc::clone(&permits),
                size: self.load.size_bytes(),
                started,
                gives_back: !self.reliable,
            };
            let all_sent = all_sent.clone();
            publishers.spawn(async move {
                // Nobody listens any more only when the run has failed already.
                let _ = all_sent.send(publisher.run().await).await;
            });
        }
        drop(all_sent);
        let mut receiver = Receiver { course: self, permits: &permits, started, progress };
        receiver.run(stream, &mut totals).await
    }
}

struct Publisher {
    lane: Lane,
    pace: Arc<Pace>,
    permits: Arc<Semaphore>,
    size: usize,
    started: Instant,
    gives_back: bool,
}

impl Publisher {
    /// Publishes until the pace ends; returns how many messages.
    async fn run(self) -> Result<u64, Status> {
        let mut calls = FuturesUnordered::new();
        let mut sent = 0;
        let mut more = true;
        while more || !calls.is_empty() {
            tokio::select! {
                Some(answer) = calls.next(), if !calls.is_empty() => {
                    let _: Duration = answer?;
                    if self.gives_back {
                        self.permits.add_permits(1);
                    }
                }
                permit = self.permits.acquire(), if more => {
                    let permit = permit.expect("the semaphore is never closed");
                    match self.pace.take() {
                        Some(number) => {
                            permit.forget();
                            sent += 1;
                            calls.push(self.lane.send(number, Some(self.payload())));
                        }
                        None => more = false,
                    }
                }
            }
        }
        Ok(sent)
    }

    /// The time since the start, and then as many bytes as are missing.
    fn payload(&self) -> Bytes {
        let mut payload = BytesMut::with_capacity(self.size);
        let us = self.started.elapsed().as_micros();
        payload.put_u64(u64::try_from(us).unwrap_or(u64::MAX));
        payload.put_bytes(b'd', self.size.saturating_sub(8));
        payload.freeze()
    }
}

struct Receiver<'a> {
    course: &'a Course,
    permits: &'a Semaphore,
    started: Instant,
    progress: &'a Progress,
}

impl Receiver<'_> {
    async fn run(
        &mut self,
        stream: &mut Streaming<StreamMessage>,
        totals: &mut mpsc::Receiver<Result<u64, Status>>,
    ) -> Result<Outcome, Status> {
        let mut latencies = Latencies::new();
        let mut acks = FuturesUnordered::new();
        let mut sent = 0;
        let mut publishing = true;
        let mut last_arrival = self.started;
        while publishing || latencies.count() < sent || !acks.is_empty() {
            let silence_max =
                if publishing || self.course.reliable { STALL_MAX } else { SILENCE_MAX };
            tokio::select! {
                total = totals.recv(), if publishing => match total {
                    Some(total) => sent += total?,
                    None => publishing = false,
                },
                Some(ack) = acks.next(), if !acks.is_empty() => {
                    let _: Duration = ack?;
                }
                message = stream.message(), if acks.len() < ACKS_MAX => {
                    let message = message?.ok_or_else(|| Status::unavailable("the stream ended"))?;
                    last_arrival = Instant::now();
                    latencies.record(self.age(&message.payload));
                    self.progress.one_more();
                    if self.course.reliable {
                        self.permits.add_permits(1);
                        acks.push(self.course.subscriber.ack(message));
                    }
                }
                () = tokio::time::sleep(silence_max) => match self.course.reliable {
                    true => return Err(stalled()),
                    false if publishing => return Err(stalled()),
                    false => break,
                },
            }
        }
        Ok(Outcome { sent, latencies, elapsed: last_arrival.duration_since(self.started) })
    }

    fn age(&self, payload: &[u8]) -> Duration {
        let sent_us = payload.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        self.started.elapsed().saturating_sub(Duration::from_micros(sent_us))
    }
}
