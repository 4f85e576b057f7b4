//! Topics in partitions: the client routes, and each partition is a topic to the broker.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;
use danube_core::message::StreamMessage;
use std::collections::{BTreeMap, BTreeSet};

const TOPIC: &str = "/default/parts";

fn topics_of(messages: &[StreamMessage]) -> BTreeSet<String> {
    messages.iter().map(|message| message.msg_id.topic_name.clone()).collect()
}

fn partition_names(count: usize) -> BTreeSet<String> {
    (0..count).map(|i| format!("{TOPIC}-part-{i}")).collect()
}

async fn all_partitions_arrive(kind: SubType, reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", reliable, Some(3)).await;
    let mut inbox = Who::new(TOPIC, "s", kind, "c").open(&client).await;
    Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;
    let payloads = numbered("m", 30);
    send_all(&producer, &payloads).await;
    let messages = inbox.take_many(30).await;
    assert_eq!(sorted_texts(&messages), sorted(payloads));
    assert_eq!(topics_of(&messages), partition_names(3));
    for topic in partition_names(3) {
        let of_one: Vec<_> = messages.iter().filter(|m| m.msg_id.topic_name == topic).collect();
        assert_eq!(of_one.len(), 10, "the client deals them out in turn");
        assert!(of_one.is_sorted_by_key(|m| m.msg_id.topic_offset), "{topic} in order");
    }
}

#[tokio::test]
async fn partitioned_basic_exclusive() {
    all_partitions_arrive(SubType::Exclusive, false).await;
}

#[tokio::test]
async fn partitioned_basic_shared() {
    all_partitions_arrive(SubType::Shared, false).await;
}

#[tokio::test]
async fn partitioned_reliable_exclusive() {
    all_partitions_arrive(SubType::Exclusive, true).await;
}

#[tokio::test]
async fn partitioned_reliable_shared() {
    all_partitions_arrive(SubType::Shared, true).await;
}

#[tokio::test]
async fn partitioned_queue_shared_distribution_and_partition_coverage() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", false, Some(3)).await;
    let mut inboxes = Vec::new();
    for name in ["c0", "c1", "c2"] {
        // Connections of their own, as three processes have.
        inboxes
            .push(Who::new(TOPIC, "s", SubType::Shared, name).open(&broker.client().await).await);
    }
    Admin::connect(&broker).await.connected(TOPIC, "s", &["c0", "c1", "c2"]).await;
    let payloads = numbered("m", 60);
    send_all(&producer, &payloads).await;
    // 20 messages a partition among three: 6 or 7 each, so 18 to 21 over all of them.
    let mut all = Vec::new();
    for inbox in &mut inboxes {
        let messages = inbox.take_many(18).await;
        assert_eq!(topics_of(&messages), partition_names(3));
        all.extend(texts(&messages));
    }
    while all.len() < 60 {
        let before = all.len();
        for inbox in &mut inboxes {
            all.extend(texts(&inbox.pending()));
        }
        if all.len() == before {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(sorted(all), sorted(payloads));
}

#[tokio::test]
async fn partitioned_pubsub_fanout_exclusive_full_receipt() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", false, Some(3)).await;
    let mut admin = Admin::connect(&broker).await;
    let mut inboxes = Vec::new();
    for subscription in ["s0", "s1", "s2"] {
        inboxes.push(Who::new(TOPIC, subscription, SubType::Exclusive, "c").open(&client).await);
        admin.connected(TOPIC, subscription, &["c"]).await;
    }
    let payloads = numbered("m", 45);
    send_all(&producer, &payloads).await;
    for inbox in &mut inboxes {
        assert_eq!(sorted_texts(&inbox.take_many(45).await), sorted(payloads.clone()));
    }
}

#[tokio::test]
async fn partitions_made_by_an_administrator_are_found_by_clients() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    Admin::connect(&broker).await.create_partitioned(TOPIC, 12, true).await;
    let producer = producer(&client, TOPIC, "p", true, Some(12)).await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    send_all(&producer, numbered("m", 24)).await;
    assert_eq!(topics_of(&inbox.take_many(24).await), partition_names(12));
}

#[tokio::test]
async fn a_key_always_goes_to_the_same_partition() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = producer(&client, TOPIC, "p", true, Some(4)).await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    let keys = numbered("key", 8);
    for round in 0..4 {
        for key in &keys {
            send_keyed(&producer, format!("{key}/{round}").as_bytes(), key).await;
        }
    }
    let mut seen: BTreeMap<String, Vec<StreamMessage>> = BTreeMap::new();
    for message in inbox.take_many(32).await {
        seen.entry(message.routing_key.clone().expect("sent with a key"))
            .or_default()
            .push(message);
    }
    assert_eq!(seen.len(), 8);
    for (key, messages) in &seen {
        assert_eq!(topics_of(messages).len(), 1, "{key}");
        let in_order: Vec<String> = (0..4).map(|round| format!("{key}/{round}")).collect();
        assert_eq!(texts(messages), in_order);
    }
}

#[tokio::test]
async fn partitioning_validation() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let plain = reliable_producer(&client, "/default/plain", "p").await;
    let mut inbox = Who::new("/default/plain", "s", SubType::Exclusive, "c").open(&client).await;
    send(&plain, b"m").await;
    assert_eq!(inbox.take().await.msg_id.topic_name, "/default/plain");
    // A dead-letter topic of the same beginning is no partition of it.
    let other = reliable_producer(&client, "/default/plain-part-x", "p").await;
    send(&other, b"elsewhere").await;
    send(&plain, b"n").await;
    assert_eq!(text(&inbox.take().await), "n");
}
