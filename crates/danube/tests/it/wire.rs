//! The compatible wire and our control service, in the few calls that these tests need.

use danube_wire::proto::control::control_client::ControlClient;
use danube_wire::proto::control::{
    CreateTopicRequest, DescribeTopicRequest, DescribeTopicResponse,
};
use danube_wire::proto::danube::consumer_request::SubscriptionType;
use danube_wire::proto::danube::consumer_service_client::ConsumerServiceClient;
use danube_wire::proto::danube::producer_service_client::ProducerServiceClient;
use danube_wire::proto::danube::{
    AckRequest, ConsumerRequest, DispatchStrategy, MsgId, NackRequest, ProducerRequest,
    ReceiveRequest, StreamMessage,
};
use std::future::Future;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

/// Nothing a test waits for takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Awaits `future`; panics when it hangs.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited {PATIENCE:?} in vain for {what}"),
    }
}

/// A connection of its own.
pub async fn connect(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("a well-formed address");
    within("a connection", endpoint.connect()).await.expect("the broker serves")
}

/// The client port.
#[derive(Clone)]
pub struct Wire {
    pub producers: ProducerServiceClient<Channel>,
    pub consumers: ConsumerServiceClient<Channel>,
}

impl Wire {
    pub async fn connect(url: &str) -> Wire {
        let channel = connect(url).await;
        Wire {
            producers: ProducerServiceClient::new(channel.clone()),
            consumers: ConsumerServiceClient::new(channel),
        }
    }

    /// CreateProducer for a Reliable topic; the producer's id.
    pub async fn create_producer(&mut self, topic: &str, name: &str) -> Result<u64, Status> {
        self.create_producer_as(topic, name, DispatchStrategy::Reliable).await
    }

    /// CreateProducer for a topic that is not kept; the producer's id.
    pub async fn create_fleeting_producer(
        &mut self,
        topic: &str,
        name: &str,
    ) -> Result<u64, Status> {
        self.create_producer_as(topic, name, DispatchStrategy::NonReliable).await
    }

    async fn create_producer_as(
        &mut self,
        topic: &str,
        name: &str,
        strategy: DispatchStrategy,
    ) -> Result<u64, Status> {
        let request = ProducerRequest {
            request_id: 1,
            producer_name: name.into(),
            topic_name: topic.into(),
            dispatch_strategy: strategy.into(),
            ..ProducerRequest::default()
        };
        let answer = within("CreateProducer", self.producers.create_producer(request)).await?;
        Ok(answer.into_inner().producer_id)
    }

    pub async fn send(&mut self, message: StreamMessage) -> Result<(), Status> {
        within("SendMessage", self.producers.send_message(message)).await.map(drop)
    }

    /// Subscribe; the consumer's id.
    pub async fn subscribe(
        &mut self,
        topic: &str,
        subscription: &str,
        name: &str,
    ) -> Result<u64, Status> {
        let request = ConsumerRequest {
            request_id: 1,
            topic_name: topic.into(),
            consumer_name: name.into(),
            subscription: subscription.into(),
            subscription_type: SubscriptionType::Exclusive.into(),
            key_filters: Vec::new(),
        };
        let answer = within("Subscribe", self.consumers.subscribe(request)).await?;
        Ok(answer.into_inner().consumer_id)
    }

    pub async fn receive(&mut self, consumer_id: u64) -> Result<Streaming<StreamMessage>, Status> {
        let request = ReceiveRequest { request_id: 1, consumer_id };
        let opening = self.consumers.receive_messages(request);
        Ok(within("the headers of ReceiveMessages", opening).await?.into_inner())
    }

    pub async fn nack(
        &mut self,
        message: &StreamMessage,
        subscription: &str,
    ) -> Result<(), Status> {
        let request = NackRequest {
            request_id: message.request_id,
            msg_id: message.msg_id.clone(),
            subscription_name: subscription.into(),
            ..NackRequest::default()
        };
        within("Nack", self.consumers.nack(request)).await.map(drop)
    }

    pub async fn ack(&mut self, message: &StreamMessage, subscription: &str) -> Result<(), Status> {
        let request = AckRequest {
            request_id: message.request_id,
            msg_id: message.msg_id.clone(),
            subscription_name: subscription.into(),
        };
        within("Ack", self.consumers.ack(request)).await.map(drop)
    }
}

/// A message as a client builds it.
pub fn message(topic: &str, producer_id: u64, producer: &str, payload: Vec<u8>) -> StreamMessage {
    StreamMessage {
        request_id: 7,
        msg_id: Some(MsgId { producer_id, topic_name: topic.into(), ..MsgId::default() }),
        payload: payload.into(),
        publish_time: 1_700_000_000_000,
        producer_name: producer.into(),
        ..StreamMessage::default()
    }
}

/// Offset of a delivered message.
pub fn offset_of(message: &StreamMessage) -> u64 {
    message.msg_id.as_ref().expect("present on delivery").topic_offset
}

/// The admin port.
pub struct Control(ControlClient<Channel>);

impl Control {
    pub async fn connect(url: &str) -> Control {
        Control(ControlClient::new(connect(url).await))
    }

    pub async fn create_topic(&mut self, name: &str, intent: &str) {
        let request = CreateTopicRequest {
            name: name.into(),
            intent: Some(intent.into()),
            ..CreateTopicRequest::default()
        };
        within("CreateTopic", self.0.create_topic(request)).await.expect("created");
    }

    pub async fn describe(&mut self, topic: &str) -> DescribeTopicResponse {
        let request = DescribeTopicRequest { name: topic.into() };
        let answer = within("DescribeTopic", self.0.describe_topic(request)).await;
        answer.expect("described").into_inner()
    }

    /// Messages of a subscription that are not finished.
    pub async fn backlog(&mut self, topic: &str, subscription: &str) -> u64 {
        let described = self.describe(topic).await.subscriptions;
        let found = described.iter().find(|s| s.name == subscription);
        found.unwrap_or_else(|| panic!("subscription {subscription} of {topic} is there")).backlog
    }

    /// Waits until a consumer has a stream open.
    pub async fn connected(&mut self, topic: &str, subscription: &str, consumer: &str) {
        let waiting = async {
            loop {
                let described = self.describe(topic).await.subscriptions;
                let mut found = described.iter().filter(|s| s.name == subscription);
                if found.any(|s| s.consumers.iter().any(|c| c.name == consumer && c.connected)) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("the consumer connects");
    }
}
