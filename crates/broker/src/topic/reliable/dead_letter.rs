//! The copy of a message that failed for good, in the topic's dead letters.
//!
//! The copy keeps payload, attributes, routing key, schema, publish time and producer name, and
//! says in eight headers where it comes from. A message that was replayed keeps what it says of
//! its first failure.
//!
//! Law: the copy and the end of the message are one record of the journal. Whenever the broker
//! dies, both are there or neither is, so there is one copy.

use super::publish::append_fault;
use super::{Completion, Completions};
use crate::clock::Clock;
use crate::context::Context;
use crate::topic::{TopicHandle, TopicIdentity};
use danube_core::change::{Change, CreateTopic};
use danube_core::subscription::{ProgressRecord, Step};
use danube_core::{
    Delivery, Fault, FaultKind, Offset, ProducerId, SubscriptionId, SubscriptionName, TopicName,
};
use danube_store::TopicLog;
use danube_wire::proto::danube::StreamMessage;
use danube_wire::record::{self, Record, header};
use std::sync::Arc;

/// The name under which the broker writes dead letters.
const PRODUCER: &str = "danube-dead-letters";

/// A message that is to be copied.
pub(super) struct Letter {
    pub(super) subscription: SubscriptionId,
    pub(super) name: SubscriptionName,
    pub(super) offset: Offset,
    /// Deliveries made.
    pub(super) attempt: u32,
    pub(super) reason: Option<String>,
    /// The dead letters.
    pub(super) target: Option<TopicName>,
    pub(super) body: Record,
}

impl Letter {
    /// Sends the copy and the end of the message to the log. What comes of it is a
    /// [`Completion::DeadLettered`]. Must be called after the steps that led to it were recorded,
    /// so that a cursor that is put later is put after it.
    pub(super) fn send(
        self,
        context: &Arc<Context>,
        topic: &Arc<TopicIdentity>,
        log: &TopicLog,
        completions: &Completions,
    ) {
        let (subscription, offset) = (self.subscription, self.offset);
        let completions = completions.clone();
        let tell = move |result| {
            completions.send(Completion::DeadLettered { subscription, offset, result });
        };
        match (self.letters(context, topic), &self.target) {
            (Ok(letters), _) => self.append(context, topic, log, &letters, tell),
            (Err(fault), Some(target)) if fault.kind == FaultKind::NotFound => {
                let (context, target) = (Arc::clone(context), target.clone());
                tokio::spawn(async move { tell(Err(create(&context, &target).await)) });
            }
            (Err(fault), _) => tell(Err(fault)),
        }
    }

    /// The topic that takes it.
    fn letters(&self, context: &Arc<Context>, topic: &TopicIdentity) -> Result<TopicHandle, Fault> {
        let Some(target) = &self.target else {
            return Err(Fault::precondition(format!(
                "subscription `{}` of `{}` has no dead-letter topic; set one with \
                 set-failure-policy",
                self.name, topic.name
            )));
        };
        let letters = context.topics.get(context, target)?;
        match letters.identity().delivery {
            Delivery::Reliable => Ok(letters),
            Delivery::NonReliable => Err(Fault::precondition(format!(
                "dead-letter topic `{target}` is NonReliable and keeps nothing; set another with \
                 set-failure-policy"
            ))),
        }
    }

    fn append(
        self,
        context: &Arc<Context>,
        topic: &Arc<TopicIdentity>,
        log: &TopicLog,
        letters: &TopicHandle,
        tell: impl FnOnce(Result<(), Fault>) + Send + 'static,
    ) {
        let target = letters.identity();
        let producer = ProducerId::derive(target.id, PRODUCER);
        let copy = record::encode_trusted(producer, &self.copy(topic, context.broker_url()));
        let step = Step::Finished { first: self.offset, end: self.offset.next() };
        let end = ProgressRecord { subscription: self.subscription, step };
        let sync = target.wal_sync_mode.max(topic.wal_sync_mode);
        let (context, letters, len) = (Arc::clone(context), letters.clone(), copy.len());
        let (began, topic) = (context.clock.elapsed(), Arc::clone(topic));
        let target = context.store.topic(target.id, target.epoch);
        target.append_with(vec![copy], vec![(log.clone(), vec![end])], sync, move |result| {
            let taken = result.map_err(|error| append_fault(letters.identity(), &error));
            if taken.is_ok() {
                let latency = context.clock.elapsed().saturating_sub(began);
                letters.metrics().stored(1, len, latency);
                letters.metrics().appended(1, len);
                letters.log_grew();
            }
            tracing::debug!(topic = %topic.name, offset = %self.offset, taken = taken.is_ok(), "dead-letter copy");
            tell(taken.map(drop));
        });
    }

    fn copy(&self, topic: &TopicIdentity, broker_url: &str) -> StreamMessage {
        let mut message = self.body.to_message(&topic.name, broker_url, self.offset, None);
        let attributes = &mut message.attributes;
        // A replayed message says already where it failed first.
        for (name, value) in [
            (header::ORIGINAL_TOPIC, topic.name.to_string()),
            (header::ORIGINAL_TOPIC_OFFSET, self.offset.to_string()),
            (header::ORIGINAL_PRODUCER_ID, self.body.producer_id().to_string()),
            (header::ORIGINAL_BROKER_ADDR, broker_url.to_owned()),
        ] {
            attributes.entry(name.to_owned()).or_insert(value);
        }
        let failure = [
            (header::ORIGINAL_SUBSCRIPTION, self.name.to_string()),
            (header::POISON_POLICY, "dead_letter".to_owned()),
            (header::DELIVERY_ATTEMPT, self.attempt.to_string()),
        ];
        attributes.extend(failure.map(|(name, value)| (name.to_owned(), value)));
        if let Some(reason) = &self.reason {
            attributes.insert(header::FAILURE_REASON.to_owned(), reason.clone());
        }
        message
    }
}

/// Dead-letter topics are made with their topic; this is for one that was deleted meanwhile. The
/// copy is tried again in any case, so the answer is what kept it from being made now.
async fn create(context: &Context, target: &TopicName) -> Fault {
    let change = Change::CreateTopic(CreateTopic {
        name: target.clone(),
        partitions: None,
        intent: None,
        delivery: Delivery::Reliable,
        schema_subject: None,
        dead_letter_topic: None,
        implicit: true,
    });
    match context.meta.propose(change, Clock::wall()).await {
        Ok(_) => Fault::retry(format!("dead-letter topic `{target}` was gone and is made anew")),
        Err(fault) => fault,
    }
}
