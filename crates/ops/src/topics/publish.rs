//! `topics publish`: one message, from wherever the operators' tool is.
//!
//! The admin port says where clients connect; one producer attaches there, sends, and is gone.

use crate::args::{Pair, TopicArg, pairs};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::TopicName;
use danube_wire::proto::danube::producer_service_client::ProducerServiceClient;
use danube_wire::proto::danube::{MsgId, ProducerRequest, StreamMessage};
use danube_wire::proto::danube_admin::Empty;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the producer.
const PRODUCER: &str = "danube-ctl";

/// Publish one message to a topic that exists
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Publish {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    /// The payload, as text
    #[arg(short, long, value_name = "TEXT")]
    message: String,
    /// The routing key, which also says which partition it goes to
    #[arg(short, long, value_name = "KEY")]
    #[serde(default)]
    key: Option<String>,
    /// An attribute
    #[arg(short, long, value_name = "KEY=VALUE")]
    #[serde(default)]
    attribute: Vec<Pair>,
}

/// What was published.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Published {
    /// The topic or partition that has it.
    topic: String,
    /// Bytes of the payload.
    bytes: u64,
    /// What it survives from now on.
    survives: String,
}

impl Operation for Publish {
    type Output = Published;
    const SPEC: Spec = Spec {
        path: ("topics", "publish"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs -m hello --attribute source=docs",
    };

    async fn run(self, session: &Session) -> Result<Published, OpError> {
        let topic = self.topic.name()?;
        let attributes = pairs(&self.attribute)?;
        let doing = format!("message to `{topic}` cannot be published");
        let described = super::description(&topic, session).await?;
        let names: Vec<String> = described.partitions.into_iter().map(|known| known.name).collect();
        let partition = choose(&topic, &names, self.key.as_deref())?;
        let mut brokers = session.brokers().await?;
        let list = call(brokers.list_brokers(Empty {})).await;
        let list = list.map_err(|status| channel::error(&doing, &status))?;
        let address = list.brokers.into_iter().next().map(|broker| broker.broker_addr);
        let address =
            address.ok_or_else(|| OpError::refused(format!("{doing}: no broker is there")))?;
        let mut producers = ProducerServiceClient::new(channel::connect(&address).await?);
        let create = ProducerRequest {
            request_id: 1,
            producer_name: PRODUCER.to_owned(),
            topic_name: partition.to_string(),
            ..ProducerRequest::default()
        };
        let producer = call(producers.create_producer(create)).await;
        let producer = producer.map_err(|status| channel::error(&doing, &status))?;
        let bytes = self.message.len() as u64;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let message = StreamMessage {
            request_id: 2,
            msg_id: Some(MsgId {
                producer_id: producer.producer_id,
                topic_name: partition.to_string(),
                broker_addr: address,
                topic_offset: 0,
            }),
            payload: self.message.into_bytes().into(),
            publish_time: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            producer_name: PRODUCER.to_owned(),
            attributes: attributes.into_iter().collect(),
            routing_key: self.key,
            ..StreamMessage::default()
        };
        let sent = call(producers.send_message(session.request(message))).await;
        sent.map_err(|status| channel::error(&doing, &status))?;
        let survives = match described.delivery.as_str() {
            "Reliable" => danube_core::WalSyncMode::parse(&described.wal_sync_mode)
                .map_or("", danube_core::WalSyncMode::survives),
            _ => "nothing: the topic is NonReliable",
        };
        Ok(Published { topic: partition.to_string(), bytes, survives: survives.to_owned() })
    }
}

/// The partition for a key; without one, the first.
fn choose(topic: &TopicName, names: &[String], key: Option<&str>) -> Result<TopicName, OpError> {
    let hash = key.map_or(0, |key| {
        danube_core::ids::fnv1a_64(danube_core::ids::FNV_OFFSET_BASIS, key.as_bytes())
    });
    let index = usize::try_from(hash % names.len().max(1) as u64).unwrap_or(0);
    let name = names.get(index).ok_or_else(|| {
        OpError::refused(format!("topic `{topic}` has no partition that could take a message"))
    })?;
    Ok(TopicName::parse(name)?)
}

impl Output for Published {
    fn text(&self) -> String {
        format!("published {} bytes to {}", self.bytes, self.topic)
    }
}
