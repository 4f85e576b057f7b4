//! Failover and Exclusive: of several consumers, one is served.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;
use tonic::Code;

const TOPIC: &str = "/default/active";

#[tokio::test]
async fn failover_hands_over_in_order_of_attach_and_does_not_pre_empt() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = |name: &'static str| Who::new(TOPIC, "s", SubType::FailOver, name);
    let mut a = who("a").open(&client).await;
    admin.connected(TOPIC, "s", &["a"]).await;
    let mut b = who("b").open(&client).await;
    admin.connected(TOPIC, "s", &["a", "b"]).await;
    let mut c = who("c").open(&client).await;
    admin.connected(TOPIC, "s", &["a", "b", "c"]).await;

    let payloads = numbered("m", 8);
    send_all(&producer, &payloads[..3]).await;
    assert_eq!(texts(&a.take_many(2).await), payloads[..2]);
    let unacknowledged = a.next().await;
    b.stays_empty().await;

    a.close().await;
    let again = b.take().await;
    assert_eq!(again.msg_id, unacknowledged.msg_id, "what it held goes to the next one");
    send_all(&producer, &payloads[3..5]).await;
    assert_eq!(texts(&b.take_many(2).await), payloads[3..5]);

    let mut a = who("a").open(&client).await;
    admin.connected(TOPIC, "s", &["a", "b", "c"]).await;
    send_all(&producer, &payloads[5..6]).await;
    assert_eq!(text(&b.take().await), payloads[5], "its return does not pre-empt");

    b.close().await;
    admin.connected(TOPIC, "s", &["a", "c"]).await;
    send_all(&producer, &payloads[6..]).await;
    assert_eq!(texts(&c.take_many(2).await), payloads[6..], "it queues at the end");
    a.stays_empty().await;
}

#[tokio::test]
async fn failover_non_reliable() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = plain_producer(&client, TOPIC, "p").await;
    let mut a = Who::new(TOPIC, "s", SubType::FailOver, "a").open(&client).await;
    admin.connected(TOPIC, "s", &["a"]).await;
    let mut b = Who::new(TOPIC, "s", SubType::FailOver, "b").open(&client).await;
    admin.connected(TOPIC, "s", &["a", "b"]).await;
    send_all(&producer, ["one", "two"]).await;
    assert_eq!(texts(&a.take_many(2).await), ["one", "two"]);
    a.close().await;
    admin.connected(TOPIC, "s", &["b"]).await;
    send(&producer, b"three").await;
    assert_eq!(text(&b.take().await), "three");
}

async fn exclusive_is_refused_then_taken_over(reliable: bool) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let mut admin = Admin::connect(&broker).await;
    let producer = producer(&client, TOPIC, "p", reliable, None).await;
    let first = Who::new(TOPIC, "s", SubType::Exclusive, "first").open(&client).await;
    admin.connected(TOPIC, "s", &["first"]).await;

    let second = Who::new(TOPIC, "s", SubType::Exclusive, "second");
    let refusal = within("the answer", second.build(&client).subscribe()).await;
    let refusal = refusal.expect_err("while the first one lives");
    let status = refusal.extract_status().expect("the broker's answer");
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(status.message().contains("first"), "says who holds it: {status}");

    first.close().await;
    admin.connected(TOPIC, "s", &[]).await;
    let mut inbox = second.open(&client).await;
    admin.connected(TOPIC, "s", &["second"]).await;
    send(&producer, b"mine").await;
    assert_eq!(text(&inbox.take().await), "mine");
}

#[tokio::test]
async fn exclusive_is_refused_to_another_name_while_its_holder_lives() {
    exclusive_is_refused_then_taken_over(true).await;
}

#[tokio::test]
async fn exclusive_is_refused_to_another_name_while_its_holder_lives_non_reliable() {
    exclusive_is_refused_then_taken_over(false).await;
}
