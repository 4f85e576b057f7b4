//! What there is, as a manifest.
//!
//! Law: applied where it was taken from, it changes nothing.

use super::live::{dead_letter_topics, fields, first, policy_fields};
use crate::catalog::{Catalog, Fields, ObjectKey, SYSTEM_NAMESPACE};
use crate::name::{NamespaceName, TopicName};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The namespaces with their topics and subscriptions, and the schemas these use; all of it when
/// `only` is empty.
pub fn export(catalog: &Catalog, only: &BTreeSet<NamespaceName>, owner: &str) -> String {
    let is_wanted = |name: &NamespaceName| {
        name.as_str() != SYSTEM_NAMESPACE && (only.is_empty() || only.contains(name))
    };
    let names: Vec<&NamespaceName> =
        catalog.namespaces().map(|(name, _)| name).filter(|name| is_wanted(name)).collect();
    let mut text = "apiVersion: danube/v1\n".to_owned();
    if owner != "apply" {
        write_line(&mut text, 0, "metadata", None);
        write_line(&mut text, 1, "owner", Some(&Value::from(owner)));
    }
    let mut topics = BTreeSet::new();
    let made_along = dead_letter_topics(catalog);
    text.push_str(if names.is_empty() { "namespaces: []\n" } else { "namespaces:\n" });
    for name in names {
        namespace(catalog, &mut text, name);
        let of_namespace = catalog.topics_in(name).map(|(topic, _)| topic.base());
        let is_said = |topic: &TopicName| !made_along.contains(topic) || has_own(catalog, topic);
        topics.extend(of_namespace.filter(is_said));
    }
    schemas(catalog, &mut text, &topics, only.is_empty());
    if !topics.is_empty() {
        text.push_str("topics:\n");
    }
    for name in &topics {
        topic(catalog, &mut text, name);
    }
    text
}

/// Whether a dead-letter topic has anything that it would not get when it is made along.
fn has_own(catalog: &Catalog, name: &TopicName) -> bool {
    catalog.topic(name).is_some_and(|topic| {
        !topic.overrides.is_empty()
            || !topic.subscriptions.is_empty()
            || topic.schema_subject.is_some()
    })
}

fn namespace(catalog: &Catalog, text: &mut String, name: &NamespaceName) {
    let fields = fields(catalog, &ObjectKey::Namespace(name.clone())).unwrap_or_default();
    if fields.is_empty() {
        let _ = writeln!(text, "  - {name}");
        return;
    }
    let _ = writeln!(text, "  - name: {name}");
    nested(text, 2, "policies", &fields, &[]);
}

fn schemas(catalog: &Catalog, text: &mut String, topics: &BTreeSet<TopicName>, all: bool) {
    let used: BTreeSet<&str> =
        topics.iter().filter_map(|name| first(catalog, name)?.schema_subject.as_deref()).collect();
    let subjects: Vec<_> = catalog
        .subjects()
        .filter(|(name, _)| all || used.contains(name.as_str()))
        .filter_map(|(name, subject)| Some((name, subject, subject.latest()?.1)))
        .collect();
    if !subjects.is_empty() {
        text.push_str("schemas:\n");
    }
    for (name, subject, latest) in subjects {
        let _ = writeln!(text, "  - subject: {}", scalar(&Value::from(name.as_str())));
        write_line(text, 2, "type", Some(&latest.schema_type.as_str().into()));
        write_line(text, 2, "compatibility", Some(&subject.compatibility.as_str().into()));
        if !latest.description.is_empty() {
            write_line(text, 2, "description", Some(&latest.description.as_ref().into()));
        }
        if !latest.definition.is_empty() {
            write_line(text, 2, "definition", Some(&latest.definition.as_ref().into()));
        }
    }
}

fn topic(catalog: &Catalog, text: &mut String, name: &TopicName) {
    let Some(found) = fields(catalog, &ObjectKey::Topic(name.clone())) else { return };
    let _ = writeln!(text, "  - name: {name}");
    let has_intent = found.contains_key("intent");
    for field in ["intent", "delivery", "partitions", "wal_sync"] {
        let value = found.get(field).filter(|value| **value != 0);
        if let Some(value) = value.filter(|_| field != "delivery" || !has_intent) {
            write_line(text, 2, field, Some(value));
        }
    }
    retention(text, &found);
    nested(text, 2, "dlq", &found, &[]);
    nested(text, 2, "schema", &found, &[]);
    nested(text, 2, "policies", &found, &[]);
    nested(text, 2, "labels", &found, &[]);
    subscriptions(catalog, text, name);
}

fn retention(text: &mut String, found: &Fields) {
    let time = found.get("retention.time_ms").and_then(Value::as_u64);
    let bytes = found.get("retention.bytes").and_then(Value::as_u64);
    if time.is_none() && bytes.is_none() {
        return;
    }
    write_line(text, 2, "retention", None);
    if let Some(ms) = time {
        let shown = if ms == 0 { "forever".to_owned() } else { format!("{ms}ms") };
        write_line(text, 3, "time", Some(&shown.into()));
    }
    if let Some(bytes) = bytes {
        let shown = if bytes == 0 { "unlimited".to_owned() } else { bytes.to_string() };
        let _ = writeln!(text, "      bytes: {shown}");
    }
}

fn subscriptions(catalog: &Catalog, text: &mut String, name: &TopicName) {
    let Some(topic) = first(catalog, name) else { return };
    let keys = topic.subscriptions.keys();
    let keys = keys.map(|subscription| ObjectKey::Subscription(name.clone(), subscription.clone()));
    let known: Vec<_> = keys.filter_map(|key| Some((fields(catalog, &key)?, key))).collect();
    if !known.is_empty() {
        write_line(text, 2, "subscriptions", None);
    }
    let own = topic.own_policy(name).map(|policy| policy_fields(&policy)).unwrap_or_default();
    for (mut fields, key) in known {
        let ObjectKey::Subscription(_, subscription) = &key else { continue };
        // What it inherits is left to the topic.
        fields.retain(|field, value| own.get(field) != Some(value));
        let _ = writeln!(text, "      - name: {subscription}");
        if let Some(kind) = fields.get("type") {
            write_line(text, 4, "type", Some(kind));
        }
        nested(text, 4, "failure_policy", &fields, &[]);
        nested(text, 4, "dispatch", &fields, &[]);
    }
}

/// The fields `group.…` under a key of their own.
fn nested(text: &mut String, depth: usize, group: &str, fields: &Fields, skip: &[&str]) {
    let prefix = format!("{group}.");
    let members: Vec<_> = fields
        .iter()
        .filter_map(|(field, value)| Some((field.strip_prefix(&prefix)?, value)))
        .filter(|(field, value)| !skip.contains(field) && !value.is_null())
        .collect();
    if !members.is_empty() {
        write_line(text, depth, group, None);
    }
    for (field, value) in members {
        write_line(text, depth + 1, field, Some(value));
    }
}

fn write_line(text: &mut String, depth: usize, key: &str, value: Option<&Value>) {
    let indent = "  ".repeat(depth);
    let _ = match value {
        Some(value) => writeln!(text, "{indent}{}: {}", scalar(&key.into()), scalar(value)),
        None => writeln!(text, "{indent}{key}:"),
    };
}

/// A scalar in YAML: as it is where nothing can be misread, else in quotes as JSON has them.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let first = text
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c.is_ascii_digit());
    let is_word = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
    first && text.chars().all(is_word) && !matches!(text, "true" | "false" | "null")
}
