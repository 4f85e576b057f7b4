//! Set what a topic has beside its intent: durability, retention, limits, labels.

use super::follow::follow;
use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::catalog::{ObjectKey, TopicOverrides};
use danube_core::change::{ConfigureTopic, Outcome};
use danube_core::settings::{Limit, Limits};
use danube_core::{Fault, TopicName, WalSyncMode};
use danube_wire::proto::control;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    caller: Caller,
    request: control::ConfigureTopicRequest,
) -> Result<control::ConfigureTopicResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    super::partitions(context, &topic)?;
    let named = |(name, value): (String, u32)| Ok::<_, Fault>((Limit::parse(&name)?, value));
    let set = TopicOverrides {
        wal_sync_mode: request.wal_sync_mode.as_deref().map(WalSyncMode::parse).transpose()?,
        retention_time_ms: request.retention_time_ms,
        retention_bytes: request.retention_bytes,
        dead_letter_topic: request
            .dead_letter_topic
            .as_deref()
            .map(TopicName::parse)
            .transpose()?,
        limits: request.limits.into_iter().map(named).collect::<Result<Limits, Fault>>()?,
        labels: request.labels.into_iter().collect(),
    };
    let change = ConfigureTopic { topic: topic.clone(), set, clear: request.clear };
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    let topics = match &outcome {
        Outcome::TopicConfigured { topics, .. } => {
            topics.iter().map(|topic| topic.name.to_string()).collect()
        }
        _ => Vec::new(),
    };
    follow(context, &ObjectKey::Topic(topic.clone()), outcome).await;
    tracing::info!(%topic, "configured");
    Ok(control::ConfigureTopicResponse { topics })
}
