//! `danube ctl topics describe`: the lines of the product's documentation first, then schema,
//! partitions and subscriptions.

use super::description;
use crate::ctl::admin::{Admin, TopicArgument};
use crate::failure::Failure;
use crate::output::{self, Format, Table};
use danube_wire::proto::control::{
    Consumer, DescribeTopicResponse, FailurePolicy, IntentSettings, Partition, Subscription,
};
use serde_json::{Value, json};

/// Print what a topic is, and where its subscriptions stand
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    topic: TopicArgument,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// Prints all of it.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments, admin: &Admin) -> Result<(), Failure> {
    let answer = description(&arguments.topic.name()?, admin).await?;
    match arguments.output {
        Format::Text => output::line(text(&answer)),
        Format::Json => output::json(&document(&answer)),
    }
}

fn text(answer: &DescribeTopicResponse) -> String {
    let mut lines = vec![
        format!("Topic: {}", answer.name),
        format!("Broker ID: {}", answer.broker_id),
        format!("Delivery: {}", answer.delivery),
    ];
    match &answer.intent {
        Some(intent) => lines.push(format!("Intent: {}", intent.summary)),
        None => lines.push(format!("WAL Sync: {}", answer.wal_sync_mode)),
    }
    lines.push(format!("Schema: {}", answer.schema_subject.as_deref().unwrap_or("None")));
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

fn document(answer: &DescribeTopicResponse) -> Value {
    let partition = |partition: &Partition| {
        json!({
            "name": partition.name,
            "topic_id": partition.topic_id,
            "broker_id": partition.broker_id,
            "start_offset": partition.start_offset,
            "next_offset": partition.next_offset,
        })
    };
    json!({
        "topic": answer.name,
        "broker_id": answer.broker_id,
        "delivery": answer.delivery,
        "intent": answer.intent.as_ref().map(intent_document),
        "wal_sync_mode": answer.wal_sync_mode,
        "schema_subject": answer.schema_subject,
        "partitions": answer.partitions.iter().map(partition).collect::<Value>(),
        "subscriptions":
            answer.subscriptions.iter().map(subscription_document).collect::<Value>(),
    })
}

/// As it is stored, without the summary for people.
fn intent_document(intent: &IntentSettings) -> Value {
    json!({
        "intent": intent.intent,
        "delivery": intent.delivery,
        "wal_sync_mode": intent.wal_sync_mode,
        "max_retries": intent.max_retries,
        "backoff_ms": intent.backoff_ms,
        "poison_policy": intent.poison_policy,
        "dlq_suffix": intent.dlq_suffix,
        "dead_letter_topic": intent.dead_letter_topic,
        "persistence": intent.persistence,
    })
}

fn subscription_document(subscription: &Subscription) -> Value {
    let consumer = |consumer: &Consumer| {
        json!({
            "name": consumer.name,
            "consumer_id": consumer.consumer_id,
            "connected": consumer.connected,
            "in_flight": consumer.in_flight,
            "key_filters": consumer.key_filters,
        })
    };
    json!({
        "name": subscription.name,
        "topic": subscription.topic,
        "type": subscription.r#type,
        "cursor": subscription.cursor,
        "backlog": subscription.backlog,
        "in_flight": subscription.in_flight,
        "waiting": subscription.waiting,
        "blocked": subscription.blocked,
        "unmatched": subscription.unmatched,
        "dropped": subscription.dropped,
        "max_unacked_messages": subscription.max_unacked_messages,
        "why": subscription.why,
        "failure_policy": subscription.failure_policy.as_ref().map(policy_document),
        "consumers": subscription.consumers.iter().map(consumer).collect::<Value>(),
    })
}

fn policy_document(policy: &FailurePolicy) -> Value {
    json!({
        "max_redelivery_count": policy.max_redelivery_count,
        "ack_timeout_ms": policy.ack_timeout_ms,
        "base_redelivery_delay_ms": policy.base_redelivery_delay_ms,
        "max_redelivery_delay_ms": policy.max_redelivery_delay_ms,
        "backoff_strategy": policy.backoff_strategy,
        "dead_letter_topic": policy.dead_letter_topic,
        "poison_policy": policy.poison_policy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn jobs() -> DescribeTopicResponse {
        DescribeTopicResponse {
            name: "/default/agent-jobs".into(),
            broker_id: "1".into(),
            delivery: "Reliable".into(),
            wal_sync_mode: "fsync_batch".into(),
            intent: Some(IntentSettings {
                intent: "task_queue".into(),
                summary: "task_queue (delivery=reliable, …)".into(),
                ..IntentSettings::default()
            }),
            partitions: vec![Partition {
                name: "/default/agent-jobs".into(),
                topic_id: 3,
                broker_id: "1".into(),
                start_offset: 0,
                next_offset: 12,
            }],
            subscriptions: vec![Subscription {
                topic: "/default/agent-jobs".into(),
                name: "workers".into(),
                r#type: "shared".into(),
                cursor: 4,
                backlog: 8,
                in_flight: 2,
                unmatched: 3,
                why: "no consumer is connected".into(),
                ..Subscription::default()
            }],
            ..DescribeTopicResponse::default()
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
              workers on /default/agent-jobs: no consumer is connected"#]].assert_eq(&text(&jobs()));
    }

    #[test]
    fn a_topic_without_intent_says_how_it_syncs() {
        let plain = DescribeTopicResponse { intent: None, subscriptions: Vec::new(), ..jobs() };
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
        .assert_eq(&text(&plain));
    }

    #[test]
    fn json_nests_the_intent() {
        let document = document(&jobs());
        assert_eq!(document["intent"]["intent"], "task_queue");
        assert_eq!(document["subscriptions"][0]["backlog"], 8);
        assert_eq!(document["schema_subject"], Value::Null);
    }
}
