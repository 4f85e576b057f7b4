//! The catalog as documents under keys, for people and tools.
//!
//! The keys are those of the product's seed; `docs/formats/catalog.md` lists them. Nothing is
//! stored in this form: a document is rendered from the catalog when somebody asks.
//!
//! Law: a prefix ends at a slash. `/topics/default/foo` has under it what belongs to `foo`, and
//! nothing of `foobar`, `foo-dlq` or `foo-part-0`.

use super::{Catalog, Promise, Subject, Subscription, Topic, TopicSchema};
use crate::name::{NamespaceName, TopicName};
use crate::schema::SubjectName;
use crate::settings::LIMITS;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Catalog {
    /// The document at `key`; `None` when there is none. A membership document is `null`, which is
    /// not the same as none.
    pub fn document(&self, key: &str) -> Option<Value> {
        let (found, value) = self.documents(key).into_iter().next()?;
        (found == key).then_some(value)
    }

    /// The documents at `prefix` and below it, by key. `/` or an empty prefix asks for all.
    pub fn documents(&self, prefix: &str) -> Vec<(String, Value)> {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let parts: Vec<&str> = prefix.split('/').collect();
        let mut found = Vec::new();
        match parts[..] {
            ["", "topics", namespace, topic, ..] => {
                // Most questions are about one topic; no need to render all the others.
                if let Ok(name) = TopicName::parse(&format!("/{namespace}/{topic}")) {
                    self.topic_documents(&name, &mut found);
                }
            }
            ["", "topics", ..] => self.all_topic_documents(&mut found),
            ["", "namespaces", ..] => self.namespace_documents(&mut found),
            ["", "schemas", subject, ..] => {
                // A slash in a name stands as `%2F` in its key.
                let name = subject.replace("%2F", "/").replace("%25", "%");
                if let Some((name, record)) = self.subjects.get_key_value(name.as_str()) {
                    subject_documents(name, record, &mut found);
                }
            }
            ["", "schemas"] => self.all_subject_documents(&mut found),
            _ => {
                self.namespace_documents(&mut found);
                self.all_subject_documents(&mut found);
                self.all_topic_documents(&mut found);
            }
        }
        found.retain(|(key, _)| is_at_or_below(key, prefix));
        found.sort_by(|(left, _), (right, _)| left.cmp(right));
        found
    }

    fn namespace_documents(&self, found: &mut Vec<(String, Value)>) {
        for (name, namespace) in self.namespaces() {
            let policies = LIMITS.map(|limit| (limit.as_str(), namespace.policies.get(limit)));
            let policies: BTreeMap<_, _> = policies.into_iter().collect();
            found.push((format!("/namespaces/{name}/policy"), render(&policies)));
        }
        for (name, _) in self.topics() {
            found.push((membership_key(&name.namespace(), name), Value::Null));
        }
    }

    fn all_subject_documents(&self, found: &mut Vec<(String, Value)>) {
        for (name, record) in self.subjects.iter() {
            subject_documents(name, record, found);
        }
    }

    fn all_topic_documents(&self, found: &mut Vec<(String, Value)>) {
        for (base, count) in self.partitioned() {
            found.push((format!("/topics{base}"), json!(count)));
        }
        for (name, topic) in self.topics() {
            documents_of(name, topic, found);
        }
    }

    fn topic_documents(&self, name: &TopicName, found: &mut Vec<(String, Value)>) {
        if let Some(count) = self.partition_count(name) {
            found.push((format!("/topics{name}"), json!(count)));
        }
        if let Some(topic) = self.topic(name) {
            documents_of(name, topic, found);
        }
    }
}

fn documents_of(name: &TopicName, topic: &Topic, found: &mut Vec<(String, Value)>) {
    let root = format!("/topics{name}");
    found.push((format!("{root}/delivery"), json!(topic.delivery.as_str())));
    if let Some(settings) = &topic.settings {
        found.push((format!("{root}/intent"), render(settings)));
    }
    if !topic.overrides.is_empty() {
        found.push((format!("{root}/policy"), render(&topic.overrides)));
    }
    if let Some(subject) = &topic.schema_subject {
        found.push((format!("{root}/schema_subject"), json!(subject)));
    }
    if topic.schema_subject.is_some() || topic.schema != TopicSchema::default() {
        found.push((format!("{root}/schema_config"), render(&topic.schema_config())));
    }
    if !topic.schema.history.is_empty() {
        found.push((format!("{root}/schema_history"), render(&topic.schema.history)));
    }
    for (subscription, record) in topic.subscriptions.iter() {
        let root = format!("{root}/subscriptions/{subscription}");
        if let Some(policy) = &record.failure_policy {
            found.push((format!("{root}/failure_policy"), render(policy)));
        }
        if let Some(max) = record.max_unacked_messages {
            let config = json!({ "max_unacked_messages": max });
            found.push((format!("{root}/dispatch_config"), config));
        }
        found.push((root, subscription_document(subscription.as_str(), record)));
    }
    for (subscription, policy) in topic.policies_ahead.iter() {
        let key = format!("{root}/subscriptions/{subscription}/failure_policy");
        found.push((key, render(policy)));
    }
}

fn subject_documents(name: &SubjectName, record: &Subject, found: &mut Vec<(String, Value)>) {
    let root = format!("/schemas/{}", name.as_str().replace('%', "%25").replace('/', "%2F"));
    if let Some((latest, version)) = record.latest() {
        let metadata = json!({
            "subject": name,
            "id": record.id,
            "schema_type": version.schema_type,
            "latest_version": latest,
            "created_at": version.created_at,
            "tags": version.tags,
        });
        found.push((format!("{root}/metadata"), metadata));
        let promise = Promise { mode: record.compatibility, levels: record.levels };
        found.push((format!("{root}/compatibility"), render(&promise)));
    }
    for (number, version) in record.versions.iter() {
        found.push((format!("{root}/versions/{number}"), render(version)));
    }
    found.push((format!("{root}/history"), render(&record.history)));
}

fn subscription_document(name: &str, record: &Subscription) -> Value {
    json!({
        "subscription_name": name,
        "subscription_id": record.id,
        "subscription_type": record.kind,
        "start": record.start,
        "created_at": record.created_at,
        "consumers": render(&record.consumers),
    })
}

fn membership_key(namespace: &NamespaceName, topic: &TopicName) -> String {
    format!("/namespaces/{namespace}/topics{topic}")
}

fn is_at_or_below(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn render(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("plain data with text keys is a JSON value")
}
