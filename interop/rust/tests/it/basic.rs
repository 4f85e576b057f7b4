//! Publish and receive, fan-out and work sharing, on both kinds of topics.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;
use std::collections::BTreeSet;

const TOPIC: &str = "/default/basic";

/// One message there and back.
async fn round_trip(kind: SubType, reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, None).await;
    let mut inbox = Who::new(TOPIC, "s", kind, "c").open(&client).await;
    Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;

    let headers = attributes([("colour", "blue"), ("größe", "42")]);
    let sent = producer.send(b"hello".to_vec(), Some(headers.clone()));
    within("an acknowledgement", sent).await.expect("sent");
    send_keyed(&producer, b"keyed", "user-7").await;

    let first = inbox.take().await;
    assert_eq!((text(&first), first.attributes), ("hello".into(), headers));
    assert_eq!((first.producer_name.as_str(), first.routing_key), ("p", None));
    assert_eq!(first.msg_id.topic_name, TOPIC);
    assert_eq!(first.msg_id.broker_addr, broker.url(), "the broker that delivered");
    assert_eq!(first.subscription_name.as_deref(), Some("s"), "set on delivery");
    let second = inbox.take().await;
    assert_eq!((text(&second), second.routing_key.as_deref()), ("keyed".into(), Some("user-7")));
    assert_eq!(second.msg_id.topic_offset, first.msg_id.topic_offset + 1);
}

#[tokio::test]
async fn basic_exclusive() {
    round_trip(SubType::Exclusive, false).await;
}

#[tokio::test]
async fn basic_shared() {
    round_trip(SubType::Shared, false).await;
}

#[tokio::test]
async fn basic_failover() {
    round_trip(SubType::FailOver, false).await;
}

#[tokio::test]
async fn basic_key_shared() {
    round_trip(SubType::KeyShared, false).await;
}

#[tokio::test]
async fn reliable_exclusive() {
    round_trip(SubType::Exclusive, true).await;
}

#[tokio::test]
async fn reliable_shared() {
    round_trip(SubType::Shared, true).await;
}

#[tokio::test]
async fn reliable_failover() {
    round_trip(SubType::FailOver, true).await;
}

#[tokio::test]
async fn reliable_key_shared() {
    round_trip(SubType::KeyShared, true).await;
}

/// Three Exclusive subscriptions, each of which gets all 24 messages in order.
async fn fan_out(reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, None).await;
    let mut admin = Admin::connect(&broker).await;
    let subscriptions = numbered("sub", 3);
    let mut inboxes = Vec::new();
    for subscription in &subscriptions {
        let inbox = Who::new(TOPIC, subscription, SubType::Exclusive, "c").open(&client).await;
        admin.connected(TOPIC, subscription, &["c"]).await;
        inboxes.push(inbox);
    }
    let payloads = numbered("m", 24);
    send_all(&producer, &payloads).await;
    for inbox in &mut inboxes {
        assert_eq!(texts(&inbox.take_many(24).await), payloads);
    }
}

#[tokio::test]
async fn pubsub_fanout_exclusive_unique_subscriptions() {
    fan_out(false).await;
}

#[tokio::test]
async fn pubsub_fanout_exclusive_unique_subscriptions_reliable() {
    fan_out(true).await;
}

/// Three ready consumers of one Shared subscription take strict turns.
async fn round_robin(reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, None).await;
    let mut inboxes = Vec::new();
    for name in ["c0", "c1", "c2"] {
        inboxes.push(Who::new(TOPIC, "workers", SubType::Shared, name).open(&client).await);
    }
    Admin::connect(&broker).await.connected(TOPIC, "workers", &["c0", "c1", "c2"]).await;
    let payloads = numbered("m", 36);
    send_all(&producer, &payloads).await;
    let mut all = Vec::new();
    for inbox in &mut inboxes {
        all.extend(texts(&inbox.take_many(12).await));
    }
    assert_eq!(sorted(all), sorted(payloads), "12 each, and each message once");
}

#[tokio::test]
async fn queue_shared_round_robin_distribution() {
    round_robin(false).await;
}

#[tokio::test]
async fn queue_shared_round_robin_distribution_reliable() {
    round_robin(true).await;
}

#[tokio::test]
async fn churn_shared_queue_join_leave() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = plain_producer(&client, TOPIC, "p").await;
    let payloads = numbered("m", 45);

    let mut a = Who::new(TOPIC, "workers", SubType::Shared, "a").open(&client).await;
    admin.connected(TOPIC, "workers", &["a"]).await;
    send_all(&producer, &payloads[..15]).await;
    let mut all = texts(&a.take_many(15).await);

    let mut b = Who::new(TOPIC, "workers", SubType::Shared, "b").open(&client).await;
    admin.connected(TOPIC, "workers", &["a", "b"]).await;
    send_all(&producer, &payloads[15..31]).await;
    all.extend(texts(&a.take_many(8).await));
    all.extend(texts(&b.take_many(8).await));

    a.close().await;
    admin.connected(TOPIC, "workers", &["b"]).await;
    send_all(&producer, &payloads[31..]).await;
    all.extend(texts(&b.take_many(14).await));
    assert_eq!(sorted(all), sorted(payloads));
}

#[tokio::test]
async fn churn_exclusive_fanout_join_leave() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = plain_producer(&client, TOPIC, "p").await;
    let payloads = numbered("m", 30);

    let mut early = Who::new(TOPIC, "early", SubType::Exclusive, "c").open(&client).await;
    admin.connected(TOPIC, "early", &["c"]).await;
    send_all(&producer, &payloads[..15]).await;
    let mut late = Who::new(TOPIC, "late", SubType::Exclusive, "c").open(&client).await;
    admin.connected(TOPIC, "late", &["c"]).await;
    send_all(&producer, &payloads[15..]).await;

    assert_eq!(texts(&early.take_many(30).await), payloads);
    assert_eq!(texts(&late.take_many(15).await), payloads[15..], "only from its join");
}

#[tokio::test]
async fn producer_reconnection_reuse() {
    let broker = Broker::start().await;
    let first = reliable_producer(&broker.client().await, TOPIC, "same").await;
    let client = broker.client().await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    send(&first, b"one").await;
    let second = reliable_producer(&client, TOPIC, "same").await;
    send(&second, b"two").await;
    send(&first, b"three").await;
    assert_eq!(texts(&inbox.take_many(3).await), ["one", "two", "three"]);
}

#[tokio::test]
async fn several_producers_of_one_topic_have_ids_of_their_own() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut producers = Vec::new();
    for name in numbered("p", 4) {
        producers.push(reliable_producer(&broker.client().await, TOPIC, &name).await);
    }
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    for producer in &producers {
        send_all(producer, numbered("m", 5)).await;
    }
    let messages = inbox.take_many(20).await;
    let ids: BTreeSet<u64> = messages.iter().map(|m| m.msg_id.producer_id).collect();
    assert_eq!(ids.len(), 4);
    let offsets: Vec<u64> = messages.iter().map(|m| m.msg_id.topic_offset).collect();
    assert!(offsets.windows(2).all(|pair| pair[1] == pair[0] + 1), "{offsets:?}");
}

#[tokio::test]
async fn a_consumer_of_an_unknown_topic_is_told_so() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut consumer = Who::new("/default/nowhere", "s", SubType::Shared, "c").build(&client);
    let refusal = within("the answer", consumer.subscribe()).await.expect_err("no such topic");
    assert!(refusal.to_string().contains("/default/nowhere"), "{refusal}");
}
