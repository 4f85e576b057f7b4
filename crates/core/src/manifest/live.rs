//! An object of the catalog as fields, in the names that manifests use.
//!
//! Law: what a manifest can declare of an object is a field here, so that what was declared and
//! what is there can be compared field by field.

use crate::catalog::{Catalog, Fields, ObjectKey, Topic};
use crate::ids::{FNV_OFFSET_BASIS, fnv1a_64};
use crate::name::{SubscriptionName, TopicName};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The fields of an object; `None` when it does not exist.
pub fn fields(catalog: &Catalog, key: &ObjectKey) -> Option<Fields> {
    match key {
        ObjectKey::Namespace(name) => {
            let policies = &catalog.namespace(name)?.policies;
            let named =
                policies.iter().map(|(limit, value)| (policy(limit.as_str()), json!(value)));
            Some(named.collect())
        }
        ObjectKey::Schema(name) => {
            let subject = catalog.subject(name.as_str())?;
            let (_, latest) = subject.latest()?;
            Some(Fields::from([
                ("type".to_owned(), json!(latest.schema_type.as_str())),
                ("fingerprint".to_owned(), json!(latest.fingerprint)),
                ("compatibility".to_owned(), json!(subject.compatibility.as_str())),
            ]))
        }
        ObjectKey::Topic(name) => topic(catalog, name),
        ObjectKey::Subscription(name, subscription) => of_subscription(catalog, name, subscription),
    }
}

/// A number that changes with the fields of an object; `None` when it does not exist.
pub fn revision(catalog: &Catalog, key: &ObjectKey) -> Option<u64> {
    let fields = fields(catalog, key)?;
    let text = serde_json::to_vec(&fields).expect("plain data with text keys is JSON");
    Some(fnv1a_64(FNV_OFFSET_BASIS, &text))
}

/// The name of a limit's field.
pub(super) fn policy(limit: &str) -> String {
    format!("policies.{limit}")
}

/// How many partitions a topic has; 0 for a plain one.
pub(super) fn partitions(catalog: &Catalog, name: &TopicName) -> Option<u32> {
    if let Some(count) = catalog.partition_count(name) {
        return Some(count);
    }
    let found = catalog.partitions(name);
    match found.first() {
        None => None,
        Some(first) if first == name => Some(0),
        Some(_) => u32::try_from(found.len()).ok(),
    }
}

/// The topic, or the first partition of it.
pub(super) fn first<'a>(catalog: &'a Catalog, name: &TopicName) -> Option<&'a Topic> {
    catalog.topic(catalog.partitions(name).first()?)
}

/// The topics that dead letters go to by themselves, so that nobody need declare them.
pub(super) fn dead_letter_topics(catalog: &Catalog) -> BTreeSet<TopicName> {
    let topics = catalog.topics();
    topics.filter_map(|(name, topic)| topic.dead_letter_topic(&name.base())).collect()
}

fn topic(catalog: &Catalog, name: &TopicName) -> Option<Fields> {
    let topic = first(catalog, name)?;
    let mut fields = Fields::from([
        ("delivery".to_owned(), json!(topic.delivery.as_str())),
        ("partitions".to_owned(), json!(partitions(catalog, name)?)),
    ]);
    let mut put = |field: &str, value: Value| drop(fields.insert(field.to_owned(), value));
    if let Some(settings) = &topic.settings {
        put("intent", json!(settings.intent.as_str()));
    }
    let own = &topic.overrides;
    if let Some(mode) = own.wal_sync_mode {
        put("wal_sync", json!(mode.as_str()));
    }
    if let Some(ms) = own.retention_time_ms {
        put("retention.time_ms", json!(ms));
    }
    if let Some(bytes) = own.retention_bytes {
        put("retention.bytes", json!(bytes));
    }
    if let Some(target) = &own.dead_letter_topic {
        put("dlq.topic", json!(target));
    }
    for (limit, value) in own.limits.iter() {
        put(&policy(limit.as_str()), json!(value));
    }
    for (label, value) in &own.labels {
        put(&format!("labels.{label}"), json!(value));
    }
    if let Some(subject) = &topic.schema_subject {
        put("schema.subject", json!(subject));
        put("schema.validation", json!(topic.schema.validation_policy.as_str()));
        put("schema.payload_validation", json!(topic.schema.enable_payload_validation));
    }
    Some(fields)
}

fn of_subscription(
    catalog: &Catalog,
    name: &TopicName,
    subscription: &SubscriptionName,
) -> Option<Fields> {
    // On all partitions, or it is not there.
    let partitions = catalog.partitions(name);
    let mut found = None;
    for partition in &partitions {
        let record = catalog.topic(partition)?.subscriptions.get(subscription)?;
        found = found.or(Some(record));
    }
    let record = found?;
    let mut fields = Fields::from([("type".to_owned(), json!(record.kind.as_str()))]);
    if let Some(policy) = &record.failure_policy {
        fields.extend(policy_fields(policy));
    }
    if let Some(max) = record.max_unacked_messages {
        fields.insert("dispatch.max_unacked_messages".to_owned(), json!(max));
    }
    Some(fields)
}

/// A failure policy as fields.
pub(super) fn policy_fields(policy: &crate::policy::FailurePolicy) -> Fields {
    let document = serde_json::to_value(policy).expect("plain data");
    let document = document.as_object().cloned().unwrap_or_default();
    let named = |(key, value)| (format!("failure_policy.{key}"), value);
    document.into_iter().map(named).collect()
}
