//! Receiving from a topic: one stream per partition, merged into one.
//!
//! Each partition has a task that keeps its stream open: when it ends, the task looks the topic
//! up, subscribes again under the same name (which gives the same consumer id) and goes on.
//!
//! Law: a message is handed out only from here, and acknowledged to the partition it came
//! from.

use super::route::{Cluster, Route};
use super::{RETRIES_MAX, pause, persist};
use crate::channel::{self, call};
use crate::failure::Failure;
use danube_wire::proto::danube as proto;
use proto::consumer_service_client::ConsumerServiceClient;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::{Status, Streaming};

/// Messages that wait here for the application; beyond them HTTP/2 flow control stops the broker.
const RECEIVE_BUFFER_MAX: usize = 64;

/// Who of a subscription's consumers receives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SubscriptionType {
    /// One consumer, everything in order
    Exclusive,
    /// All consumers in turn
    Shared,
    /// The consumer that has been there longest, and the next one when it goes
    #[value(name = "fail-over", alias = "failover")]
    Failover,
    /// The consumer that has the message's key, one message of a key at a time
    KeyShared,
}

impl SubscriptionType {
    fn on_wire(self) -> i32 {
        use proto::consumer_request::SubscriptionType as Wire;
        match self {
            SubscriptionType::Exclusive => Wire::Exclusive,
            SubscriptionType::Shared => Wire::Shared,
            SubscriptionType::Failover => Wire::Failover,
            SubscriptionType::KeyShared => Wire::KeyShared,
        }
        .into()
    }
}

/// What a consumer wants to be.
#[derive(Debug, Clone)]
pub struct ConsumerSpec {
    /// Its name, the same on every partition.
    pub name: String,
    /// `/namespace/topic`.
    pub topic: String,
    /// The subscription it joins; made when it does not exist.
    pub subscription: String,
    /// The type of the subscription.
    pub kind: SubscriptionType,
    /// KeyShared: patterns of the keys it wants; none means all.
    pub key_filters: Vec<String>,
}

/// A message that was received and is not settled yet.
#[derive(Debug)]
pub struct Received {
    /// The message.
    pub message: proto::StreamMessage,
    partition: usize,
}

/// A consumer on all partitions of a topic. Dropping it closes the streams.
#[derive(Debug)]
pub struct Consumer {
    partitions: Vec<Arc<Partition>>,
    incoming: mpsc::Receiver<Result<Received, Failure>>,
    _tasks: JoinSet<()>,
}

impl Consumer {
    /// Subscribes to every partition that exists now.
    ///
    /// # Errors
    /// That there is no such topic, what the broker said, or that it cannot be reached.
    pub async fn subscribe(cluster: &Cluster, spec: ConsumerSpec) -> Result<Consumer, Failure> {
        let doing = format!("no subscription `{}` on topic `{}`", spec.subscription, spec.topic);
        let topics = persist(|| cluster.partitions(&spec.topic)).await;
        let topics = topics.map_err(|status| channel::failure(&doing, &status))?;
        if topics.is_empty() {
            return Err(Failure::refused(format!("topic `{}` does not exist", spec.topic))
                .help(format!("make it: danube ctl topics create {}", spec.topic)));
        }
        let (outgoing, incoming) = mpsc::channel(RECEIVE_BUFFER_MAX);
        let mut partitions = Vec::with_capacity(topics.len());
        for topic in topics {
            let attached = persist(|| Partition::attach(cluster, &topic, &spec)).await;
            let attachment = attached.map_err(|status| channel::failure(&doing, &status))?;
            partitions.push(Arc::new(Partition {
                cluster: cluster.clone(),
                topic,
                spec: spec.clone(),
                attachment: Mutex::new(attachment),
            }));
        }
        let mut tasks = JoinSet::new();
        for (index, partition) in partitions.iter().enumerate() {
            tasks.spawn(Arc::clone(partition).run(index, outgoing.clone()));
        }
        Ok(Consumer { partitions, incoming, _tasks: tasks })
    }

    /// Waits for the next message of any partition.
    ///
    /// # Errors
    /// That a partition cannot be received from any more, and why.
    pub async fn next(&mut self) -> Result<Received, Failure> {
        self.incoming
            .recv()
            .await
            .unwrap_or_else(|| Err(Failure::unreachable("all streams of the subscription ended")))
    }

