//! The copy of a message that failed for good, in the topic's dead letters.
//!
//! The copy keeps payload, attributes, routing key, schema, publish time and producer name, and
//! says in eight headers where it comes from. A message that was replayed keeps what it says of
//! its first failure. Law: the answer comes after the copy is durable; only then may the cursor of
//! the subscription move. Where it is not known whether an earlier try wrote the copy, it is
//! looked for first, so that there is one.

use crate::clock::Clock;
use crate::context::Context;
use crate::scan;
use crate::topic::TopicHandle;
use danube_core::change::{Change, CreateTopic};
use danube_core::name::ProducerName;
use danube_core::{Delivery, Fault, FaultKind, Offset, ProducerId, SubscriptionName, TopicName};
use danube_store::{ReadLimit, TopicLog};
use danube_wire::proto::danube::StreamMessage;
use danube_wire::record::{self, Record, header};
use std::sync::Arc;

/// The name under which the broker writes dead letters.
const PRODUCER: &str = "danube-dead-letters";
/// How far back from the end of the dead letters a copy is looked for. What a broker had under way
/// when it died is at most one window of each subscription that shares the dead letters.
const LOOK_BACK_LEN_MAX: u64 = 16_384;
/// Records and bytes of one read of that search.
const READ: ReadLimit = ReadLimit { records_max: 1_024, bytes_max: 1 << 20 };
/// What makes two copies the same one.
const IDENTITY: [&str; 4] = [
    header::ORIGINAL_TOPIC,
    header::ORIGINAL_SUBSCRIPTION,
    header::ORIGINAL_TOPIC_OFFSET,
    header::REPLAY_COUNT,
];

/// Where a dead letter comes from and how it failed.
pub(super) struct Origin {
    pub(super) topic: TopicName,
    pub(super) subscription: SubscriptionName,
    pub(super) offset: Offset,
    pub(super) attempt: u32,
    pub(super) reason: Option<String>,
    /// An earlier try may have written the copy: before the last restart, or with an unknown end.
    pub(super) is_suspect: bool,
}

/// Writes the copy of `body` to `target`, unless it is there.
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
    let letter = letter(&origin, body, context.broker_url());
    if origin.is_suspect && is_there(&log(context, &handle), &letter).await? {
        tracing::info!(topic = %origin.topic, subscription = %origin.subscription, offset = %origin.offset, dead_letters = %target, "the dead-letter copy was written before; it is not written twice");
        return Ok(());
    }
    let producer = ProducerId::derive(handle.identity().id, PRODUCER);
    let record = record::encode_trusted(producer, &letter);
    let producer_name = ProducerName::parse(PRODUCER).expect("a well-formed name");
    handle.publish(context, producer, producer_name, record).await.map(|_| ())
}

fn log(context: &Context, handle: &TopicHandle) -> TopicLog {
    context.store.topic(handle.identity().id, handle.identity().epoch)
}

/// The copy of `body`.
fn letter(origin: &Origin, body: &Record, broker_url: &str) -> StreamMessage {
    let mut message = body.to_message(&origin.topic, broker_url, origin.offset, None);
    let attributes = &mut message.attributes;
    // A replayed message says already where it failed first.
    for (name, value) in [
        (header::ORIGINAL_TOPIC, origin.topic.to_string()),
        (header::ORIGINAL_TOPIC_OFFSET, origin.offset.to_string()),
        (header::ORIGINAL_PRODUCER_ID, body.producer_id().to_string()),
        (header::ORIGINAL_BROKER_ADDR, broker_url.to_owned()),
    ] {
        attributes.entry(name.to_owned()).or_insert(value);
    }
    let failure = [
        (header::ORIGINAL_SUBSCRIPTION, origin.subscription.to_string()),
        (header::POISON_POLICY, "dead_letter".to_owned()),
        (header::DELIVERY_ATTEMPT, origin.attempt.to_string()),
    ];
    attributes.extend(failure.map(|(name, value)| (name.to_owned(), value)));
    if let Some(reason) = &origin.reason {
        attributes.insert(header::FAILURE_REASON.to_owned(), reason.clone());
    }
    message
}

/// Whether the last dead letters have this one.
async fn is_there(log: &TopicLog, letter: &StreamMessage) -> Result<bool, Fault> {
    let bounds = log.bounds();
    let mut next = bounds.start.max(Offset(bounds.next.0.saturating_sub(LOOK_BACK_LEN_MAX)));
    loop {
        let batch = scan::read(log, next, READ).await?;
        if batch.records.is_empty() {
            return Ok(false);
        }
        let found = batch.records.into_iter().any(|(_, stored)| {
            let Ok(record) = Record::parse(stored) else { return false };
            IDENTITY.iter().all(|name| {
                record.attribute(name) == letter.attributes.get(*name).map(String::as_str)
            })
        });
        if found {
            return Ok(true);
        }
        next = batch.next;
    }
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
