//! What the pages read of the operations' documents. A field that is not here is not shown.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Status {
    pub(crate) broker_id: String,
    pub(crate) version: String,
    pub(crate) started_at: u64,
    pub(crate) now: u64,
    pub(crate) topics: u64,
    pub(crate) total: Figures,
    pub(crate) oldest: Option<Unfinished>,
    pub(crate) attention: Vec<Attention>,
    pub(crate) attention_total: u64,
    pub(crate) log: Log,
    pub(crate) found: u64,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Figures {
    pub(crate) in_per_s: f64,
    pub(crate) out_per_s: f64,
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
    pub(crate) blocked: u64,
    pub(crate) subscriptions: u64,
    pub(crate) consumers: u64,
    pub(crate) producers: u64,
    pub(crate) messages: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Unfinished {
    pub(crate) topic: String,
    pub(crate) subscription: String,
    pub(crate) offset: u64,
    pub(crate) publish_time: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Attention {
    pub(crate) code: String,
    pub(crate) topic: String,
    pub(crate) subscription: Option<String>,
    pub(crate) why: String,
    pub(crate) backlog: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Log {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) cache_bytes: u64,
    pub(crate) failures: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Row {
    pub(crate) topic: String,
    pub(crate) partitions: u32,
    pub(crate) delivery: String,
    pub(crate) intent: Option<String>,
    pub(crate) wal_sync_mode: String,
    pub(crate) figures: Figures,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Topic {
    pub(crate) topic: String,
    pub(crate) delivery: String,
    pub(crate) intent: Option<Intent>,
    pub(crate) wal_sync_mode: String,
    pub(crate) schema_subject: Option<String>,
    pub(crate) schema_version: Option<u32>,
    pub(crate) schema_type: Option<String>,
    pub(crate) validation_policy: Option<String>,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) subscriptions: Vec<Subscription>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Intent {
    pub(crate) intent: String,
    pub(crate) dead_letter_topic: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Partition {
    pub(crate) name: String,
    pub(crate) start_offset: u64,
    pub(crate) next_offset: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Subscription {
    pub(crate) name: String,
    pub(crate) topic: String,
    pub(crate) r#type: String,
    pub(crate) cursor: u64,
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
    pub(crate) blocked: u64,
    pub(crate) unmatched: u64,
    pub(crate) dropped: u64,
    pub(crate) max_unacked_messages: u32,
    pub(crate) why: String,
    pub(crate) why_code: String,
    pub(crate) failing: Vec<Failing>,
    pub(crate) failure_policy: Option<FailurePolicy>,
    pub(crate) consumers: Vec<Consumer>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Failing {
    pub(crate) offset: u64,
    pub(crate) key: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) reason: String,
    pub(crate) blocked: bool,
    pub(crate) blocked_since: Option<u64>,
    pub(crate) due_at: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FailurePolicy {
    pub(crate) max_redelivery_count: u32,
    pub(crate) ack_timeout_ms: u64,
    pub(crate) base_redelivery_delay_ms: u64,
    pub(crate) max_redelivery_delay_ms: u64,
    pub(crate) backoff_strategy: String,
    pub(crate) dead_letter_topic: Option<String>,
    pub(crate) poison_policy: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Consumer {
    pub(crate) name: String,
    pub(crate) connected: bool,
    pub(crate) in_flight: u64,
    pub(crate) key_filters: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Explanation {
    pub(crate) publish: String,
    pub(crate) ack: String,
    pub(crate) settings: Vec<Setting>,
    pub(crate) subscriptions: BTreeMap<String, Explained>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Explained {
    pub(crate) failures: Option<String>,
    pub(crate) settings: Vec<Setting>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) unit: String,
    pub(crate) origin: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) offset: u64,
    pub(crate) key: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) publish_time: u64,
    pub(crate) producer: String,
    pub(crate) schema_id: Option<u64>,
    pub(crate) schema_version: Option<u32>,
    pub(crate) size: u64,
    pub(crate) payload: Value,
    pub(crate) encoding: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Replay {
    pub(crate) replayed_before: u64,
    pub(crate) letters: Vec<Letter>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Letter {
    pub(crate) offset: u64,
    pub(crate) to: String,
    pub(crate) key: Option<String>,
    pub(crate) subscription: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) replay_count: u32,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Sought {
    pub(crate) partitions: Vec<SoughtPartition>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SoughtPartition {
    pub(crate) topic: String,
    pub(crate) old_offset: u64,
    pub(crate) new_offset: u64,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Subject {
    pub(crate) subject: String,
    pub(crate) schema_type: String,
    pub(crate) latest_version: u32,
    pub(crate) compatibility_mode: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ListedVersion {
    pub(crate) version: u32,
    pub(crate) created_at: u64,
    pub(crate) created_by: String,
    pub(crate) description: String,
    pub(crate) fingerprint: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Version {
    pub(crate) version: u32,
    pub(crate) schema_type: String,
    pub(crate) compatibility_mode: String,
    pub(crate) definition: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Plan {
    pub(crate) owner: String,
    pub(crate) refused: bool,
    pub(crate) summary: Summary,
    pub(crate) items: Vec<PlanItem>,
    pub(crate) undeclared: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Summary {
    pub(crate) create: u64,
    pub(crate) update: u64,
    pub(crate) unchanged: u64,
    pub(crate) prune: u64,
    pub(crate) conflict: u64,
    pub(crate) blocked: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PlanItem {
    pub(crate) action: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) at: Option<String>,
    pub(crate) fields: Vec<Field>,
    pub(crate) why: Option<String>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Field {
    pub(crate) field: String,
    #[serde(default)]
    pub(crate) old: Option<Value>,
    #[serde(default)]
    pub(crate) new: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Cluster {
    pub(crate) mode: String,
    pub(crate) brokers: Vec<Member>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Member {
    pub(crate) broker_id: String,
    pub(crate) broker_status: String,
    pub(crate) broker_addr: String,
    pub(crate) broker_role: String,
    pub(crate) admin_addr: String,
    pub(crate) metrics_addr: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Limits {
    pub(crate) policies: Vec<Setting>,
}
