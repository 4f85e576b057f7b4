//! U03 and U04: every delivery counts, over restarts and silent deaths, and no message is delivered
//! once more than its policy says.

use super::puppet::Puppet;
use super::*;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;

const QUICK: &str = "--base-redelivery-delay-ms 20 --max-redelivery-delay-ms 40";

async fn dead_letters(broker: &Broker) -> Inbox {
    let who = Who::new(DEAD_LETTERS, "watch", SubType::Exclusive, "w");
    who.open(&broker.client().await).await
}

#[tokio::test]
async fn the_count_goes_on_after_the_broker_was_killed() {
    let mut broker = task_queue(QUICK).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let who = Who::new(TOPIC, SUB, SubType::Shared, "c");
    let mut inbox = who.open(&broker.client().await).await;
    send(&producer, b"poison").await;
    for attempt in 1..=3 {
        let message = inbox.next().await;
        inbox.nack(&message, Some(&format!("try {attempt}"))).await;
    }
    // Else it would come back too, and the two would take the stream from each other.
    inbox.close().await;
    broker.kill().await;
    broker.restart().await;
    let mut dead = dead_letters(&broker).await;
    let mut inbox = who.open(&broker.client().await).await;
    let mut attempts = 3;
    let copy = loop {
        tokio::select! {
            message = inbox.next() => {
                attempts += 1;
                inbox.nack(&message, Some(&format!("try {attempts}"))).await;
            }
            copy = dead.take() => break copy,
        }
    };
    let said = copy.attributes.get("x-delivery-attempt").map(String::as_str);
    assert_eq!(said, Some("6"), "five re-deliveries, as the intent says");
    // The fourth may have been on its way to the client that closed.
    assert!((5..=6).contains(&attempts), "{attempts} deliveries");
}

#[tokio::test]
async fn a_message_that_kills_its_worker_each_time_wears_out() {
    let broker = task_queue(&format!("{QUICK} --max-redelivery-count 2")).await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let mut dead = dead_letters(&broker).await;
    let mut puppet = Puppet::open(&broker, TOPIC, SUB, "shared", "w").await;
    send_all(&producer, ["held-poison", "fine"]).await;
    for life in 1..=3 {
        assert_eq!(puppet.next().await, "held-poison", "life {life}");
        puppet.kill().await;
        admin.connected(TOPIC, SUB, &[]).await;
        puppet = Puppet::open(&broker, TOPIC, SUB, "shared", "w").await;
    }
    // What lay behind it in the dead workers' buffers is nobody's fault, and is done by the last.
    let copy = dead.take().await;
    assert_eq!(text(&copy), "held-poison");
    let said = |name: &str| copy.attributes.get(name).map(String::as_str);
    assert_eq!(said("x-delivery-attempt"), Some("3"));
    assert_eq!(said("x-failure-reason"), Some("consumer gone"));
    admin.until(TOPIC, "the other is done", |d| d.subscriptions[0].backlog == 0).await;
    dead.stays_empty().await;
}

#[tokio::test]
async fn three_deliveries_one_copy_and_no_zombies() {
    let mut broker = task_queue(&format!("{QUICK} --max-redelivery-count 2")).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let mut dead = dead_letters(&broker).await;
    let who = Who::new(TOPIC, SUB, SubType::Exclusive, "c");
    let mut inbox = who.open(&broker.client().await).await;
    send_all(&producer, ["q1", "q2"]).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        let message = inbox.next().await;
        inbox.nack(&message, None).await;
        seen.push(text(&message));
    }
    assert_eq!(sorted(seen), ["q1", "q1", "q1", "q2", "q2", "q2"]);
    let copies = dead.take_many(2).await;
    assert_eq!(sorted_texts(&copies), ["q1", "q2"]);
    for copy in &copies {
        let said = copy.attributes.get("x-delivery-attempt").map(String::as_str);
        assert_eq!(said, Some("3"));
    }
    inbox.stays_empty().await;
    inbox.close().await;
    dead.close().await;
    broker.terminate().await;
    broker.restart().await;
    let mut inbox = who.open(&broker.client().await).await;
    let mut dead = dead_letters(&broker).await;
    inbox.stays_empty().await;
    dead.stays_empty().await;
}
