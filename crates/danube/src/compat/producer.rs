//! Publishing to a topic: one producer per partition, messages dealt out by key or in turn.
//!
//! Law: a message with a key always goes to the same partition, the one the official clients
//! send it to: FNV-1a of the key modulo the number of partitions.

use super::route::{Cluster, Route};
use super::{RETRIES_MAX, pause, persist};
use crate::channel::{self, call};
use crate::failure::Failure;
use bytes::Bytes;
use danube_core::ids::{FNV_OFFSET_BASIS, fnv1a_64};
use danube_wire::proto::danube as proto;
use proto::producer_service_client::ProducerServiceClient;
use proto::schema_reference::VersionRef;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::Status;

/// What a producer wants to be.
#[derive(Debug, Clone)]
pub struct ProducerSpec {
    /// Its name; on partition `i` it is called `<name>-<i>`.
    pub name: String,
    /// `/namespace/topic`.
    pub topic: String,
    /// How many partitions to publish to; those that exist when not given.
    pub partitions: Option<u32>,
    /// Whether a topic made by this producer is `Reliable`.
    pub reliable: bool,
    /// The schema that its messages follow.
    pub schema: Option<SchemaTag>,
}

/// A registered version of a schema, as messages carry it.
#[derive(Debug, Clone)]
pub struct SchemaTag {
    /// Its subject.
    pub subject: String,
    /// The subject's id.
    pub schema_id: u64,
    /// The version.
    pub version: u32,
}

/// A message to be published.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// The content.
    pub payload: Bytes,
    /// Pairs for the application.
    pub attributes: BTreeMap<String, String>,
    /// Keeps messages of one key together and in order.
    pub key: Option<String>,
}

/// A message that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The topic partition it is in.
    pub topic: String,
    /// The number the broker answered with.
    pub request_id: u64,
}

/// A producer on all partitions of a topic.
#[derive(Debug)]
pub struct Producer {
    partitions: Vec<PartitionProducer>,
    turn: usize,
}

impl Producer {
    /// Attaches to every partition, one after another, and makes what does not exist.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn create(cluster: &Cluster, spec: ProducerSpec) -> Result<Producer, Failure> {
        let doing = format!("no producer on topic `{}`", spec.topic);
        let targets = targets(cluster, &spec).await.map_err(|s| channel::failure(&doing, &s))?;
        let mut partitions = Vec::with_capacity(targets.len());
        for (topic, name) in targets {
            let attach = || PartitionProducer::attach(cluster, &topic, &name, &spec);
            let attached = persist(attach).await;
            partitions.push(attached.map_err(|status| channel::failure(&doing, &status))?);
        }
        Ok(Producer { partitions, turn: 0 })
    }

    /// How many partitions it publishes to.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// Publishes one message and waits for the acknowledgement.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    pub async fn send(&mut self, message: &Message) -> Result<Sent, Failure> {
        let index = match &message.key {
            Some(key) => partition_of(key, self.partitions.len()),
            None => {
                let index = self.turn;
                self.turn = (self.turn + 1) % self.partitions.len();
                index
            }
        };
        let partition = &mut self.partitions[index];
        partition.send(message).await.map_err(|status| {
            channel::failure(&format!("message refused by topic `{}`", partition.topic), &status)
        })
    }
}

/// The partition of `key` among `count`.
fn partition_of(key: &str, count: usize) -> usize {
    let count = u64::try_from(count).expect("a partition count fits");
    let index = fnv1a_64(FNV_OFFSET_BASIS, key.as_bytes()) % count;
    usize::try_from(index).expect("less than the count")
}

/// Topic and producer name for each partition.
async fn targets(cluster: &Cluster, spec: &ProducerSpec) -> Result<Vec<(String, String)>, Status> {
    let numbered = |topics: Vec<String>| {
        let named = topics.into_iter().enumerate();
        named.map(|(index, topic)| (topic, format!("{}-{index}", spec.name))).collect()
    };
    if let Some(count) = spec.partitions {
        return Ok(numbered((0..count).map(|i| format!("{}-part-{i}", spec.topic)).collect()));
    }
    let found = persist(|| cluster.partitions(&spec.topic)).await?;
    if found.is_empty() || found == [spec.topic.as_str()] {
        return Ok(vec![(spec.topic.clone(), spec.name.clone())]);
    }
    Ok(numbered(found))
}

