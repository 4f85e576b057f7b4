//! Subscriptions of a topic: list, remove, and how many deliveries they may have out.

use crate::clock::Clock;
use crate::context::Context;
use danube_core::change::{Change, DeleteSubscription, Outcome, SetDispatchConfig};
use danube_core::{Fault, SubscriptionName, TopicName};
use danube_wire::proto::danube_admin as proto;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn list(
    context: &Context,
    request: proto::TopicRequest,
) -> Result<proto::SubscriptionListResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let view = context.meta.view();
    let names: BTreeSet<String> = super::partitions(context, &name)?
        .iter()
        .filter_map(|partition| view.topic(partition))
        .flat_map(|topic| topic.subscriptions.keys().map(ToString::to_string))
        .collect();
    Ok(proto::SubscriptionListResponse { subscriptions: names.into_iter().collect() })
}

pub(super) async fn delete(
    context: &Arc<Context>,
    request: proto::SubscriptionRequest,
) -> Result<proto::SubscriptionResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let partitions = super::partitions(context, &topic)?;
    let change = Change::DeleteSubscription(DeleteSubscription {
        topic: topic.clone(),
        subscription: subscription.clone(),
    });
    context.meta.propose(change, Clock::wall()).await?;
    for partition in partitions {
        if let Ok(handle) = context.topics.get(context, &partition) {
            handle.unsubscribed(subscription.clone()).await;
        }
    }
    tracing::info!(%topic, %subscription, "removed");
    Ok(proto::SubscriptionResponse { success: true })
}

pub(super) async fn set_dispatch(
    context: &Arc<Context>,
    request: proto::SetSubscriptionDispatchConfigRequest,
) -> Result<proto::SubscriptionResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let config =
        request.dispatch_config.ok_or_else(|| Fault::invalid("dispatch_config is missing"))?;
    let max_unacked_messages = config.max_unacked_messages;
    let change = Change::SetDispatchConfig(SetDispatchConfig {
        topic: topic.clone(),
        subscription: subscription.clone(),
        max_unacked_messages,
    });
    let outcome = context.meta.propose(change, Clock::wall()).await?;
    if let Outcome::DispatchConfigSet { topics } = outcome {
        for partition in topics {
            if let Ok(handle) = context.topics.get(context, &partition.name) {
                handle.window_changed(subscription.clone(), max_unacked_messages).await;
            }
        }
    }
    tracing::info!(%topic, %subscription, max_unacked_messages, "dispatch config set");
    Ok(proto::SubscriptionResponse { success: true })
}

pub(super) async fn get_dispatch(
    context: &Context,
    request: proto::GetSubscriptionDispatchConfigRequest,
) -> Result<proto::GetSubscriptionDispatchConfigResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let view = context.meta.view();
    let known = super::partitions(context, &topic)?
        .iter()
        .filter_map(|partition| view.topic(partition))
        .find_map(|topic| topic.subscriptions.get(&subscription))
        .ok_or_else(|| {
            Fault::not_found(format!("topic `{topic}` has no subscription `{subscription}`"))
        })?;
    let max_unacked_messages =
        known.max_unacked_messages.unwrap_or(context.options.dispatch.max_unacked_messages);
    Ok(proto::GetSubscriptionDispatchConfigResponse {
        dispatch_config: Some(proto::SubscriptionDispatchConfig { max_unacked_messages }),
    })
}
