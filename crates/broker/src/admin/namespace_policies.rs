//! The limits of a namespace's topics: show what holds, and set some.

use super::follow::follow;
use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::catalog::ObjectKey;
use danube_core::change::SetNamespacePolicies;
use danube_core::settings::{LIMITS, Limit, Limits, Origin, Setting};
use danube_core::{Fault, NamespaceName};
use danube_wire::proto::control;
use std::sync::Arc;

pub(super) async fn get(
    context: &Context,
    request: control::GetNamespacePoliciesRequest,
) -> Result<control::GetNamespacePoliciesResponse, Fault> {
    let namespace = super::existing_namespace(context, &request.namespace)?;
    Ok(answer(context, &namespace))
}

pub(super) async fn set(
    context: &Arc<Context>,
    caller: Caller,
    request: control::SetNamespacePoliciesRequest,
) -> Result<control::GetNamespacePoliciesResponse, Fault> {
    let namespace = super::existing_namespace(context, &request.namespace)?;
    let named = |(name, value): (String, u32)| Ok::<_, Fault>((Limit::parse(&name)?, value));
    let change = SetNamespacePolicies {
        namespace: namespace.clone(),
        set: request.set.into_iter().map(named).collect::<Result<Limits, Fault>>()?,
        clear: request.clear.iter().map(|name| Limit::parse(name)).collect::<Result<_, Fault>>()?,
    };
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    follow(context, &ObjectKey::Namespace(namespace.clone()), outcome).await;
    tracing::info!(%namespace, "policies set");
    Ok(answer(context, &namespace))
}

fn answer(context: &Context, namespace: &NamespaceName) -> control::GetNamespacePoliciesResponse {
    let policies = effective(context, namespace).into_iter();
    let policies = policies.map(|(limit, setting)| control::ExplainedSetting {
        subscription: None,
        name: limit.as_str().to_owned(),
        value: match setting.value {
            0 => "no limit".to_owned(),
            value => value.to_string(),
        },
        unit: limit.unit().to_owned(),
        origin: setting.origin.as_str().to_owned(),
    });
    control::GetNamespacePoliciesResponse { policies: policies.collect() }
}

/// What holds for a topic of the namespace that sets nothing itself.
pub(super) fn effective(context: &Context, name: &NamespaceName) -> Vec<(Limit, Setting<u32>)> {
    let view = context.meta.view();
    let set = view.namespace(name).map(|known| known.policies.clone()).unwrap_or_default();
    let holds = |limit: Limit| match set.get(limit) {
        Some(value) => Setting { value, origin: Origin::NamespacePolicy },
        None => Setting {
            value: context.defaults.limits.get(limit).unwrap_or(0),
            origin: Origin::BrokerDefault,
        },
    };
    LIMITS.into_iter().map(|limit| (limit, holds(limit))).collect()
}
