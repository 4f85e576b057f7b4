//! `danube bench consume`: how fast a filled subscription is received and acknowledged.
//!
//! The subscription is made first, then filled without a consumer; the clock runs from the
//! opening of the stream to the last acknowledgement.

use super::drive::{STALL_MAX, drive, lanes, stalled};
use super::load::{Load, Pace, Subject};
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use crate::channel::{self, call};
use crate::compat;
use crate::failure::Failure;
use danube_wire::proto::danube as proto;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::consumer_service_client::ConsumerServiceClient;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

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
    if !subject.is_reliable() {
        return Err(Failure::usage("a non-reliable topic keeps nothing to consume later")
            .help("use danube bench e2e --non-reliable"));
    }
    let topic = subject.topic()?;
    let lanes = lanes(&subject.service_addr, topic.as_str(), true, &load).await?;
    let subscriber = Subscriber::attach(&subject.service_addr, topic.as_str()).await?;
    let progress = Progress::new("filling");
    drive(&lanes, Pace::of_count(count), &progress).await?;
    progress.finish();

    let progress = Progress::new("consuming");
    let watch = Watch::start(subject.pid)?;
    let in_flight = usize::try_from(load.in_flight).expect("within the range of the flag");
    let measured = drain(subscriber, count, in_flight, &progress).await;
    let (latencies, elapsed) =
        measured.map_err(|status| channel::failure("consuming failed", &status))?;
    let usage = watch.and_then(Watch::end);
    progress.finish();
    let report = Report {
        name: "consume",
        setting: format!("up to {in_flight} acks in flight, from {topic}"),
        size: load.size,
        latencies,
        latency_of: "ack to its answer",
        elapsed,
        usage,
    };
    report.print(load.output)
}

async fn drain(
    subscriber: Subscriber,
    count: u64,
    acks_max: usize,
    progress: &Progress,
) -> Result<(Latencies, Duration), Status> {
    let mut latencies = Latencies::new();
    let mut acks = FuturesUnordered::new();
    let started = Instant::now();
    let mut stream = subscriber.open().await?;
    let mut received = 0;
    while latencies.count() < count {
        tokio::select! {
            Some(ack) = acks.next(), if !acks.is_empty() => {
                latencies.record(ack?);
                progress.one_more();
            }
            message = stream.message(), if received < count && acks.len() < acks_max => {
                let message = message?.ok_or_else(|| Status::unavailable("the stream ended"))?;
                received += 1;
                acks.push(subscriber.ack(message));
            }
            () = tokio::time::sleep(STALL_MAX) => return Err(stalled()),
        }
    }
    Ok((latencies, started.elapsed()))
}

/// A consumer on one topic, with the plain generated client. Its subscription is a new one, so
/// that nothing of an earlier run is measured.
#[derive(Debug, Clone)]
pub struct Subscriber {
    client: ConsumerServiceClient<Channel>,
    subscription: String,
    consumer_id: u64,
}

impl Subscriber {
    /// Connects and subscribes.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn attach(url: &str, topic: &str) -> Result<Subscriber, Failure> {
        let mut client = ConsumerServiceClient::new(channel::connect(url).await?);
        let subscription = format!("bench-{}", compat::unix_ms());
        let request = proto::ConsumerRequest {
            request_id: 0,
            topic_name: topic.to_owned(),
            consumer_name: "bench".into(),
            subscription: subscription.clone(),
            subscription_type: proto::consumer_request::SubscriptionType::Shared.into(),
            key_filters: Vec::new(),
        };
        let answer = call(client.subscribe(request)).await.map_err(|status| {
            channel::failure(&format!("no subscription on topic `{topic}`"), &status)
        })?;
        Ok(Subscriber { client, subscription, consumer_id: answer.consumer_id })
    }

    /// Opens the stream.
    ///
    /// # Errors
    /// The status of the broker.
    pub async fn open(&self) -> Result<Streaming<proto::StreamMessage>, Status> {
        let request = proto::ReceiveRequest { request_id: 0, consumer_id: self.consumer_id };
        call(self.client.clone().receive_messages(request)).await
    }

    /// Acknowledges one message, and says how long that took.
    ///
    /// # Errors
    /// The status of the broker.
    pub async fn ack(&self, message: proto::StreamMessage) -> Result<Duration, Status> {
        let request = proto::AckRequest {
            request_id: message.request_id,
            msg_id: message.msg_id,
            subscription_name: self.subscription.clone(),
        };
        let started = Instant::now();
        self.client.clone().ack(request).await?;
        Ok(started.elapsed())
    }
}
