//! The wire without the client: generated stubs, the admin services, and our own description of a
//! topic, by which a test knows that a stream is open.

use crate::broker::Broker;
use crate::clients::within;
use bytes::Bytes;
use danube_core::admin_proto::topic_admin_client::TopicAdminClient;
use danube_core::admin_proto::{
    NewTopicRequest, PartitionedTopicRequest, SetSubscriptionFailurePolicyRequest,
    SubscriptionBackoffStrategy, SubscriptionFailurePolicy, SubscriptionPoisonPolicy, TopicRequest,
};
use danube_core::proto::consumer_request::SubscriptionType;
use danube_core::proto::consumer_service_client::ConsumerServiceClient;
use danube_core::proto::discovery_client::DiscoveryClient;
use danube_core::proto::health_check_client::HealthCheckClient;
use danube_core::proto::health_check_request::ClientType;
use danube_core::proto::producer_service_client::ProducerServiceClient;
use danube_core::proto::{
    AckRequest, ConsumerRequest, DispatchStrategy, HealthCheckRequest, MsgId, ProducerRequest,
    ReceiveRequest, StreamMessage,
};
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// Stubs of all services of the client port over one connection.
#[derive(Clone)]
pub struct Wire {
    pub channel: Channel,
    pub producers: ProducerServiceClient<Channel>,
    pub consumers: ConsumerServiceClient<Channel>,
    pub discovery: DiscoveryClient<Channel>,
    pub health: HealthCheckClient<Channel>,
}

impl Wire {
    /// Over a connection of its own.
    pub async fn connect(broker: &Broker) -> Wire {
        let channel = broker.channel().await;
        Wire {
            producers: ProducerServiceClient::new(channel.clone()),
            consumers: ConsumerServiceClient::new(channel.clone()),
            discovery: DiscoveryClient::new(channel.clone()),
            health: HealthCheckClient::new(channel.clone()),
            channel,
        }
    }

    /// CreateProducer; the producer's id.
    pub async fn create_producer(&mut self, topic: &str, name: &str, reliable: bool) -> u64 {
        let delivery =
            if reliable { DispatchStrategy::Reliable } else { DispatchStrategy::NonReliable };
        let request = ProducerRequest {
            request_id: 1,
            producer_name: name.into(),
            topic_name: topic.into(),
            dispatch_strategy: delivery.into(),
            ..ProducerRequest::default()
        };
        let answer = within("CreateProducer", self.producers.create_producer(request)).await;
        answer.expect("the producer is created").into_inner().producer_id
    }

    /// SendMessage.
    pub async fn send(&mut self, message: StreamMessage) -> Result<u64, Status> {
        let answer = within("SendMessage", self.producers.send_message(message)).await;
        Ok(answer?.into_inner().request_id)
    }

    /// Subscribe; the consumer's id.
    pub async fn subscribe(&mut self, request: ConsumerRequest) -> Result<u64, Status> {
        let answer = within("Subscribe", self.consumers.subscribe(request)).await;
        Ok(answer?.into_inner().consumer_id)
    }

    /// ReceiveMessages; returns when the answer's headers are there.
    pub async fn receive(&mut self, consumer_id: u64) -> Result<Streaming<StreamMessage>, Status> {
        let request = ReceiveRequest { request_id: 1, consumer_id };
        let opening = self.consumers.receive_messages(request);
        Ok(within("the headers of ReceiveMessages", opening).await?.into_inner())
    }

    /// Ack.
    pub async fn ack(
        &mut self,
        message: &StreamMessage,
        subscription: &str,
    ) -> Result<u64, Status> {
        let request = AckRequest {
            request_id: message.request_id,
            msg_id: message.msg_id.clone(),
            subscription_name: subscription.into(),
        };
        Ok(within("Ack", self.consumers.ack(request)).await?.into_inner().request_id)
    }

    /// HealthCheck; the raw status number.
    pub async fn health(&mut self, client: ClientType, id: u64) -> Result<i32, Status> {
        let request = HealthCheckRequest { request_id: 1, client: client.into(), id };
        Ok(within("HealthCheck", self.health.health_check(request)).await?.into_inner().status)
    }
}

/// A message as a client builds it.
pub fn message(topic: &str, producer_id: u64, producer: &str, payload: &[u8]) -> StreamMessage {
    StreamMessage {
        request_id: 7,
        msg_id: Some(MsgId { producer_id, topic_name: topic.into(), ..MsgId::default() }),
        payload: Bytes::copy_from_slice(payload),
        publish_time: 1_700_000_000_000,
        producer_name: producer.into(),
        ..StreamMessage::default()
    }
}

/// A Subscribe request as a client builds it.
pub fn consumer(
    topic: &str,
    subscription: &str,
    kind: SubscriptionType,
    name: &str,
) -> ConsumerRequest {
    ConsumerRequest {
        request_id: 1,
        topic_name: topic.into(),
        consumer_name: name.into(),
        subscription: subscription.into(),
        subscription_type: kind.into(),
        key_filters: Vec::new(),
    }
}

/// The next message of a stream.
pub async fn next(stream: &mut Streaming<StreamMessage>) -> StreamMessage {
    let item = within("a message", stream.message()).await.expect("the stream goes on");
    item.expect("the stream has not ended")
}

/// How a stream ends; what comes before that is dropped.
pub async fn end_of(stream: &mut Streaming<StreamMessage>) -> Code {
    loop {
        match within("the end of the stream", stream.message()).await {
            Ok(Some(_)) => {}
            Ok(None) => return Code::Ok,
            Err(status) => return status.code(),
        }
    }
}

/// The admin services, as far as tests need them.
pub struct Admin {
    topics: TopicAdminClient<Channel>,
    channel: Channel,
}

