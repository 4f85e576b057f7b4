//! Topics and their subscriptions, as a manifest declares them.

use super::parser::{Keys, Parser};
use super::words::{boolean, number, one_of, topic_name};
use crate::catalog::{Fields, ObjectKey};
use crate::fault::Fault;
use crate::intent::{Delivery, Intent, WalSyncMode};
use crate::manifest::node::{Node, NodeValue};
use crate::manifest::quantity::{duration_ms, size};
use crate::name::{SubscriptionName, TopicName};
use crate::policy::SubscriptionType;
use crate::position::Position;
use crate::schema::{SubjectName, ValidationPolicy};

impl<'a> Parser<'a> {
    pub(super) fn topic(&mut self, node: &'a Node) {
        const KEYS: [&str; 11] = [
            "name",
            "intent",
            "delivery",
            "partitions",
            "schema",
            "policies",
            "retention",
            "wal_sync",
            "dlq",
            "labels",
            "subscriptions",
        ];
        let Some(mut keys) = self.keys(node, "topic", &KEYS) else { return };
        let Some(name) = self.name(&keys, "name", topic_name) else { return };
        keys.entry = format!("topic `{name}`");
        let mut fields = Fields::new();
        let intent = self.take(&keys, "intent", Intent::parse);
        let delivery = self.take(&keys, "delivery", Delivery::parse);
        if let (Some(intent), Some(delivery)) = (intent, delivery) {
            let own = intent.expand(&name).delivery;
            if own != delivery {
                let why = format!(
                    "intent `{intent}` means delivery {}, and {} is declared; leave one out",
                    own.as_str(),
                    delivery.as_str()
                );
                self.wrong(&node.at, &keys.entry, why);
            }
        }
        self.put(&mut fields, "intent", intent.map(Intent::as_str));
        self.put(&mut fields, "delivery", delivery.map(Delivery::as_str));
        let partitions = self.take(&keys, "partitions", |text| match number::<u32>(text)? {
            0 => Err(Fault::invalid("0 partitions; leave it out for a topic without partitions")),
            count => Ok(count),
        });
        self.put(&mut fields, "partitions", Some(partitions.unwrap_or(0)));
        let sync = self.take(&keys, "wal_sync", WalSyncMode::parse);
        self.put(&mut fields, "wal_sync", sync.map(WalSyncMode::as_str));
        self.policies(&keys, &mut fields);
        self.retention(&keys, &mut fields);
        self.topic_schema(&keys, &mut fields);
        self.labels(&keys, &mut fields);
        let makes_dead_letters = self.dead_letters(&keys, &mut fields);
        let subscriptions = self.list(&keys, "subscriptions");
        let declared = self.declare(ObjectKey::Topic(name.clone()), &node.at, fields);
        declared.makes_dead_letters = makes_dead_letters;
        for node in subscriptions {
            self.subscription(&name, node);
        }
    }

    fn retention(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        let Some((_, node)) = keys.pairs.get("retention") else { return };
        let Some(retention) = self.keys(node, &keys.entry, &["time", "bytes"]) else { return };
        let time = self.take(&retention, "time", duration_ms);
        let bytes = self.take(&retention, "bytes", size);
        self.put(fields, "retention.time_ms", time);
        self.put(fields, "retention.bytes", bytes);
    }

    /// `dlq: NAME`, or its topic and whether it is made when it does not exist.
    fn dead_letters(&mut self, keys: &Keys<'a>, fields: &mut Fields) -> bool {
        let Some((_, node)) = keys.pairs.get("dlq") else { return true };
        let (target, create) = match &node.value {
            NodeValue::Map(_) => {
                let Some(dlq) = self.keys(node, &keys.entry, &["topic", "create"]) else {
                    return true;
                };
                (self.name(&dlq, "topic", topic_name), self.take(&dlq, "create", boolean))
            }
            _ => (self.take(keys, "dlq", topic_name), None),
        };
        self.put(fields, "dlq.topic", target.map(|name| name.to_string()));
        create.unwrap_or(true)
    }

