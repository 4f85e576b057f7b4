//! `topics describe`: the lines of the product's documentation first, then schema, partitions and
//! subscriptions.

use super::description;
use crate::args::TopicArg;
use crate::error::OpError;
use crate::operation::{self, Effect, Operation, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_wire::proto::control;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print what a topic is, and where its subscriptions stand
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Describe {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
}

impl Operation for Describe {
    type Output = Topic;
    const SPEC: Spec = Spec {
        path: ("topics", "describe"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/agent-jobs",
    };

    async fn run(self, session: &Session) -> Result<Topic, OpError> {
        Ok(description(&self.topic.name()?, session).await?.into())
    }
}

/// A topic, or all partitions of one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Topic {
    topic: String,
    broker_id: String,
    delivery: String,
    intent: Option<Intent>,
    wal_sync_mode: String,
    schema_subject: Option<String>,
    schema_id: Option<u64>,
    schema_version: Option<u32>,
    schema_type: Option<String>,
    compatibility_mode: Option<String>,
    validation_policy: Option<String>,
    payload_validation: bool,
    partitions: Vec<Partition>,
    subscriptions: Vec<Subscription>,
}

/// As it is stored, with a summary for people.
#[derive(Debug, Serialize, JsonSchema)]
struct Intent {
    #[serde(skip)]
    summary: String,
    intent: String,
    delivery: String,
    wal_sync_mode: String,
    max_retries: u32,
    backoff_ms: u64,
    poison_policy: String,
    dlq_suffix: Option<String>,
    dead_letter_topic: Option<String>,
    persistence: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Partition {
    name: String,
    topic_id: u32,
    broker_id: String,
    start_offset: u64,
    next_offset: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Subscription {
    name: String,
    topic: String,
    r#type: String,
    cursor: u64,
    backlog: u64,
    in_flight: u64,
    waiting: u64,
    blocked: u64,
    unmatched: u64,
    dropped: u64,
    max_unacked_messages: u32,
    why: String,
    /// The reason as a word, such as `key_blocked`.
    why_code: String,
    /// Messages that failed and are not finished, those that block first; the first 20.
    failing: Vec<Failing>,
    failure_policy: Option<FailurePolicy>,
    consumers: Vec<Consumer>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Failing {
    offset: u64,
    key: Option<String>,
    /// Deliveries made.
    attempts: u32,
    /// Why the last one failed.
    reason: String,
    /// It holds its key, or the subscription, until somebody settles it.
    blocked: bool,
    /// In milliseconds since 1970.
    blocked_since: Option<u64>,
    /// When its next delivery is due, in milliseconds since 1970.
    due_at: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FailurePolicy {
    max_redelivery_count: u32,
    ack_timeout_ms: u64,
    base_redelivery_delay_ms: u64,
    max_redelivery_delay_ms: u64,
    backoff_strategy: String,
    dead_letter_topic: Option<String>,
    poison_policy: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Consumer {
    name: String,
    consumer_id: u64,
    connected: bool,
    in_flight: u64,
    key_filters: Vec<String>,
}

impl From<control::DescribeTopicResponse> for Topic {
    fn from(wire: control::DescribeTopicResponse) -> Topic {
        Topic {
            topic: wire.name,
            intent: wire.intent.map(Into::into),
            partitions: wire.partitions.into_iter().map(Into::into).collect(),
            subscriptions: wire.subscriptions.into_iter().map(Into::into).collect(),
            broker_id: wire.broker_id,
            delivery: wire.delivery,
            wal_sync_mode: wire.wal_sync_mode,
            schema_subject: wire.schema_subject,
            schema_id: wire.schema_id,
            schema_version: wire.schema_version,
            schema_type: wire.schema_type,
            compatibility_mode: wire.compatibility_mode,
            validation_policy: wire.validation_policy,
            payload_validation: wire.payload_validation,
        }
    }
}

impl From<control::IntentSettings> for Intent {
    fn from(wire: control::IntentSettings) -> Intent {
        Intent {
            summary: wire.summary,
            intent: wire.intent,
            delivery: wire.delivery,
            wal_sync_mode: wire.wal_sync_mode,
            max_retries: wire.max_retries,
            backoff_ms: wire.backoff_ms,
            poison_policy: wire.poison_policy,
            dlq_suffix: wire.dlq_suffix,
            dead_letter_topic: wire.dead_letter_topic,
            persistence: wire.persistence,
        }
    }
}

impl From<control::Partition> for Partition {
    fn from(wire: control::Partition) -> Partition {
        Partition {
            name: wire.name,
            topic_id: wire.topic_id,
            broker_id: wire.broker_id,
            start_offset: wire.start_offset,
            next_offset: wire.next_offset,
        }
    }
}

impl From<control::Subscription> for Subscription {
    fn from(wire: control::Subscription) -> Subscription {
        Subscription {
            failure_policy: wire.failure_policy.map(Into::into),
            consumers: wire.consumers.into_iter().map(Into::into).collect(),
            name: wire.name,
            topic: wire.topic,
            r#type: wire.r#type,
            cursor: wire.cursor,
            backlog: wire.backlog,
            in_flight: wire.in_flight,
            waiting: wire.waiting,
            blocked: wire.blocked,
            unmatched: wire.unmatched,
            dropped: wire.dropped,
            max_unacked_messages: wire.max_unacked_messages,
            why: wire.why,
            why_code: wire.why_code,
            failing: wire.failing.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<control::FailingMessage> for Failing {
    fn from(wire: control::FailingMessage) -> Failing {
        Failing {
            offset: wire.offset,
            key: wire.key,
            attempts: wire.attempts,
            reason: wire.reason,
            blocked: wire.blocked,
            blocked_since: wire.blocked_since,
            due_at: wire.due_at,
        }
    }
}

impl From<control::FailurePolicy> for FailurePolicy {
    fn from(wire: control::FailurePolicy) -> FailurePolicy {
        FailurePolicy {
            max_redelivery_count: wire.max_redelivery_count,
            ack_timeout_ms: wire.ack_timeout_ms,
            base_redelivery_delay_ms: wire.base_redelivery_delay_ms,
            max_redelivery_delay_ms: wire.max_redelivery_delay_ms,
            backoff_strategy: wire.backoff_strategy,
            dead_letter_topic: wire.dead_letter_topic,
            poison_policy: wire.poison_policy,
        }
    }
}

impl From<control::Consumer> for Consumer {
    fn from(wire: control::Consumer) -> Consumer {
        Consumer {
            name: wire.name,
            consumer_id: wire.consumer_id,
            connected: wire.connected,
            in_flight: wire.in_flight,
            key_filters: wire.key_filters,
        }
    }
}

impl operation::Output for Topic {
    fn text(&self) -> String {
        text(self)
    }
}

fn text(answer: &Topic) -> String {
    let mut lines = vec![
        format!("Topic: {}", answer.topic),
        format!("Broker ID: {}", answer.broker_id),
        format!("Delivery: {}", answer.delivery),
    ];
    match &answer.intent {
        Some(intent) => lines.push(format!("Intent: {}", intent.summary)),
        None => lines.push(format!("WAL Sync: {}", answer.wal_sync_mode)),
    }
    lines.extend(schema(answer));
    lines.push(format!("Partitions: {}", answer.partitions.len()));
    lines.push(indented(&partitions(&answer.partitions)));
    if answer.subscriptions.is_empty() {
        lines.push("Subscriptions: None".into());
    } else {
        lines.push(format!("Subscriptions: {}", answer.subscriptions.len()));
        lines.push(indented(&subscriptions(&answer.subscriptions)));
        lines.extend(answer.subscriptions.iter().flat_map(remarks));
    }
    lines.join("\n")
}

fn schema(answer: &Topic) -> Vec<String> {
    let Some(subject) = &answer.schema_subject else { return vec!["Schema: None".into()] };
    let mut lines = vec![format!("Schema: {subject}")];
    if let Some(id) = answer.schema_id {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
        lines.push(format!("Schema ID: {id}"));
        lines.push(format!("Schema Version: {}", answer.schema_version.unwrap_or_default()));
        lines.push(format!("Schema Type: {}", text(&answer.schema_type)));
        lines.push(format!("Compatibility: {}", text(&answer.compatibility_mode)));
    }
    if let Some(policy) = &answer.validation_policy {
        let payload = if answer.payload_validation { "on" } else { "off" };
        lines.push(format!("Validation: {policy}, payload validation {payload}"));
    }
    lines
}

fn indented(table: &Table) -> String {
    format!("  {}", table.render().replace('\n', "\n  "))
}

fn partitions(partitions: &[Partition]) -> Table {
    let mut table = Table::new(&["PARTITION", "BROKER", "FIRST OFFSET", "NEXT OFFSET"]);
    for partition in partitions {
        table.row([
            partition.name.clone(),
            partition.broker_id.clone(),
            partition.start_offset.to_string(),
            partition.next_offset.to_string(),
        ]);
    }
    table
}

fn subscriptions(subscriptions: &[Subscription]) -> Table {
    let mut table = Table::new(&[
        "SUBSCRIPTION",
        "PARTITION",
        "TYPE",
        "CURSOR",
        "BACKLOG",
        "IN FLIGHT",
        "WAITING",
        "BLOCKED",
        "CONSUMERS",
    ]);
    for subscription in subscriptions {
        let connected = subscription.consumers.iter().filter(|c| c.connected).count();
        table.row([
            subscription.name.clone(),
            subscription.topic.clone(),
            subscription.r#type.clone(),
            subscription.cursor.to_string(),
            subscription.backlog.to_string(),
            subscription.in_flight.to_string(),
            subscription.waiting.to_string(),
            subscription.blocked.to_string(),
            connected.to_string(),
        ]);
    }
    table
}

/// What must not stay silent: messages nobody got, and a subscription that does not move.
fn remarks(subscription: &Subscription) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut say = |remark: String| {
        remarks.push(format!("  {} on {}: {remark}", subscription.name, subscription.topic));
    };
    if subscription.unmatched > 0 {
        say(format!("{} skipped, no key filter takes their key", subscription.unmatched));
    }
    if subscription.dropped > 0 {
        say(format!("{} dropped, a consumer was too slow", subscription.dropped));
    }
    if !subscription.why.is_empty() {
        say(subscription.why.clone());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::Value;

    fn jobs() -> control::DescribeTopicResponse {
        control::DescribeTopicResponse {
            name: "/default/agent-jobs".into(),
            broker_id: "1".into(),
            delivery: "Reliable".into(),
            wal_sync_mode: "fsync_batch".into(),
            intent: Some(control::IntentSettings {
                intent: "task_queue".into(),
                summary: "task_queue (delivery=reliable, …)".into(),
                ..control::IntentSettings::default()
            }),
            partitions: vec![control::Partition {
                name: "/default/agent-jobs".into(),
                topic_id: 3,
                broker_id: "1".into(),
                start_offset: 0,
                next_offset: 12,
            }],
            subscriptions: vec![control::Subscription {
                topic: "/default/agent-jobs".into(),
                name: "workers".into(),
                r#type: "shared".into(),
                cursor: 4,
                backlog: 8,
                in_flight: 2,
                unmatched: 3,
                why: "no consumer is connected".into(),
                ..control::Subscription::default()
            }],
            ..control::DescribeTopicResponse::default()
        }
    }

    #[test]
    fn the_first_lines_are_those_of_the_documentation() {
        expect![[r#"
            Topic: /default/agent-jobs
            Broker ID: 1
            Delivery: Reliable
            Intent: task_queue (delivery=reliable, …)
            Schema: None
            Partitions: 1
              PARTITION            BROKER  FIRST OFFSET  NEXT OFFSET
              /default/agent-jobs  1       0             12
            Subscriptions: 1
              SUBSCRIPTION  PARTITION            TYPE    CURSOR  BACKLOG  IN FLIGHT  WAITING  BLOCKED  CONSUMERS
              workers       /default/agent-jobs  shared  4       8        2          0        0        0
              workers on /default/agent-jobs: 3 skipped, no key filter takes their key
              workers on /default/agent-jobs: no consumer is connected"#]].assert_eq(&text(&jobs().into()));
    }

    #[test]
    fn a_topic_without_intent_says_how_it_syncs() {
        let plain =
            control::DescribeTopicResponse { intent: None, subscriptions: Vec::new(), ..jobs() };
        expect![[r#"
            Topic: /default/agent-jobs
            Broker ID: 1
            Delivery: Reliable
            WAL Sync: fsync_batch
            Schema: None
            Partitions: 1
              PARTITION            BROKER  FIRST OFFSET  NEXT OFFSET
              /default/agent-jobs  1       0             12
            Subscriptions: None"#]]
        .assert_eq(&text(&plain.into()));
    }

    #[test]
    fn json_nests_the_intent() {
        let document = serde_json::to_value(Topic::from(jobs())).expect("plain data");
        assert_eq!(document["intent"]["intent"], "task_queue");
        assert_eq!(document["subscriptions"][0]["backlog"], 8);
        assert_eq!(document["schema_subject"], Value::Null);
    }
}
