//! A connection that publishes over the compatible wire, one unary call per message.

use super::load::Load;
use crate::channel::{self, call};
use crate::compat::{self, SchemaTag};
use crate::failure::Failure;
use bytes::Bytes;
use danube_wire::proto::danube as proto;
use proto::producer_service_client::ProducerServiceClient;
use std::time::{Duration, Instant};
use tonic::Status;
use tonic::transport::Channel;

/// One connection and the message it publishes again and again.
#[derive(Debug, Clone)]
pub struct Lane {
    client: ProducerServiceClient<Channel>,
    message: proto::StreamMessage,
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
        Lane { client: ProducerServiceClient::new(channel), message }
    }

    /// Attaches a producer to `topic`.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn attach(
        url: &str,
        channel: Channel,
        topic: &str,
        reliable: bool,
        (load, index): (&Load, u32),
    ) -> Result<Lane, Failure> {
        let strategy = match reliable {
            true => proto::DispatchStrategy::Reliable,
            false => proto::DispatchStrategy::NonReliable,
        };
        let mut lane = Lane::bare(channel, load, index);
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
        Ok(lane)
    }

    /// Has every message carry this schema.
    pub fn tag(&mut self, schema: &SchemaTag) {
        self.message.schema_id = Some(schema.schema_id);
        self.message.schema_version = Some(schema.version);
    }

    /// One call with its time.
    ///
    /// # Errors
    /// The status of the broker.
    pub async fn send(&self, number: u64, payload: Bytes) -> Result<Duration, Status> {
        let mut client = self.client.clone();
        let mut message = self.message.clone();
        (message.request_id, message.payload) = (number, payload);
        let started = Instant::now();
        client.send_message(message).await?;
        Ok(started.elapsed())
    }
}
