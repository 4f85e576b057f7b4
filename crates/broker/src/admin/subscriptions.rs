//! Subscriptions of a topic: list, remove, and how many deliveries they may have out.

use super::follow::follow;
use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::catalog::ObjectKey;
use danube_core::change::{
    Change, CreateSubscription, DeleteSubscription, Outcome, SetDispatchConfig,
};
use danube_core::{Fault, Position, SubscriptionName, SubscriptionType, TopicName};
use danube_wire::proto::{control, danube_admin as proto};
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
    caller: Caller,
    request: proto::SubscriptionRequest,
) -> Result<proto::SubscriptionResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    super::partitions(context, &topic)?;
    let change = Change::DeleteSubscription(DeleteSubscription {
        topic: topic.clone(),
        subscription: subscription.clone(),
    });
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    let key = ObjectKey::Subscription(topic.clone(), subscription.clone());
    follow(context, &key, outcome).await;
    tracing::info!(%topic, %subscription, "removed");
    Ok(proto::SubscriptionResponse { success: true })
}

pub(super) async fn create(
    context: &Arc<Context>,
    caller: Caller,
    request: control::CreateSubscriptionRequest,
) -> Result<control::CreateSubscriptionResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let kind = request.r#type.as_deref().map(SubscriptionType::parse).transpose()?;
    let position = request.position.as_deref().map(Position::parse).transpose()?;
    let view = context.meta.view();
    let partitions = super::partitions(context, &topic)?;
    let has = |partition: &&TopicName| {
        view.topic(partition).is_some_and(|topic| topic.subscriptions.contains_key(&subscription))
    };
    if let Some(partition) = partitions.iter().find(has) {
        return Err(Fault::already_exists(format!(
            "subscription `{subscription}` of topic `{partition}` exists"
        )));
    }
    let change = CreateSubscription {
        topic: topic.clone(),
        subscription: subscription.clone(),
        kind: kind.unwrap_or(SubscriptionType::Shared),
        starts: super::starts(context, &topic, position.unwrap_or(Position::Latest)).await?,
    };
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    let topics = match &outcome {
        Outcome::SubscriptionCreated { topics } => topics.clone(),
        _ => Vec::new(),
    };
    let key = ObjectKey::Subscription(topic.clone(), subscription.clone());
    follow(context, &key, outcome).await;
    tracing::info!(%topic, %subscription, "created");
    let topics = topics.into_iter().map(|topic| topic.name.to_string()).collect();
    Ok(control::CreateSubscriptionResponse { topics })
}

pub(super) async fn set_dispatch(
    context: &Arc<Context>,
    caller: Caller,
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
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    let key = ObjectKey::Subscription(topic.clone(), subscription.clone());
    follow(context, &key, outcome).await;
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
