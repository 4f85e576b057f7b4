//! The copy of a message that failed for good, in the topic's dead letters.
//!
//! The copy keeps payload, attributes, routing key, schema, publish time and producer name, and
//! says in eight headers where it comes from. Law: the answer comes after the copy is durable;
//! only then may the cursor of the subscription move.

use crate::clock::Clock;
use crate::context::Context;
use danube_core::change::{Change, CreateTopic};
use danube_core::name::ProducerName;
use danube_core::{Delivery, Fault, FaultKind, Offset, ProducerId, SubscriptionName, TopicName};
use danube_wire::record::{self, Record};
use std::sync::Arc;

/// The name under which the broker writes dead letters.
const PRODUCER: &str = "danube-dead-letters";

/// Where a dead letter comes from and how it failed.
pub(super) struct Origin {
    pub(super) topic: TopicName,
    pub(super) subscription: SubscriptionName,
    pub(super) offset: Offset,
    pub(super) attempt: u32,
    pub(super) reason: Option<String>,
}

/// Writes the copy of `body` to `target`.
///
/// # Errors
/// What kept the copy from being durable; the caller holds the message and tries again.
pub(super) async fn copy(
    context: &Arc<Context>,
    target: Option<TopicName>,
    origin: Origin,
    body: &Record,
) -> Result<(), Fault> {
    let target = target.ok_or_else(|| {
        Fault::precondition(format!(
            "subscription `{}` of `{}` has no dead-letter topic; set one with set-failure-policy",
            origin.subscription, origin.topic
        ))
    })?;
    let handle = match context.topics.get(context, &target) {
        Err(fault) if fault.kind == FaultKind::NotFound => {
            create(context, &target).await?;
            context.topics.get(context, &target)?
        }
        found => found?,
    };
    let mut message = body.to_message(&origin.topic, context.broker_url(), origin.offset, None);
    let headers = [
        ("x-original-topic", origin.topic.to_string()),
        ("x-original-subscription", origin.subscription.to_string()),
        ("x-original-topic-offset", origin.offset.to_string()),
        ("x-original-producer-id", body.producer_id().to_string()),
        ("x-original-broker-addr", context.broker_url().to_owned()),
        ("x-poison-policy", "dead_letter".to_owned()),
        ("x-delivery-attempt", origin.attempt.to_string()),
    ];
    message.attributes.extend(headers.map(|(name, value)| (name.to_owned(), value)));
    if let Some(reason) = origin.reason {
        message.attributes.insert("x-failure-reason".to_owned(), reason);
    }
    let producer = ProducerId::derive(handle.identity().id, PRODUCER);
    let record = record::encode_trusted(producer, &message);
    let producer_name = ProducerName::parse(PRODUCER).expect("a well-formed name");
    handle.publish(context, producer, producer_name, record).await.map(|_| ())
}

/// Dead-letter topics are made with their topic; this is for one that was deleted meanwhile.
async fn create(context: &Context, target: &TopicName) -> Result<(), Fault> {
    let change = Change::CreateTopic(CreateTopic {
        name: target.clone(),
        partitions: None,
        intent: None,
        delivery: Delivery::Reliable,
        schema_subject: None,
        implicit: true,
    });
    match context.meta.propose(change, Clock::wall()).await {
        Err(fault) if fault.kind == FaultKind::AlreadyExists => Ok(()),
        other => other.map(|_| ()),
    }
}
