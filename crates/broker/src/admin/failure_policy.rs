//! What a subscription does with failures: show it, and set it.
//!
//! A policy may be set before its subscription exists; it is then waiting for it. On a partitioned
//! topic both work on all partitions. Connected consumers feel the change at once.

use crate::clock::Clock;
use crate::context::Context;
use danube_core::change::{Change, SetFailurePolicy};
use danube_core::{Fault, SubscriptionName, SubscriptionType, TopicName};
use danube_wire::convert;
use danube_wire::proto::danube_admin as proto;
use std::sync::Arc;

pub(super) async fn set(
    context: &Arc<Context>,
    request: proto::SetSubscriptionFailurePolicyRequest,
) -> Result<proto::SubscriptionResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let wire = request.failure_policy.ok_or_else(|| Fault::invalid("failure_policy is missing"))?;
    let policy = convert::failure_policy(&wire)?;
    let change = Change::SetFailurePolicy(SetFailurePolicy {
        topic: topic.clone(),
        subscription: subscription.clone(),
        policy: policy.clone(),
    });
    context.meta.propose(change, Clock::wall()).await?;
    for partition in super::partitions(context, &topic)? {
        if let Ok(handle) = context.topics.get(context, &partition) {
            handle.policy_changed(subscription.clone(), policy.clone()).await;
        }
    }
    tracing::info!(%topic, %subscription, ?policy, "failure policy set");
    Ok(proto::SubscriptionResponse { success: true })
}

pub(super) async fn get(
    context: &Context,
    request: proto::GetSubscriptionFailurePolicyRequest,
) -> Result<proto::GetSubscriptionFailurePolicyResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let view = context.meta.view();
    let partitions = super::partitions(context, &topic)?;
    let known = partitions
        .iter()
        .filter_map(|partition| view.topic(partition))
        .find_map(|topic| {
            let kind = topic.subscriptions.get(&subscription).map(|known| known.kind);
            let policy = topic.failure_policy(&subscription);
            (kind.is_some() || policy.is_some()).then_some((kind, policy))
        })
        .ok_or_else(|| {
            Fault::not_found(format!(
                "topic `{topic}` has no subscription `{subscription}` and no policy was set for one"
            ))
        })?;
    let (kind, policy) = known;
    Ok(proto::GetSubscriptionFailurePolicyResponse {
        failure_policy: policy.map(convert::to_admin_failure_policy).transpose()?,
        subscription_type: convert::subscription_type_number(
            kind.unwrap_or(SubscriptionType::Shared),
        ),
    })
}
