//! Reliable topics: nothing is lost, whatever comes back is the same message.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::{Admin, quick_policy};
use danube_client::SubType;
use danube_core::admin_proto::{SubscriptionFailurePolicy, SubscriptionPoisonPolicy};

const TOPIC: &str = "/default/reliable";

/// About 100 KB that look like nothing else.
fn blob(number: u8) -> Vec<u8> {
    (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 ^ number).collect()
}

async fn blobs(kind: SubType) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", kind, "c").open(&client).await;
    for number in 0..20 {
        send(&producer, &blob(number)).await;
    }
    for (number, message) in (0..20).zip(inbox.take_many(20).await) {
        assert!(message.payload == blob(number), "blob {number} is intact and in order");
    }
    let mut admin = Admin::connect(&broker).await;
    admin.until(TOPIC, "all are acknowledged", |d| d.subscriptions[0].backlog == 0).await;
}

#[tokio::test]
async fn reliable_basic_exclusive() {
    blobs(SubType::Exclusive).await;
}

#[tokio::test]
async fn reliable_basic_shared() {
    blobs(SubType::Shared).await;
}

async fn nack_redelivers(kind: SubType) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let policy = quick_policy(5, SubscriptionPoisonPolicy::Block, None);
    Admin::connect(&broker).await.set_failure_policy(TOPIC, "s", policy).await;
    let mut inbox = Who::new(TOPIC, "s", kind, "c").open(&client).await;
    send(&producer, b"again").await;
    let first = inbox.next().await;
    inbox.nack(&first, None).await;
    let second = inbox.next().await;
    assert_eq!(second.msg_id, first.msg_id);
    assert_eq!(second.payload, first.payload);
    inbox.ack(&second).await;
    send(&producer, b"next").await;
    assert_eq!(text(&inbox.take().await), "next", "acknowledged is acknowledged");
}

#[tokio::test]
async fn reliable_exclusive_nack_redelivers_same_message() {
    nack_redelivers(SubType::Exclusive).await;
}

#[tokio::test]
async fn reliable_shared_nack_redelivers_same_message() {
    nack_redelivers(SubType::Shared).await;
}

#[tokio::test]
async fn reliable_failover_nack_redelivers_same_message() {
    nack_redelivers(SubType::FailOver).await;
}

#[tokio::test]
async fn reliable_exclusive_ack_timeout_redelivers_same_message() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let policy = SubscriptionFailurePolicy {
        ack_timeout_ms: 200,
        ..quick_policy(100, SubscriptionPoisonPolicy::Block, None)
    };
    Admin::connect(&broker).await.set_failure_policy(TOPIC, "s", policy).await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    send(&producer, b"slow").await;
    let first = inbox.next().await;
    let second = inbox.next().await;
    assert_eq!(second.msg_id, first.msg_id);
    inbox.ack(&first).await;
    let mut admin = Admin::connect(&broker).await;
    admin.until(TOPIC, "it is acknowledged", |d| d.subscriptions[0].backlog == 0).await;
}

#[tokio::test]
async fn a_nack_without_effect_is_answered() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    send_all(&producer, ["one", "two"]).await;
    let one = inbox.take().await;
    // Settled long since: neither an ack nor a nack does anything, and both are answered.
    inbox.ack(&one).await;
    inbox.nack(&one, Some("too late")).await;
    assert_eq!(text(&inbox.take().await), "two");
    inbox.stays_empty().await;
}

#[tokio::test]
async fn acks_and_nacks_of_a_non_reliable_topic_are_answered() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = plain_producer(&client, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Shared, "c").open(&client).await;
    Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;
    send(&producer, b"fleeting").await;
    let message = inbox.next().await;
    inbox.nack(&message, None).await;
    inbox.ack(&message).await;
    inbox.stays_empty().await;
}

#[tokio::test]
async fn notification_coalescing_recovery() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    let payloads = numbered("m", 100);
    send_all(&producer, &payloads).await;
    assert_eq!(texts(&inbox.take_many(100).await), payloads);
}

#[tokio::test]
async fn subscription_creation_race_condition() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    let mut consumer = who.build(&client);
    within("a subscription", consumer.subscribe()).await.expect("subscribed");
    // Nobody receives yet, but the subscription stands since Subscribe was answered.
    let payloads = numbered("m", 20);
    send_all(&producer, &payloads).await;
    let mut inbox = who.open(&client).await;
    assert_eq!(texts(&inbox.take_many(20).await), payloads);
}

#[tokio::test]
async fn poll_next_returns_none_recovery() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    for round in 0..3 {
        let payloads = numbered(&format!("round-{round}"), 10);
        send_all(&producer, &payloads).await;
        assert_eq!(texts(&inbox.take_many(10).await), payloads);
        inbox.stays_empty().await;
    }
}

#[tokio::test]
async fn a_consumer_that_is_far_behind_gets_everything() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    who.open(&client).await.close().await;
    // Far more than the client's queue, the window and a burst of the log hold together.
    let payloads = numbered("m", 1_500);
    send_all(&producer, &payloads).await;
    let mut inbox = who.open(&client).await;
    assert_eq!(texts(&inbox.take_many(1_500).await), payloads);
}

#[tokio::test]
async fn concurrent_publishers_lose_nothing_and_keep_their_order() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut publishing = tokio::task::JoinSet::new();
    let mut producers = Vec::new();
    for number in 0..4 {
        let name = format!("p{number}");
        producers
            .push((name.clone(), reliable_producer(&broker.client().await, TOPIC, &name).await));
    }
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    for (name, producer) in producers {
        publishing.spawn(async move { send_all(&producer, numbered(&name, 50)).await });
    }
    let messages = inbox.take_many(200).await;
    within("the publishers", publishing.join_all()).await;
    for name in ["p0", "p1", "p2", "p3"] {
        let of_one = messages.iter().filter(|message| message.producer_name == name);
        assert_eq!(texts(of_one), numbered(name, 50));
    }
}

#[tokio::test]
async fn a_slow_subscription_does_not_hold_up_another() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let slow_client = broker.client().await;
    let mut slow = Who::new(TOPIC, "slow", SubType::Exclusive, "c").open(&slow_client).await;
    let mut fast = Who::new(TOPIC, "fast", SubType::Exclusive, "c").open(&client).await;
    let payloads = numbered("m", 400);
    send_all(&producer, &payloads).await;
    assert_eq!(texts(&fast.take_many(400).await), payloads);
    assert_eq!(texts(&slow.take_many(400).await), payloads);
}
