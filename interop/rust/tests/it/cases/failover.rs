//! U11: one active consumer, also after a seek and after everybody has died.

use super::*;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;

#[tokio::test]
async fn a_seek_and_a_restart_leave_one_active() {
    let mut broker = task_queue("--ack-timeout-ms 300000").await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let who = |name: &'static str| Who::new(TOPIC, SUB, SubType::FailOver, name);
    let mut a = who("a").open(&broker.client().await).await;
    admin.connected(TOPIC, SUB, &["a"]).await;
    let mut b = who("b").open(&broker.client().await).await;
    admin.connected(TOPIC, SUB, &["a", "b"]).await;
    let payloads = numbered("m", 6);
    send_all(&producer, &payloads).await;
    assert_eq!(texts(&a.take_many(4).await), payloads[..4]);
    let held = [a.next().await, a.next().await];
    assert_eq!(texts(&held), payloads[4..]);

    broker.ctl(&format!("topics seek {TOPIC} -s {SUB} --to earliest")).await;
    assert_eq!(texts(&a.take_many(6).await), payloads, "it stays the active one");
    b.stays_empty().await;
    a.ack(&held[0]).await;

    a.close().await;
    b.close().await;
    broker.kill().await;
    broker.restart().await;
    let mut admin = Admin::connect(&broker).await;
    let mut b = who("b").open(&broker.client().await).await;
    let mut a = who("a").open(&broker.client().await).await;
    admin.connected(TOPIC, SUB, &["a", "b"]).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p2").await;
    send_all(&producer, ["one", "two"]).await;
    let (first, active, other) = tokio::select! {
        message = a.take() => (message, &mut a, &mut b),
        message = b.take() => (message, &mut b, &mut a),
    };
    assert_eq!([text(&first), text(&active.take().await)], ["one", "two"]);
    other.stays_empty().await;
}
