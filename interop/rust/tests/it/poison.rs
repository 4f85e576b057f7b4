//! A message that fails too often: held, dropped, or moved to a dead-letter topic.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::{Admin, quick_policy};
use danube_client::{Producer, SubType};
use danube_core::admin_proto::SubscriptionPoisonPolicy;
use danube_core::message::StreamMessage;

const TOPIC: &str = "/default/poison";
const SUB: &str = "s";
const FAILED: &str = "/default/poison-failed";

/// A producer and an Exclusive consumer under a policy with two re-deliveries.
async fn set_up(
    broker: &Broker,
    policy: SubscriptionPoisonPolicy,
    dead_letters: Option<&str>,
) -> (Producer, Inbox) {
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut admin = Admin::connect(broker).await;
    admin.set_failure_policy(TOPIC, SUB, quick_policy(2, policy, dead_letters)).await;
    (producer, Who::new(TOPIC, SUB, SubType::Exclusive, "c").open(&client).await)
}

/// Nacks the next message and its two re-deliveries; the last one.
async fn exhaust(inbox: &mut Inbox) -> StreamMessage {
    let first = inbox.next().await;
    inbox.nack(&first, Some("try 1")).await;
    let mut last = first.clone();
    for attempt in [2, 3] {
        last = inbox.next().await;
        assert_eq!(last.msg_id, first.msg_id, "attempt {attempt} is of the same message");
        inbox.nack(&last, Some(&format!("try {attempt}"))).await;
    }
    last
}

#[tokio::test]
async fn reliable_retry_exhausted_block_prevents_progress() {
    let broker = Broker::start().await;
    let (producer, mut inbox) = set_up(&broker, SubscriptionPoisonPolicy::Block, None).await;
    let mut admin = Admin::connect(&broker).await;
    send(&producer, b"poison").await;
    let poison = exhaust(&mut inbox).await;
    admin.until(TOPIC, "it is blocked", |d| d.subscriptions[0].blocked == 1).await;
    send(&producer, b"behind").await;
    admin.until(TOPIC, "both wait", |d| d.subscriptions[0].backlog == 2).await;
    inbox.stays_empty().await;
    let why = admin.describe(TOPIC).await.subscriptions[0].why.clone();
    assert!(why.contains(&poison.msg_id.topic_offset.to_string()), "says which offset: {why}");
    // An ack of the message is one way out.
    inbox.ack(&poison).await;
    assert_eq!(text(&inbox.take().await), "behind");
}

#[tokio::test]
async fn a_changed_policy_releases_a_blocked_message() {
    let broker = Broker::start().await;
    let (producer, mut inbox) = set_up(&broker, SubscriptionPoisonPolicy::Block, None).await;
    let mut admin = Admin::connect(&broker).await;
    send(&producer, b"poison").await;
    exhaust(&mut inbox).await;
    admin.until(TOPIC, "it is blocked", |d| d.subscriptions[0].blocked == 1).await;
    send(&producer, b"behind").await;
    let lenient = quick_policy(9, SubscriptionPoisonPolicy::Block, None);
    admin.set_failure_policy(TOPIC, SUB, lenient).await;
    assert_eq!(sorted_texts(&inbox.take_many(2).await), ["behind", "poison"]);
}

#[tokio::test]
async fn reliable_retry_exhausted_drop_skips_poisoned_message() {
    let broker = Broker::start().await;
    let (producer, mut inbox) = set_up(&broker, SubscriptionPoisonPolicy::Drop, None).await;
    send(&producer, b"poison").await;
    exhaust(&mut inbox).await;
    send(&producer, b"behind").await;
    assert_eq!(text(&inbox.take().await), "behind");
    let mut admin = Admin::connect(&broker).await;
    admin.until(TOPIC, "all are finished", |d| d.subscriptions[0].backlog == 0).await;
}

#[tokio::test]
async fn reliable_retry_exhausted_deadletter_routes_message_to_dlq() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    admin.create_topic(FAILED, true).await;
    let mut dead = Who::new(FAILED, "watch", SubType::Exclusive, "w").open(&client).await;
    let policy = SubscriptionPoisonPolicy::DeadLetter;
    let (producer, mut inbox) = set_up(&broker, policy, Some(FAILED)).await;

    let headers = attributes([("kept", "yes")]);
    let sent = producer.send_with_key(b"poison".to_vec(), Some(headers), "key-9");
    within("an acknowledgement", sent).await.expect("sent");
    let poison = exhaust(&mut inbox).await;
    send(&producer, b"behind").await;
    assert_eq!(text(&inbox.take().await), "behind");

    let copy = dead.take().await;
    assert_eq!(text(&copy), "poison");
    assert_eq!(copy.msg_id.topic_name, FAILED);
    assert_eq!(copy.routing_key.as_deref(), Some("key-9"));
    assert_eq!(copy.publish_time, poison.publish_time);
    for (name, value) in [
        ("kept", "yes"),
        ("x-original-topic", TOPIC),
        ("x-original-subscription", SUB),
        ("x-original-topic-offset", &poison.msg_id.topic_offset.to_string()),
        ("x-original-producer-id", &poison.msg_id.producer_id.to_string()),
        ("x-original-broker-addr", broker.url()),
        ("x-poison-policy", "dead_letter"),
        ("x-delivery-attempt", "3"),
        ("x-failure-reason", "try 3"),
    ] {
        assert_eq!(copy.attributes.get(name).map(String::as_str), Some(value), "{name}");
    }
    dead.stays_empty().await;
}

#[tokio::test]
async fn with_no_redelivery_allowed_the_first_failure_is_the_last() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let policy = quick_policy(0, SubscriptionPoisonPolicy::Drop, None);
    Admin::connect(&broker).await.set_failure_policy(TOPIC, SUB, policy).await;
    let mut inbox = Who::new(TOPIC, SUB, SubType::Exclusive, "c").open(&client).await;
    send_all(&producer, ["poison", "behind"]).await;
    let poison = inbox.next().await;
    inbox.nack(&poison, None).await;
    assert_eq!(text(&inbox.take().await), "behind");
    inbox.stays_empty().await;
}
