//! A consumer on the compatible wire, with the plain generated client.

use crate::channel::{self, call};
use crate::failure::Failure;
use danube_wire::proto::danube as proto;
use proto::consumer_service_client::ConsumerServiceClient;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// A consumer on one topic.
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
    pub async fn attach(
        url: &str,
        topic: &str,
        subscription: &str,
        name: &str,
    ) -> Result<Subscriber, Failure> {
        let mut client = ConsumerServiceClient::new(channel::connect(url).await?);
        let request = proto::ConsumerRequest {
            request_id: 0,
            topic_name: topic.to_owned(),
            consumer_name: name.to_owned(),
            subscription: subscription.to_owned(),
            subscription_type: proto::consumer_request::SubscriptionType::Shared.into(),
            key_filters: Vec::new(),
        };
        let answer = call(client.subscribe(request)).await.map_err(|status| {
            channel::failure(&format!("no subscription on topic `{topic}`"), &status)
        })?;
        let subscription = subscription.to_owned();
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
