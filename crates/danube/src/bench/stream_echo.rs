//! `danube bench echo --stream`: what a bare bidirectional stream of batches costs.
//!
//! The client sends the same encoded batch again and again, the server answers each with an ack
//! and does nothing else with it; HTTP/2 is set as the broker and the client library set it. No
//! broker can be faster on this machine, so it is what the native wire is held against.

use super::echo::{ServerProcess, setting};
use super::load::{Extent, Load, Pace};
use super::process::Watch;
use super::report::{Latencies, Progress, Report};
use crate::channel;
use crate::compat;
use crate::failure::Failure;
use bytes::BytesMut;
use danube_core::WallMs;
use danube_sdk::Client;
use danube_wire::proto::stream::PublishAck;
use danube_wire::stream::client::StreamClient;
use danube_wire::stream::server::{Stream, StreamServer};
use danube_wire::stream::{
    Batch, ConsumeRequest, ConsumeResponse, EncodedMessages, Message, PublishRequest,
    PublishResponse,
};
use futures::StreamExt;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

/// As the broker has it.
pub(super) const STREAM_WINDOW_LEN: u32 = 4 << 20;
/// As the broker has it.
pub(super) const CONNECTION_WINDOW_LEN: u32 = 16 << 20;
/// As the broker has it.
pub(super) const FRAME_LEN_MAX: u32 = 256 << 10;
/// Messages of a batch when nobody says.
const BATCH_DEFAULT: u32 = 100;
/// Longest wait for an ack.
const STALL_MAX: Duration = Duration::from_secs(30);

/// Starts the server, drives it, and ends it.
///
/// # Errors
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the server process cannot be started.
pub(super) async fn measure(extent: Extent, load: &Load) -> Result<Report, Failure> {
    let server = ServerProcess::start()?;
    let mut channels = Vec::new();
    for _ in 0..load.connections {
        let connected = Client::raw_channel(&server.url).await;
        let failed = |error| crate::wire::failure("the echo server cannot be reached", &error);
        channels.push(connected.map_err(failed)?);
    }
    let progress = Progress::new("warming up");
    drive(&channels, load, Pace::of_count(load.warm_up), &progress).await?;
    progress.finish();

    let progress = Progress::new("echoing");
    let watch = Watch::start(server.process())?;
    let started = Instant::now();
    let latencies = drive(&channels, load, Pace::starting_now(extent), &progress).await?;
    let elapsed = started.elapsed();
    let usage = watch.and_then(Watch::end);
    progress.finish();
    let batch = load.batch.unwrap_or(BATCH_DEFAULT);
    Ok(Report {
        setting: format!("batches of {batch}, {}", setting(load)),
        size: load.size,
        messages: latencies.count(),
        latencies,
        latency_of: "batch to ack",
        elapsed,
        usage,
        ..Report::new("echo --stream")
    })
}

async fn drive(
    channels: &[Channel],
    load: &Load,
    pace: Pace,
    progress: &Progress,
) -> Result<Latencies, Failure> {
    let pace = Arc::new(pace);
    let mut tasks = JoinSet::new();
    for (index, channel) in (0..).zip(channels) {
        let (channel, load) = (channel.clone(), load.clone());
        tasks.spawn(run(channel, load, index, Arc::clone(&pace), progress.clone()));
    }
    let mut latencies = Latencies::new();
    while let Some(ended) = tasks.join_next().await {
        let failed = |status| channel::failure("the echo server failed", &status);
        latencies.add(&ended.expect("a lane does not panic").map_err(failed)?);
    }
    Ok(latencies)
}

async fn run(
    channel: Channel,
    load: Load,
    index: u32,
    pace: Arc<Pace>,
    progress: Progress,
) -> Result<Latencies, Status> {
    let count = load.batch.unwrap_or(BATCH_DEFAULT);
    let batches_max = (load.in_flight_of(index) / count as usize).max(1);
    let (outgoing, requests) = mpsc::channel(batches_max);
    let requests = Requests(requests);
    let mut answers = StreamClient::new(channel).publish(requests).await?.into_inner();
    let messages = encoded(&load, count);
    let mut waiting = VecDeque::new();
    let (mut latencies, mut more, mut first_sequence) = (Latencies::new(), true, 1);
    while more || !waiting.is_empty() {
        while more && waiting.len() < batches_max {
            more = (0..count).all(|_| pace.take().is_some());
            if more {
                let messages = messages.clone();
                waiting.push_back(Instant::now());
                let batch = Batch { producer: 1, first_sequence, messages };
                first_sequence += u64::from(count);
                let sent = outgoing.send(batch).await;
                sent.map_err(|_| Status::unavailable("the stream ended"))?;
            }
        }
        if waiting.is_empty() {
            break;
        }
        let answer = tokio::time::timeout(STALL_MAX, answers.message()).await;
        let answer = answer.map_err(|_| Status::deadline_exceeded("no ack for too long"))??;
        let acks = answer.ok_or_else(|| Status::unavailable("the stream ended"))?.acks;
        for at in waiting.drain(..acks.len()) {
            let at: Instant = at;
            latencies.record_many(at.elapsed(), count.into());
            progress.more(count.into());
        }
    }
    Ok(latencies)
}

fn encoded(load: &Load, count: u32) -> EncodedMessages {
    let (payload, mut out) = (load.payload(), BytesMut::new());
    let publish_time = WallMs(compat::unix_ms());
    let message = Message { payload: &payload, publish_time, ..Message::default() };
    (0..count).for_each(|_| EncodedMessages::put(&mut out, &message));
    EncodedMessages::new(out.freeze(), count)
}

/// Batches as they come, each a request of its own.
struct Requests(mpsc::Receiver<Batch>);

impl futures::Stream for Requests {
    type Item = PublishRequest;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<PublishRequest>> {
        let request = |batch| PublishRequest { batches: vec![batch], ..PublishRequest::default() };
        self.0.poll_recv(context).map(|batch| batch.map(request))
    }
}

/// The server's half: an ack for each batch.
pub(super) fn service() -> StreamServer<Echo> {
    StreamServer::new(Echo)
}

/// Answers and forgets.
pub(super) struct Echo;

type Answers<T> = Pin<Box<dyn futures::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Stream for Echo {
    type PublishStream = Answers<PublishResponse>;
    type ConsumeStream = Answers<ConsumeResponse>;

    async fn publish(
        &self,
        request: Request<Streaming<PublishRequest>>,
    ) -> Result<Response<Self::PublishStream>, Status> {
        let acks = request.into_inner().map(|request| {
            let batches = request?.batches.into_iter();
            let acks = batches.map(|batch| PublishAck {
                producer: batch.producer,
                first_sequence: batch.first_sequence,
                first_offset: batch.first_sequence,
                count: batch.messages.count(),
            });
            Ok(PublishResponse { acks: acks.collect(), ..PublishResponse::default() })
        });
        Ok(Response::new(Box::pin(acks)))
    }

    async fn consume(
        &self,
        _: Request<Streaming<ConsumeRequest>>,
    ) -> Result<Response<Self::ConsumeStream>, Status> {
        Err(Status::unimplemented("the echo server keeps nothing"))
    }
}