/// A producer on one topic partition.
#[derive(Debug)]
struct PartitionProducer {
    cluster: Cluster,
    topic: String,
    name: String,
    spec: ProducerSpec,
    route: Route,
    producer_id: u64,
    requests: u64,
}

impl PartitionProducer {
    async fn attach(
        cluster: &Cluster,
        topic: &str,
        name: &str,
        spec: &ProducerSpec,
    ) -> Result<PartitionProducer, Status> {
        let route = cluster.route(topic).await?;
        let strategy = match spec.reliable {
            true => proto::DispatchStrategy::Reliable,
            false => proto::DispatchStrategy::NonReliable,
        };
        let request = proto::ProducerRequest {
            request_id: 0,
            producer_name: name.to_owned(),
            topic_name: topic.to_owned(),
            schema_ref: spec.schema.as_ref().map(|schema| proto::SchemaReference {
                subject: schema.subject.clone(),
                version_ref: Some(VersionRef::PinnedVersion(schema.version)),
            }),
            producer_access_mode: proto::ProducerAccessMode::Shared.into(),
            dispatch_strategy: strategy.into(),
        };
        let mut client = ProducerServiceClient::new(route.channel.clone());
        let answer = call(client.create_producer(route.request(request))).await?;
        Ok(PartitionProducer {
            cluster: cluster.clone(),
            topic: topic.to_owned(),
            name: name.to_owned(),
            spec: spec.clone(),
            route,
            producer_id: answer.producer_id,
            requests: 0,
        })
    }

    async fn send(&mut self, message: &Message) -> Result<Sent, Status> {
        let mut failures = 0;
        loop {
            let status = match self.try_send(message).await {
                Ok(request_id) => return Ok(Sent { topic: self.topic.clone(), request_id }),
                Err(status) => status,
            };
            if !channel::is_retryable(&status) || failures == RETRIES_MAX {
                return Err(status);
            }
            failures += 1;
            tokio::time::sleep(pause(failures)).await;
            self.reattach().await?;
        }
    }

    /// Looks the topic up again and attaches there. Only a refusal for good is an error; while
    /// nobody answers, the next send finds out again.
    async fn reattach(&mut self) -> Result<(), Status> {
        match Self::attach(&self.cluster, &self.topic, &self.name, &self.spec).await {
            Ok(fresh) => *self = PartitionProducer { requests: self.requests, ..fresh },
            Err(status) if channel::is_retryable(&status) => {}
            Err(status) => return Err(status),
        }
        Ok(())
    }

    async fn try_send(&mut self, message: &Message) -> Result<u64, Status> {
        self.requests += 1;
        let request = proto::StreamMessage {
            request_id: self.requests,
            msg_id: Some(proto::MsgId {
                producer_id: self.producer_id,
                topic_name: self.topic.clone(),
                broker_addr: self.route.broker_url.clone(),
                topic_offset: 0,
            }),
            payload: message.payload.clone(),
            publish_time: unix_ms(),
            producer_name: self.name.clone(),
            attributes: message.attributes.clone(),
            routing_key: message.key.clone(),
            schema_id: self.spec.schema.as_ref().map(|schema| schema.schema_id),
            schema_version: self.spec.schema.as_ref().map(|schema| schema.version),
            ..proto::StreamMessage::default()
        };
        let mut client = ProducerServiceClient::new(self.route.channel.clone());
        let answer = call(client.send_message(self.route.request(request))).await?;
        Ok(answer.request_id)
    }
}

/// Milliseconds since the Unix epoch; 0 on a machine whose clock stands before it.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the published hashes `af63dc4c8601ec8c` and `85944171f73967e8`.
    #[test]
    fn keys_go_where_the_official_clients_send_them() {
        assert_eq!(partition_of("a", 3), 1);
        assert_eq!(partition_of("foobar", 7), 6);
        assert_eq!(partition_of("anything", 1), 0);
    }
}