    /// Finishes a message.
    ///
    /// # Errors
    /// The status; the message comes again unless a later ack succeeds.
    pub async fn ack(&self, received: &Received) -> Result<(), Status> {
        let partition = &self.partitions[received.partition];
        let route = partition.attachment().route;
        let request = proto::AckRequest {
            request_id: received.message.request_id,
            msg_id: received.message.msg_id.clone(),
            subscription_name: partition.spec.subscription.clone(),
        };
        let mut client = ConsumerServiceClient::new(route.channel.clone());
        call(client.ack(route.request(request))).await.map(|_| ())
    }

    /// Says that a message failed, and why; it comes again as its subscription's policy says.
    ///
    /// # Errors
    /// The status; the message comes again all the same, once its time is over.
    pub async fn nack(&self, received: &Received, reason: &str) -> Result<(), Status> {
        let partition = &self.partitions[received.partition];
        let route = partition.attachment().route;
        let request = proto::NackRequest {
            request_id: received.message.request_id,
            msg_id: received.message.msg_id.clone(),
            subscription_name: partition.spec.subscription.clone(),
            delay_ms: None,
            reason: Some(reason.to_owned()),
        };
        let mut client = ConsumerServiceClient::new(route.channel.clone());
        call(client.nack(route.request(request))).await.map(|_| ())
    }
}

/// What one attach gave.
#[derive(Debug, Clone)]
struct Attachment {
    route: Route,
    consumer_id: u64,
}

/// A consumer on one topic partition.
#[derive(Debug)]
struct Partition {
    cluster: Cluster,
    topic: String,
    spec: ConsumerSpec,
    attachment: Mutex<Attachment>,
}

impl Partition {
    async fn attach(
        cluster: &Cluster,
        topic: &str,
        spec: &ConsumerSpec,
    ) -> Result<Attachment, Status> {
        let route = cluster.route(topic).await?;
        let request = proto::ConsumerRequest {
            request_id: 0,
            topic_name: topic.to_owned(),
            consumer_name: spec.name.clone(),
            subscription: spec.subscription.clone(),
            subscription_type: spec.kind.on_wire(),
            key_filters: spec.key_filters.clone(),
        };
        let mut client = ConsumerServiceClient::new(route.channel.clone());
        let answer = call(client.subscribe(route.request(request))).await?;
        Ok(Attachment { route, consumer_id: answer.consumer_id })
    }

    fn attachment(&self) -> Attachment {
        self.attachment.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Receives until the application goes away or the broker refuses for good.
    async fn run(self: Arc<Self>, index: usize, outgoing: mpsc::Sender<Result<Received, Failure>>) {
        let mut failures = 0;
        loop {
            let status = match self.open().await {
                Ok(stream) => {
                    failures = 0;
                    match forward(stream, index, &outgoing).await {
                        Ended::ByApplication => return,
                        Ended::ByBroker(status) => status,
                    }
                }
                Err(status) => status,
            };
            failures += 1;
            if let Err(status) = self.reattach(status, failures).await {
                let doing = format!("no more messages of topic `{}`", self.topic);
                // Nobody listens any more when this fails, and that is the end as well.
                let _ = outgoing.send(Err(channel::failure(&doing, &status))).await;
                return;
            }
        }
    }

    /// Waits, then looks the topic up and subscribes again. Only a refusal for good is an error;
    /// while nobody answers, the next opening of the stream finds out again.
    async fn reattach(&self, lost: Status, failures: u32) -> Result<(), Status> {
        if !channel::is_retryable(&lost) || failures > RETRIES_MAX {
            return Err(lost);
        }
        tokio::time::sleep(pause(failures)).await;
        match Self::attach(&self.cluster, &self.topic, &self.spec).await {
            Ok(fresh) => {
                *self.attachment.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
                Ok(())
            }
            Err(status) if channel::is_retryable(&status) => Ok(()),
            Err(status) => Err(status),
        }
    }

    async fn open(&self) -> Result<Streaming<proto::StreamMessage>, Status> {
        let Attachment { route, consumer_id } = self.attachment();
        let request = route.request(proto::ReceiveRequest { request_id: 0, consumer_id });
        let mut client = ConsumerServiceClient::new(route.channel);
        call(client.receive_messages(request)).await
    }
}

/// Why a stream is over.
enum Ended {
    ByApplication,
    ByBroker(Status),
}

async fn forward(
    mut stream: Streaming<proto::StreamMessage>,
    partition: usize,
    outgoing: &mpsc::Sender<Result<Received, Failure>>,
) -> Ended {
    loop {
        match stream.message().await {
            Ok(Some(message)) => {
                if outgoing.send(Ok(Received { message, partition })).await.is_err() {
                    return Ended::ByApplication;
                }
            }
            Ok(None) => return Ended::ByBroker(Status::unavailable("the stream ended")),
            Err(status) => return Ended::ByBroker(status),
        }
    }
}
