//! U02 and U09: what a consumer held when it died goes to others, in order, and long before any ack
//! timeout.

use super::puppet::Puppet;
use super::*;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;

/// How a consumer goes.
#[derive(Clone, Copy)]
enum End {
    Killed,
    Frozen,
}

async fn gives_back(end: End) {
    let broker = task_queue("--ack-timeout-ms 300000").await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let mut puppet = Puppet::open(&broker, TOPIC, SUB, "shared", "a").await;
    admin.connected(TOPIC, SUB, &["a"]).await;
    let payloads = ["held-0", "held-1", "held-2"];
    send_all(&producer, payloads).await;
    for payload in payloads {
        assert_eq!(puppet.next().await, payload);
    }
    let mut other = Who::new(TOPIC, SUB, SubType::Shared, "b").open(&broker.client().await).await;
    other.stays_empty().await;
    // Frozen, it is kept for as long as the test wants it so.
    let _frozen = match end {
        End::Killed => {
            puppet.kill().await;
            None
        }
        End::Frozen => {
            puppet.freeze().await;
            Some(puppet)
        }
    };
    assert_eq!(texts(&other.take_many(3).await), payloads);
    admin.until(TOPIC, "all are finished", |d| d.subscriptions[0].backlog == 0).await;
}

#[tokio::test]
async fn a_killed_consumer_gives_its_messages_back() {
    gives_back(End::Killed).await;
}

/// The pings notice it, within 30 seconds.
#[tokio::test]
async fn a_frozen_consumer_gives_its_messages_back() {
    gives_back(End::Frozen).await;
}

#[tokio::test]
async fn a_closing_consumer_gives_its_messages_back() {
    let broker = task_queue("--ack-timeout-ms 300000").await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let who = |name: &'static str| Who::new(TOPIC, SUB, SubType::Shared, name);
    let mut first = who("a").open(&broker.client().await).await;
    send_all(&producer, ["0", "1", "2"]).await;
    for payload in ["0", "1", "2"] {
        assert_eq!(text(&first.next().await), payload);
    }
    let mut other = who("b").open(&broker.client().await).await;
    first.close().await;
    assert_eq!(texts(&other.take_many(3).await), ["0", "1", "2"]);
}

#[tokio::test]
async fn a_killed_holder_of_a_key_is_followed_by_one_other_in_order() {
    let broker = task_queue("--ack-timeout-ms 300000").await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let mut puppet = Puppet::open(&broker, TOPIC, SUB, "key-shared", "a").await;
    let who = |name: &'static str| Who::new(TOPIC, SUB, SubType::KeyShared, name);
    let mut b = who("b").open(&broker.client().await).await;
    let mut c = who("c").open(&broker.client().await).await;
    admin.connected(TOPIC, SUB, &["a", "b", "c"]).await;
    // A key of the one that is to die, and one of another.
    for number in 0..40 {
        send_keyed(&producer, format!("k{number}").as_bytes(), &format!("k{number}")).await;
    }
    let key = puppet.next().await;
    let other = text(&b.take().await);
    let finishes = async {
        loop {
            tokio::select! { _ = b.take() => {}, _ = c.take() => {} }
        }
    };
    let finished = admin.until(TOPIC, "all are finished", |d| d.subscriptions[0].backlog == 0);
    tokio::select! { () = finished => {}, () = finishes => {} }

    send_keyed(&producer, b"held-2", &key).await;
    while puppet.next().await != "held-2" {}
    send_keyed(&producer, b"3", &key).await;
    send_keyed(&producer, b"untouched", &other).await;
    assert_eq!(text(&b.take().await), "untouched", "other keys do not wait");
    puppet.kill().await;
    send_keyed(&producer, b"4", &key).await;
    send_keyed(&producer, b"5", &key).await;
    let heir = tokio::select! { m = b.take() => (m, &mut b), m = c.take() => (m, &mut c) };
    let (first, heir) = heir;
    assert_eq!(text(&first), "held-2");
    assert_eq!(texts(&heir.take_many(3).await), ["3", "4", "5"]);
    admin.until(TOPIC, "all are finished", |d| d.subscriptions[0].backlog == 0).await;
}