impl Admin {
    pub async fn connect(broker: &Broker) -> Admin {
        let channel = broker.admin_channel().await;
        Admin { topics: TopicAdminClient::new(channel.clone()), channel }
    }

    pub async fn create_topic(&mut self, name: &str, reliable: bool) {
        let request = NewTopicRequest {
            name: name.into(),
            schema_subject: None,
            dispatch_strategy: i32::from(reliable),
        };
        within("CreateTopic", self.topics.create_topic(request)).await.expect("created");
    }

    pub async fn create_partitioned(&mut self, base_name: &str, partitions: u32, reliable: bool) {
        let request = PartitionedTopicRequest {
            base_name: base_name.into(),
            partitions,
            schema_subject: None,
            dispatch_strategy: i32::from(reliable),
        };
        let answer =
            within("CreatePartitionedTopic", self.topics.create_partitioned_topic(request));
        answer.await.expect("created");
    }

    pub async fn delete_topic(&mut self, name: &str) {
        let request = TopicRequest { name: name.into() };
        within("DeleteTopic", self.topics.delete_topic(request)).await.expect("deleted");
    }

    pub async fn unload_topic(&mut self, name: &str) {
        let request = TopicRequest { name: name.into() };
        within("UnloadTopic", self.topics.unload_topic(request)).await.expect("unloaded");
    }

    pub async fn set_failure_policy(
        &mut self,
        topic: &str,
        subscription: &str,
        policy: SubscriptionFailurePolicy,
    ) {
        let request = SetSubscriptionFailurePolicyRequest {
            topic: topic.into(),
            subscription: subscription.into(),
            failure_policy: Some(policy),
        };
        let answer = self.topics.set_subscription_failure_policy(request);
        within("SetSubscriptionFailurePolicy", answer).await.expect("set");
    }

    /// Our own description of a topic.
    pub async fn describe(&mut self, name: &str) -> Description {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.expect("the broker serves");
        let answer = client.unary(
            tonic::Request::new(DescribeTopicRequest { name: name.into() }),
            http::uri::PathAndQuery::from_static("/danube.control.v1.Control/DescribeTopic"),
            tonic_prost::ProstCodec::<DescribeTopicRequest, Description>::default(),
        );
        within("DescribeTopic", answer).await.expect("described").into_inner()
    }

    /// Waits until a description of a topic is as wanted.
    pub async fn until(
        &mut self,
        topic: &str,
        what: &str,
        as_wanted: impl Fn(&Description) -> bool,
    ) {
        let mut last = Description::default();
        for _ in 0..3_000 {
            last = self.describe(topic).await;
            if as_wanted(&last) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited in vain until {what}: {last:#?}");
    }

    /// Waits until these consumers, and no others, have a stream open on a subscription, in every
    /// partition that has the subscription.
    pub async fn connected(&mut self, topic: &str, subscription: &str, names: &[&str]) {
        let what = format!("only {names:?} are connected");
        self.until(topic, &what, |d| d.connected(subscription, names)).await;
    }

    /// Whether it is so now.
    pub async fn are_connected(&mut self, topic: &str, subscription: &str, names: &[&str]) -> bool {
        self.describe(topic).await.connected(subscription, names)
    }
}

/// A failure policy that is quick: these re-deliveries, 20 ms apart, no ack timeout in sight.
pub fn quick_policy(
    redeliveries: u32,
    poison: SubscriptionPoisonPolicy,
    dead_letter_topic: Option<&str>,
) -> SubscriptionFailurePolicy {
    SubscriptionFailurePolicy {
        max_redelivery_count: redeliveries,
        ack_timeout_ms: 30_000,
        base_redelivery_delay_ms: 20,
        max_redelivery_delay_ms: 20,
        backoff_strategy: SubscriptionBackoffStrategy::Fixed.into(),
        dead_letter_topic: dead_letter_topic.map(str::to_owned),
        poison_policy: poison.into(),
    }
}

// Written by hand after `danube/control.proto`, only the fields that tests look at.

/// `danube.control.v1.DescribeTopicRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DescribeTopicRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// `danube.control.v1.DescribeTopicResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Description {
    #[prost(string, tag = "3")]
    pub delivery: String,
    #[prost(message, repeated, tag = "8")]
    pub subscriptions: Vec<DescribedSubscription>,
}

impl Description {
    /// Whether these consumers, and no others, have a stream open on a subscription, in every
    /// partition that has the subscription.
    fn connected(&self, subscription: &str, names: &[&str]) -> bool {
        let mut wanted: Vec<&str> = names.to_vec();
        wanted.sort_unstable();
        let mut found = self.subscriptions.iter().filter(|s| s.name == subscription).peekable();
        found.peek().is_some()
            && found.all(|s| {
                let consumers = s.consumers.iter().filter(|c| c.connected);
                let mut names: Vec<&str> = consumers.map(|c| c.name.as_str()).collect();
                names.sort_unstable();
                names == wanted
            })
    }
}

/// `danube.control.v1.Subscription`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DescribedSubscription {
    #[prost(string, tag = "1")]
    pub topic: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(uint64, tag = "4")]
    pub cursor: u64,
    #[prost(uint64, tag = "5")]
    pub backlog: u64,
    #[prost(uint64, tag = "6")]
    pub in_flight: u64,
    #[prost(uint64, tag = "8")]
    pub blocked: u64,
    #[prost(message, repeated, tag = "9")]
    pub consumers: Vec<DescribedConsumer>,
    #[prost(string, tag = "11")]
    pub why: String,
    #[prost(uint64, tag = "12")]
    pub unmatched: u64,
}

/// `danube.control.v1.Consumer`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DescribedConsumer {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint64, tag = "2")]
    pub consumer_id: u64,
    #[prost(bool, tag = "3")]
    pub connected: bool,
}
