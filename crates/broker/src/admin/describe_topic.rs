//! Everything there is to say about a topic: settings from the catalog, figures from its actors.

use crate::clock::Clock;
use crate::context::{BROKER_ID, Context};
use crate::schema;
use crate::topic::{SubscriptionDescription, TopicDescription};
use danube_core::subscription::Failing;
use danube_core::{Fault, SubscriptionType, TopicName, catalog};
use danube_wire::convert;
use danube_wire::proto::{control, danube_admin as proto};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn compatible(
    context: &Context,
    request: proto::DescribeTopicRequest,
) -> Result<proto::DescribeTopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let view = context.meta.view();
    let topics: Vec<&catalog::Topic> = super::partitions(context, &name)?
        .iter()
        .filter_map(|partition| view.topic(partition))
        .collect();
    let subscriptions: BTreeSet<String> = topics
        .iter()
        .flat_map(|topic| topic.subscriptions.keys().map(ToString::to_string))
        .collect();
    let first = topics.first().copied().ok_or_else(|| deleted(&name))?;
    let subject = schema::describe(&view, first);
    let latest = subject.and_then(|subject| subject.latest());
    Ok(proto::DescribeTopicResponse {
        name: name.to_string(),
        subscriptions: subscriptions.into_iter().collect(),
        broker_id: BROKER_ID.to_string(),
        delivery: first.delivery.as_str().to_owned(),
        schema_subject: first.schema_subject.clone(),
        schema_id: subject.map(|subject| subject.id.0),
        schema_version: latest.map(|(version, _)| version),
        schema_type: latest.map(|(_, found)| found.schema_type.to_string()),
        compatibility_mode: subject.map(|subject| subject.compatibility.to_string()),
    })
}

pub(super) async fn whole(
    context: &Arc<Context>,
    request: control::DescribeTopicRequest,
) -> Result<control::DescribeTopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let view = context.meta.view();
    let names = super::partitions(context, &name)?;
    let first = names.first().and_then(|first| view.topic(first)).ok_or_else(|| deleted(&name))?;
    let subject = schema::describe(&view, first);
    let latest = subject.and_then(|subject| subject.latest());
    let mut answer = control::DescribeTopicResponse {
        name: name.to_string(),
        broker_id: BROKER_ID.to_string(),
        delivery: first.delivery.as_str().to_owned(),
        intent: first.settings.as_ref().map(|settings| intent(&name, first, settings)),
        wal_sync_mode: first.wal_sync_mode().as_str().to_owned(),
        schema_subject: first.schema_subject.clone(),
        partitions: Vec::new(),
        subscriptions: Vec::new(),
        schema_id: subject.map(|subject| subject.id.0),
        schema_version: latest.map(|(version, _)| version),
        schema_type: latest.map(|(_, found)| found.schema_type.to_string()),
        compatibility_mode: subject.map(|subject| subject.compatibility.to_string()),
        validation_policy: first
            .schema_subject
            .is_some()
            .then(|| first.schema.validation_policy.to_string()),
        payload_validation: first.schema.enable_payload_validation,
    };
    for partition in &names {
        let Some(topic) = view.topic(partition) else { continue };
        let state = context.topics.get(context, partition)?.describe().await?;
        answer.partitions.push(control::Partition {
            name: partition.to_string(),
            topic_id: topic.id.0,
            start_offset: state.start.0,
            next_offset: state.next.0,
            broker_id: BROKER_ID.to_string(),
        });
        let TopicDescription { subscriptions, .. } = state;
        answer
            .subscriptions
            .extend(subscriptions.into_iter().map(|known| subscription(partition, topic, known)));
    }
    Ok(answer)
}

fn deleted(name: &TopicName) -> Fault {
    Fault::not_found(format!("topic `{name}` was deleted"))
}

fn intent(
    name: &TopicName,
    topic: &catalog::Topic,
    settings: &danube_core::StreamSettings,
) -> control::IntentSettings {
    let dead_letters = topic.dead_letter_topic(name);
    control::IntentSettings {
        intent: settings.intent.as_str().to_owned(),
        summary: settings.summary(dead_letters.as_ref()),
        delivery: settings.delivery.as_str().to_owned(),
        wal_sync_mode: settings.wal_sync_mode.as_str().to_owned(),
        max_retries: settings.max_retries,
        backoff_ms: settings.backoff_ms,
        poison_policy: settings.poison_policy.as_str().to_owned(),
        dlq_suffix: settings.dlq_suffix.clone(),
        dead_letter_topic: dead_letters.map(|topic| topic.to_string()),
        persistence: match settings.persistence {
            danube_core::intent::Persistence::None => "none",
            danube_core::intent::Persistence::Wal => "wal",
        }
        .to_owned(),
    }
}

fn subscription(
    partition: &TopicName,
    topic: &catalog::Topic,
    known: SubscriptionDescription,
) -> control::Subscription {
    control::Subscription {
        topic: partition.to_string(),
        r#type: match known.kind {
            SubscriptionType::Exclusive => "exclusive",
            SubscriptionType::Shared => "shared",
            SubscriptionType::Failover => "failover",
            SubscriptionType::KeyShared => "key_shared",
        }
        .to_owned(),
        cursor: known.cursor.0,
        backlog: known.backlog,
        in_flight: known.in_flight,
        waiting: known.waiting_redelivery,
        blocked: known.blocked,
        consumers: known
            .consumers
            .into_iter()
            .map(|consumer| control::Consumer {
                name: consumer.name.to_string(),
                consumer_id: consumer.id.0,
                connected: consumer.connected,
                in_flight: consumer.in_flight,
                key_filters: consumer.key_filters,
            })
            .collect(),
        failure_policy: topic.failure_policy(&known.name).map(convert::to_control_failure_policy),
        why: known.why,
        why_code: known.why_code.to_owned(),
        failing: known.failing.into_iter().map(failing).collect(),
        unmatched: known.unmatched,
        dropped: known.dropped,
        max_unacked_messages: known.window_max,
        name: known.name.to_string(),
    }
}

fn failing(known: Failing) -> control::FailingMessage {
    let now = Clock::wall().0;
    control::FailingMessage {
        offset: known.offset.0,
        key: known.key.map(|key| key.to_string()),
        attempts: known.attempts,
        reason: known.reason,
        blocked: known.blocked,
        blocked_since: known.for_ms.map(|for_ms| now.saturating_sub(for_ms)),
        due_at: known.in_ms.map(|in_ms| now.saturating_add(in_ms)),
    }
}
