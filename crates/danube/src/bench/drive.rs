//! Publishing at full speed: a fixed number of calls in flight on each connection.
//!
//! One task per connection drives all its calls, so that the client costs little on a machine it
//! shares with the broker. Broker and echo server are driven by the very same code.

use super::load::{Load, Pace};
use super::report::{Latencies, Progress};
use crate::channel::{self, call};
use crate::compat;
use crate::failure::Failure;
use danube_wire::proto::danube as proto;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proto::producer_service_client::ProducerServiceClient;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::transport::Channel;

/// When no call at all is answered for this long, the run has failed.
pub const STALL_MAX: Duration = Duration::from_secs(30);

/// One connection and the message it publishes again and again.
#[derive(Debug, Clone)]
pub struct Lane {
    client: ProducerServiceClient<Channel>,
    message: proto::StreamMessage,
    in_flight: usize,
}

/// What a run gave.
#[derive(Debug)]
pub struct Measured {
    /// From call to answer.
    pub latencies: Latencies,
    /// From the first call to the last answer.
    pub elapsed: Duration,
}

impl Lane {
    /// A lane to a server that knows no producers.
    pub fn bare(channel: Channel, load: &Load, index: u32) -> Lane {
        let message = proto::StreamMessage {
            msg_id: Some(proto::MsgId {
                producer_id: 1,
                topic_name: "/default/bench".into(),
                broker_addr: String::new(),
                topic_offset: 0,
            }),
            payload: load.payload(),
            publish_time: compat::unix_ms(),
            producer_name: format!("bench-{index}"),
            ..proto::StreamMessage::default()
        };
        Lane {
            client: ProducerServiceClient::new(channel),
            message,
            in_flight: load.in_flight_of(index),
        }
    }

    /// Has every message carry this schema id and version.
    pub fn tag(&mut self, schema_id: u64, version: u32) {
        self.message.schema_id = Some(schema_id);
        self.message.schema_version = Some(version);
    }

    /// One call with its time, carrying `payload` instead of the usual one where it is given.
    pub async fn send(
        &self,
        number: u64,
        payload: Option<bytes::Bytes>,
    ) -> Result<Duration, Status> {
        let mut client = self.client.clone();
        let mut message = self.message.clone();
        message.request_id = number;
        if let Some(payload) = payload {
            message.payload = payload;
        }
        let started = Instant::now();
        client.send_message(message).await?;
        Ok(started.elapsed())
    }
}

/// Connects and attaches one producer per connection to `topic`.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn lanes(
    url: &str,
    topic: &str,
    reliable: bool,
    load: &Load,
) -> Result<Vec<Lane>, Failure> {
    let strategy = match reliable {
        true => proto::DispatchStrategy::Reliable,
        false => proto::DispatchStrategy::NonReliable,
    };
    let mut lanes = Vec::new();
    for index in 0..load.connections {
        let mut lane = Lane::bare(channel::connect(url).await?, load, index);
        let request = proto::ProducerRequest {
            request_id: 0,
            producer_name: lane.message.producer_name.clone(),
            topic_name: topic.to_owned(),
            schema_ref: None,
            producer_access_mode: proto::ProducerAccessMode::Shared.into(),
            dispatch_strategy: strategy.into(),
        };
        let answer = call(lane.client.create_producer(request)).await.map_err(|status| {
            channel::failure(&format!("no producer on topic `{topic}`"), &status)
        })?;
        lane.message.msg_id = Some(proto::MsgId {
            producer_id: answer.producer_id,
            topic_name: topic.to_owned(),
            broker_addr: url.to_owned(),
            topic_offset: 0,
        });
        lanes.push(lane);
    }
    Ok(lanes)
}

/// Runs all lanes until the pace ends and the last answer is in.
///
/// # Errors
/// The first refused call.
pub async fn drive(lanes: &[Lane], pace: Pace, progress: &Progress) -> Result<Measured, Failure> {
    let pace = Arc::new(pace);
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for lane in lanes {
        tasks.spawn(run_lane(lane.clone(), Arc::clone(&pace), progress.clone()));
    }
    let mut latencies = Latencies::new();
    while let Some(ended) = tasks.join_next().await {
        let of_lane = ended.expect("a lane does not panic");
        latencies
            .add(&of_lane.map_err(|status| channel::failure("a publish was refused", &status))?);
    }
    Ok(Measured { latencies, elapsed: started.elapsed() })
}

async fn run_lane(lane: Lane, pace: Arc<Pace>, progress: Progress) -> Result<Latencies, Status> {
    let mut latencies = Latencies::new();
    let mut calls = FuturesUnordered::new();
    loop {
        while calls.len() < lane.in_flight
            && let Some(number) = pace.take()
        {
            calls.push(lane.send(number, None));
        }
        let answer = tokio::time::timeout(STALL_MAX, calls.next()).await;
        match answer.map_err(|_| stalled())? {
            None => return Ok(latencies),
            Some(time) => latencies.record(time?),
        }
        progress.one_more();
    }
}

/// Nothing was answered for [`STALL_MAX`].
pub fn stalled() -> Status {
    Status::deadline_exceeded(format!("no answer to any call for {STALL_MAX:?}"))
}
