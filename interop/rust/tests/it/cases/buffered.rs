//! U06: a slow application, and a client that reads ahead of it: nothing fails by waiting.

use super::*;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;
use std::time::Duration;

#[tokio::test]
async fn what_waits_in_the_clients_buffer_burns_no_attempt() {
    let broker = task_queue("--ack-timeout-ms 1500 --max-redelivery-count 2").await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let who = Who::new(TOPIC, SUB, SubType::Exclusive, "c");
    let mut inbox = who.open(&broker.client().await).await;
    let payloads = numbered("m", 20);
    send_all(&producer, &payloads).await;
    let mut seen = Vec::new();
    for _ in &payloads {
        let message = inbox.next().await;
        // The work itself; all of it takes longer than three times the timeout.
        tokio::time::sleep(Duration::from_millis(250)).await;
        inbox.ack(&message).await;
        seen.push(text(&message));
    }
    assert_eq!(seen, payloads, "each once");
    admin.until(TOPIC, "all are finished", |d| d.subscriptions[0].backlog == 0).await;
    inbox.stays_empty().await;
    let dead = broker.ctl(&format!("topics peek {DEAD_LETTERS} --output json")).await;
    assert_eq!(dead, "[]\n");
}
