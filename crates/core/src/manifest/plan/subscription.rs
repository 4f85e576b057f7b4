//! What makes a subscription what a manifest declares of it.

use super::FieldChange;
use super::planner::{Difference, Work};
use super::topic::as_u32;
use crate::catalog::Catalog;
use crate::change::{Change, CreateSubscription, SetDispatchConfig, SetFailurePolicy, Stamp};
use crate::fault::Fault;
use crate::ids::WallMs;
use crate::intent::PoisonPolicy;
use crate::manifest::live;
use crate::name::{SubscriptionName, TopicName};
use crate::policy::{FailurePolicy, SubscriptionType};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn work(
    catalog: &Catalog,
    topic: &TopicName,
    subscription: &SubscriptionName,
    difference: &Difference<'_>,
    busy: Option<&str>,
) -> Result<Work, Fault> {
    let mut work = Work::default();
    if difference.has("type") || difference.live.is_none() {
        if let (Some(why), true) = (busy, difference.live.is_some()) {
            return Err(Fault::precondition(format!(
                "its type cannot change while it is in use: {why}"
            )));
        }
        let kind = difference.wanted.get("type").and_then(Value::as_str).unwrap_or_default();
        let create = CreateSubscription {
            topic: topic.clone(),
            subscription: subscription.clone(),
            kind: SubscriptionType::parse(kind)?,
            starts: BTreeMap::new(),
        };
        work.changes.push(create.into());
    }
    if difference.has("failure_policy.") {
        let policy = policy(catalog, topic, subscription, difference, &work)?;
        let set =
            SetFailurePolicy { topic: topic.clone(), subscription: subscription.clone(), policy };
        work.changes.push(set.into());
    }
    if difference.has("dispatch.") {
        match difference.becomes("dispatch.max_unacked_messages").and_then(as_u32) {
            Some(max_unacked_messages) => {
                let set = SetDispatchConfig {
                    topic: topic.clone(),
                    subscription: subscription.clone(),
                    max_unacked_messages,
                };
                work.changes.push(set.into());
            }
            None => work
                .warnings
                .push("max_unacked_messages is no longer declared, and stays".to_owned()),
        }
    }
    Ok(work)
}

/// By subscription of `topic`: its policy with what it inherited in the catalog `before` replaced by
/// what it inherits in `after`.
pub(super) fn inherit(
    before: &Catalog,
    after: &Catalog,
    topic: &TopicName,
) -> Vec<(SubscriptionName, FailurePolicy)> {
    let own = |catalog| live::first(catalog, topic)?.own_policy(topic);
    let (Some(old), Some(new), Some(found)) = (own(before), own(after), live::first(after, topic))
    else {
        return Vec::new();
    };
    let (old, new) = (document(&old), document(&new));
    let follow = |policy: &FailurePolicy| {
        let mut followed = document(policy);
        for (field, value) in &new {
            if followed.get(field) == old.get(field) {
                followed.insert(field.clone(), value.clone());
            }
        }
        serde_json::from_value(Value::Object(followed)).expect("fields of two policies are one")
    };
    let known = found.subscriptions.iter();
    let with_policy =
        known.filter_map(|(name, known)| Some((name, known.failure_policy.as_ref()?)));
    with_policy.map(|(name, policy)| (name.clone(), follow(policy))).collect()
}

fn document(policy: &FailurePolicy) -> serde_json::Map<String, Value> {
    match serde_json::to_value(policy).expect("plain data") {
        Value::Object(fields) => fields,
        _ => unreachable!("a struct is an object"),
    }
}

/// The policy of a subscription with some fields changed; `None` where it has none.
pub(super) fn with(
    catalog: &Catalog,
    topic: &TopicName,
    subscription: &SubscriptionName,
    changes: &[FieldChange],
) -> Option<Change> {
    let mut fields = document(live::first(catalog, topic)?.failure_policy(subscription)?);
    for change in changes {
        let field = change.field.strip_prefix("failure_policy.")?;
        fields.insert(field.to_owned(), change.new.clone()?);
    }
    let policy = serde_json::from_value(Value::Object(fields)).ok()?;
    let (topic, subscription) = (topic.clone(), subscription.clone());
    Some(SetFailurePolicy { topic, subscription, policy }.into())
}

/// The whole policy: what is declared, over what it has or inherits.
fn policy(
    catalog: &Catalog,
    topic: &TopicName,
    subscription: &SubscriptionName,
    difference: &Difference<'_>,
    work: &Work,
) -> Result<FailurePolicy, Fault> {
    let mut after = catalog.clone();
    for change in &work.changes {
        change.apply(&mut after, Stamp { at: WallMs(0) })?;
    }
    let unreliable = || {
        Fault::precondition(format!(
            "topic `{topic}` is NonReliable: nothing is delivered again there, so a subscription \
             can have no failure policy"
        ))
    };
    let first = live::first(&after, topic).ok_or_else(|| {
        Fault::not_found(format!("topic `{topic}` does not exist; declare it too"))
    })?;
    let own = first.own_policy(topic).ok_or_else(unreliable)?;
    let has = first.failure_policy(subscription).cloned().unwrap_or_else(|| own.clone());
    let mut document = serde_json::to_value(&has).expect("plain data");
    let inherited = serde_json::to_value(&own).expect("plain data");
    for change in &difference.changes {
        let Some(field) = change.field.strip_prefix("failure_policy.") else { continue };
        document[field] = change.new.clone().unwrap_or_else(|| inherited[field].clone());
    }
    let mut policy: FailurePolicy = serde_json::from_value(document)
        .map_err(|error| Fault::invalid(format!("failure_policy: {error}")))?;
    if policy.poison_policy == PoisonPolicy::DeadLetter && policy.dead_letter_topic.is_none() {
        policy.dead_letter_topic = Some(topic.dead_letter()?);
    }
    Ok(policy)
}
