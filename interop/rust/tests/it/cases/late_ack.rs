//! U01: an ack that comes after the message has gone to somebody else.

use super::*;
use crate::clients::*;
use crate::wire::Admin;
use danube_client::SubType;

#[tokio::test]
async fn a_late_ack_settles_the_message_and_the_second_word_on_it_is_harmless() {
    let broker = task_queue("--ack-timeout-ms 1000 --base-redelivery-delay-ms 100").await;
    let mut admin = Admin::connect(&broker).await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let who = |name: &'static str| Who::new(TOPIC, SUB, SubType::Shared, name);
    let mut a = who("a").open(&broker.client().await).await;
    admin.connected(TOPIC, SUB, &["a"]).await;
    for second_word in ["ack", "nack"] {
        send(&producer, second_word.as_bytes()).await;
        let first = a.next().await;
        // Others are there by the time its time is over, and in turn.
        let mut b = who("b").open(&broker.client().await).await;
        admin.connected(TOPIC, SUB, &["a", "b"]).await;
        let second = tokio::select! { m = b.next() => m, m = a.next() => m };
        assert_eq!(second.msg_id, first.msg_id, "the same message, for the second time");
        a.ack(&first).await;
        admin.until(TOPIC, "it is finished", |d| d.subscriptions[0].backlog == 0).await;
        match second_word {
            "ack" => b.ack(&second).await,
            _ => b.nack(&second, Some("too late")).await,
        }
        a.stays_empty().await;
        b.stays_empty().await;
        b.close().await;
        admin.connected(TOPIC, SUB, &["a"]).await;
    }
    let dead = broker.ctl(&format!("topics peek {DEAD_LETTERS} --output json")).await;
    assert_eq!(dead, "[]\n");
}
