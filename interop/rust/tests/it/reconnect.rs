//! Consumers that go and come back while the broker stays.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::{Admin, quick_policy};
use danube_client::SubType;
use danube_core::admin_proto::SubscriptionPoisonPolicy;

const TOPIC: &str = "/default/reconnect";

#[tokio::test]
async fn reliable_exclusive_reconnection_resends_pending_message() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    let mut inbox = who.open(&client).await;
    send_all(&producer, ["pending", "later"]).await;
    let pending = inbox.next().await;
    inbox.close().await;
    let mut inbox = who.open(&broker.client().await).await;
    let messages = inbox.take_many(2).await;
    assert_eq!(messages[0].msg_id, pending.msg_id, "unacknowledged comes first");
    assert_eq!(texts(&messages), ["pending", "later"]);
}

#[tokio::test]
async fn reliable_shared_reconnection_failover_to_another_consumer() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let mut one = Who::new(TOPIC, "s", SubType::Shared, "one").open(&client).await;
    admin.connected(TOPIC, "s", &["one"]).await;
    send(&producer, b"pending").await;
    let pending = one.next().await;
    let mut two = Who::new(TOPIC, "s", SubType::Shared, "two").open(&client).await;
    admin.connected(TOPIC, "s", &["one", "two"]).await;
    two.stays_empty().await;
    one.close().await;
    assert_eq!(two.take().await.msg_id, pending.msg_id);
}

#[tokio::test]
async fn reliable_multiple_reconnections_same_message() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let policy = quick_policy(100, SubscriptionPoisonPolicy::Block, None);
    Admin::connect(&broker).await.set_failure_policy(TOPIC, "s", policy).await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    let mut inbox = who.open(&client).await;
    send_all(&producer, ["stubborn", "next"]).await;
    let first = inbox.next().await;
    for _ in 0..4 {
        inbox.close().await;
        inbox = who.open(&client).await;
        assert_eq!(inbox.next().await.msg_id, first.msg_id);
    }
    inbox.close().await;
    let mut inbox = who.open(&client).await;
    assert_eq!(texts(&inbox.take_many(2).await), ["stubborn", "next"]);
    inbox.stays_empty().await;
}

#[tokio::test]
async fn consumer_disconnect_during_notification() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    let mut inbox = who.open(&client).await;
    let payloads = numbered("m", 30);
    send_all(&producer, &payloads[..1]).await;
    assert_eq!(text(&inbox.next().await), payloads[0]);
    inbox.close().await;
    admin.connected(TOPIC, "s", &[]).await;
    send_all(&producer, &payloads[1..]).await;
    let mut inbox = who.open(&client).await;
    assert_eq!(texts(&inbox.take_many(30).await), payloads, "the pending one, then the rest");
}

#[tokio::test]
async fn a_subscription_without_consumers_keeps_its_place() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Shared, "c");
    let mut inbox = who.open(&client).await;
    send_all(&producer, ["one", "two"]).await;
    assert_eq!(texts(&inbox.take_many(2).await), ["one", "two"]);
    inbox.close().await;
    send_all(&producer, ["three", "four"]).await;
    // Another name is another consumer, but the subscription goes on where it was.
    let mut other = Who::new(TOPIC, "s", SubType::Shared, "d").open(&client).await;
    assert_eq!(texts(&other.take_many(2).await), ["three", "four"]);
}
