//! U15: everything is acknowledged but one; that one comes again, and nothing else.

use super::*;
use crate::clients::*;
use danube_client::SubType;

const COUNT: usize = 1_000;
const HOLE: usize = 7;

async fn only_the_hole_comes_again(kill: bool) {
    let mut broker = task_queue("--ack-timeout-ms 300000").await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let who = Who::new(TOPIC, SUB, SubType::Shared, "c");
    let mut inbox = who.open(&broker.client().await).await;
    let publishing = async {
        let sends = numbered("m", COUNT);
        send_all(&producer, &sends).await;
    };
    let consuming = async {
        for number in 0..COUNT {
            let message = inbox.next().await;
            assert_eq!(text(&message), format!("m-{number}"));
            if number != HOLE {
                inbox.ack(&message).await;
            }
        }
    };
    tokio::join!(publishing, consuming);
    inbox.close().await;
    if kill {
        broker.kill().await;
    } else {
        broker.terminate().await;
    }
    broker.restart().await;
    let mut inbox = who.open(&broker.client().await).await;
    assert_eq!(text(&inbox.take().await), format!("m-{HOLE}"));
    inbox.stays_empty().await;
}

#[tokio::test]
async fn after_a_proper_stop() {
    only_the_hole_comes_again(false).await;
}

#[tokio::test]
async fn after_a_kill_right_after_the_last_ack() {
    only_the_hole_comes_again(true).await;
}
