//! What a subscription does with failures: show it, and set it.
//!
//! A policy may be set before its subscription exists; it is then waiting for it. On a partitioned
//! topic both work on all partitions. Connected consumers feel the change at once.

use super::follow::follow;
use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::catalog::ObjectKey;
use danube_core::change::{Change, SetFailurePolicy};
use danube_core::{
    Fault, PolicySource, PolicySources, SubscriptionName, SubscriptionType, TopicName,
};
use danube_wire::convert;
use danube_wire::proto::{control, danube_admin as proto};
use std::sync::Arc;

pub(super) async fn set(
    context: &Arc<Context>,
    caller: Caller,
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
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    let key = ObjectKey::Subscription(topic.clone(), subscription.clone());
    follow(context, &key, outcome).await;
    tracing::info!(%topic, %subscription, ?policy, "failure policy set");
    Ok(proto::SubscriptionResponse { success: true })
}

pub(super) async fn explain(
    context: &Context,
    request: control::ExplainFailurePolicyRequest,
) -> Result<control::ExplainFailurePolicyResponse, Fault> {
    let name = TopicName::parse(&request.topic)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let view = context.meta.view();
    let partitions = super::partitions(context, &name)?;
    let topics = partitions.iter().filter_map(|name| Some((name, view.topic(name)?)));
    // All partitions have the same, but for one that nobody has subscribed to yet.
    let mut found = control::ExplainFailurePolicyResponse::default();
    for (name, topic) in topics {
        let own = topic.own_policy(name);
        found.inherited = own.as_ref().map(convert::to_control_failure_policy);
        if let (Some(policy), Some(own)) = (topic.failure_policy(&subscription), own) {
            found.policy = Some(convert::to_control_failure_policy(policy));
            found.sources = sources(policy.sources(&own, topic.settings.is_some()));
            break;
        }
    }
    Ok(found)
}

fn sources(sources: PolicySources) -> Vec<control::FieldSource> {
    let fields = [
        ("max_redelivery_count", sources.max_redelivery_count),
        ("ack_timeout_ms", sources.ack_timeout_ms),
        ("base_redelivery_delay_ms", sources.base_redelivery_delay_ms),
        ("max_redelivery_delay_ms", sources.max_redelivery_delay_ms),
        ("backoff_strategy", sources.backoff_strategy),
        ("dead_letter_topic", sources.dead_letter_topic),
        ("poison_policy", sources.poison_policy),
    ];
    let to_wire = |(field, source): (&str, PolicySource)| control::FieldSource {
        field: field.to_owned(),
        source: source.as_str().to_owned(),
    };
    fields.map(to_wire).into()
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