    fn topic_schema(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        const KEYS: [&str; 3] = ["subject", "validation", "payload_validation"];
        let Some((_, node)) = keys.pairs.get("schema") else { return };
        let Some(schema) = self.keys(node, &keys.entry, &KEYS) else { return };
        let subject = self.name(&schema, "subject", SubjectName::parse);
        let validation = self.take(&schema, "validation", str::parse::<ValidationPolicy>);
        let payload = self.take(&schema, "payload_validation", boolean);
        self.put(fields, "schema.subject", subject.map(|subject| subject.to_string()));
        let validation = validation.unwrap_or_default();
        self.put(fields, "schema.validation", Some(validation.as_str()));
        self.put(fields, "schema.payload_validation", Some(payload.unwrap_or(false)));
    }

    fn labels(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        let Some((_, node)) = keys.pairs.get("labels") else { return };
        let Some(labels) = self.keys(node, &keys.entry, &[]) else { return };
        for name in labels.pairs.keys().copied().collect::<Vec<_>>() {
            let value = self.take(&labels, name, |text| Ok(text.to_owned()));
            self.put(fields, &format!("labels.{name}"), value);
        }
    }

    fn subscription(&mut self, topic: &TopicName, node: &'a Node) {
        const KEYS: [&str; 5] = ["name", "type", "start", "failure_policy", "dispatch"];
        let entry = format!("topic `{topic}`, subscription");
        let Some(mut keys) = self.keys(node, &entry, &KEYS) else { return };
        let Some(name) = self.name(&keys, "name", SubscriptionName::parse) else { return };
        keys.entry = format!("topic `{topic}`, subscription `{name}`");
        let mut fields = Fields::new();
        let kind = self.take(&keys, "type", SubscriptionType::parse);
        let kind = kind.unwrap_or(SubscriptionType::Shared);
        self.put(&mut fields, "type", Some(kind.as_str()));
        let start = self.take(&keys, "start", Position::parse);
        self.failure_policy(&keys, &mut fields);
        if let Some((_, node)) = keys.pairs.get("dispatch")
            && let Some(dispatch) = self.keys(node, &keys.entry, &["max_unacked_messages"])
        {
            let max = self.take(&dispatch, "max_unacked_messages", number::<u32>);
            self.put(&mut fields, "dispatch.max_unacked_messages", max);
        }
        let key = ObjectKey::Subscription(topic.clone(), name);
        self.declare(key, &node.at, fields).start = Some(start.unwrap_or(Position::Latest));
    }

    fn failure_policy(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        const NUMBERS: [&str; 4] = [
            "max_redelivery_count",
            "ack_timeout_ms",
            "base_redelivery_delay_ms",
            "max_redelivery_delay_ms",
        ];
        const WORDS: [&str; 2] = ["backoff_strategy", "poison_policy"];
        let known = [&NUMBERS[..], &WORDS[..], &["dead_letter_topic"]].concat();
        let Some((_, node)) = keys.pairs.get("failure_policy") else { return };
        let Some(policy) = self.keys(node, &keys.entry, &known) else { return };
        for name in NUMBERS {
            let value = self.take(&policy, name, number::<u64>);
            self.put(fields, &format!("failure_policy.{name}"), value);
        }
        let choices: [&[&str]; 2] = [&["fixed", "exponential"], &["dead_letter", "block", "drop"]];
        for (name, choices) in WORDS.into_iter().zip(choices) {
            let value = self.take(&policy, name, |text| one_of(text, choices));
            self.put(fields, &format!("failure_policy.{name}"), value);
        }
        let target = self.take(&policy, "dead_letter_topic", topic_name);
        let target = target.map(|name| name.to_string());
        self.put(fields, "failure_policy.dead_letter_topic", target);
    }
}
