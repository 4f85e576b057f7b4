//! The broker goes, by SIGKILL or by SIGTERM, and comes back on the same ports; clients stay.

use crate::broker::Broker;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::{Producer, SubType};
use std::collections::BTreeSet;

const TOPIC: &str = "/default/restart";

#[derive(Clone, Copy)]
enum End {
    Kill,
    Terminate,
}

async fn bounce(broker: &mut Broker, end: End) {
    match end {
        End::Kill => broker.kill().await,
        End::Terminate => broker.terminate().await,
    }
    broker.restart().await;
}

/// Sends although the connection may have to be made anew. A connection that broke reaches the
/// official producer as a code that it hands to the application, so the application tries again.
async fn send_again(producer: &Producer, payload: &str) {
    let sending = async { while producer.send(payload.into(), None).await.is_err() {} };
    within("an acknowledgement", sending).await;
}

/// Producer and consumer live through a restart; what was acknowledged does not come again, and
/// what was not does.
async fn clients_survive(kind: SubType, end: End) {
    let mut broker = Broker::start().await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", kind, "c").open(&broker.client().await).await;
    let payloads = numbered("m", 12);
    send_all(&producer, &payloads[..6]).await;
    let settled = sorted_texts(&inbox.take_many(3).await);
    bounce(&mut broker, end).await;
    for payload in &payloads[6..] {
        send_again(&producer, payload).await;
    }
    // Some of these came before the restart and waited in the client; their acks count anyway.
    let mut seen = BTreeSet::new();
    while seen.len() < 9 {
        let message = inbox.take().await;
        let text = text(&message);
        assert!(!settled.contains(&text), "{text} was acknowledged before the restart");
        seen.insert(text);
    }
    assert_eq!(sorted(payloads), sorted(seen.into_iter().chain(settled).collect()));
    let mut admin = Admin::connect(&broker).await;
    admin.until(TOPIC, "nothing is left", |d| d.subscriptions[0].backlog == 0).await;
}

#[tokio::test]
async fn exclusive_clients_survive_a_kill() {
    clients_survive(SubType::Exclusive, End::Kill).await;
}

#[tokio::test]
async fn exclusive_clients_survive_a_termination() {
    clients_survive(SubType::Exclusive, End::Terminate).await;
}

#[tokio::test]
async fn shared_clients_survive_a_kill() {
    clients_survive(SubType::Shared, End::Kill).await;
}

#[tokio::test]
async fn shared_clients_survive_a_termination() {
    clients_survive(SubType::Shared, End::Terminate).await;
}

#[tokio::test]
async fn failover_clients_survive_a_kill() {
    clients_survive(SubType::FailOver, End::Kill).await;
}

#[tokio::test]
async fn key_shared_clients_survive_a_kill() {
    clients_survive(SubType::KeyShared, End::Kill).await;
}

async fn non_reliable_clients_survive(end: End) {
    let mut broker = Broker::start().await;
    let producer = plain_producer(&broker.client().await, TOPIC, "p").await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Shared, "c").open(&broker.client().await).await;
    Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;
    send(&producer, b"before").await;
    let before = inbox.take().await;
    bounce(&mut broker, end).await;
    Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;
    send_again(&producer, "after").await;
    let after = inbox.take().await;
    assert_eq!((text(&before), text(&after)), ("before".into(), "after".into()));
    assert!(after.msg_id.topic_offset > before.msg_id.topic_offset, "offsets never repeat");
}

#[tokio::test]
async fn non_reliable_clients_survive_a_kill() {
    non_reliable_clients_survive(End::Kill).await;
}

#[tokio::test]
async fn non_reliable_clients_survive_a_termination() {
    non_reliable_clients_survive(End::Terminate).await;
}

#[tokio::test]
async fn partitioned_clients_survive_a_kill() {
    let mut broker = Broker::start().await;
    let producer = producer(&broker.client().await, TOPIC, "p", true, Some(3)).await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Shared, "c").open(&broker.client().await).await;
    send_all(&producer, numbered("before", 6)).await;
    assert_eq!(sorted_texts(&inbox.take_many(6).await), numbered("before", 6));
    bounce(&mut broker, End::Kill).await;
    for payload in numbered("after", 6) {
        send_again(&producer, &payload).await;
    }
    let mut seen = BTreeSet::new();
    while seen.len() < 6 {
        seen.insert(text(&inbox.take().await));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), numbered("after", 6));
}

#[tokio::test]
async fn a_subscription_that_never_acknowledged_anything_starts_where_it_was_made() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    send(&producer, b"too early").await;
    Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await.close().await;
    send_all(&producer, ["one", "two"]).await;
    bounce(&mut broker, End::Kill).await;
    let client = broker.client().await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    assert_eq!(texts(&inbox.take_many(2).await), ["one", "two"]);
    inbox.stays_empty().await;
}

#[tokio::test]
async fn acks_out_of_order_survive_a_kill() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    let mut inbox = who.open(&client).await;
    send_all(&producer, numbered("m", 6)).await;
    let mut messages = Vec::new();
    for _ in 0..6 {
        messages.push(inbox.next().await);
    }
    for index in [5, 1, 3] {
        inbox.ack(&messages[index]).await;
    }
    // Else this one would come back as well, and the two would take the stream from each other.
    inbox.close().await;
    bounce(&mut broker, End::Kill).await;
    let mut inbox = who.open(&broker.client().await).await;
    assert_eq!(texts(&inbox.take_many(3).await), ["m-0", "m-2", "m-4"]);
    inbox.stays_empty().await;
}
