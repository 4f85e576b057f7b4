//! SIGKILL while messages fail for good: however the broker dies between the copy and the cursor,
//! there is one copy of each, and the subscription goes on.

use crate::crash::Random;
use crate::harness::Node;
use crate::tools::{receive, topics_json, topics_ok};
use crate::wire::{Control, Wire, message};
use danube_wire::proto::danube::{NackRequest, StreamMessage};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::block_in_place;

const TOPIC: &str = "/default/jobs";
const DEAD_LETTERS: &str = "/default/jobs-dlq";
/// Kills on one data directory.
const ROUNDS: u32 = 25;
/// Messages that fail for good in each life.
const FAILURES: u64 = 12;
/// Longest time from the first nack to the kill. The copies take a part of it.
const LIFE_MAX_US: u64 = 3_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_has_one_copy_whenever_the_broker_dies() {
    let (mut random, seed) = Random::seeded();
    println!("moments from DANUBE_TEST_SEED={seed}");
    let mut node = block_in_place(Node::start);
    let (broker, admin) = (node.addresses().broker.clone(), node.addresses().admin.clone());
    block_in_place(|| {
        topics_ok(&node, &["create", TOPIC, "--intent", "event_stream"]);
        let once = ["-s", "s", "--max-redelivery-count", "0"];
        topics_ok(&node, &[&["set-failure-policy", TOPIC][..], &once].concat());
    });
    let mut wire = Wire::connect(&broker).await;
    wire.subscribe(TOPIC, "s", "c").await.expect("attached");
    for round in 0..ROUNDS {
        let mut wire = Wire::connect(&broker).await;
        let producer = wire.create_producer(TOPIC, "p").await.expect("a producer");
        for number in 0..FAILURES {
            let payload = format!("{round}-{number}").into_bytes();
            wire.send(message(TOPIC, producer, "p", payload)).await.expect("published");
        }
        let consumer = wire.subscribe(TOPIC, "s", "c").await.expect("attached");
        let mut stream = wire.receive(consumer).await.expect("open");
        let mut failing = tokio::task::JoinSet::new();
        for _ in 0..FAILURES {
            let request = refusal(&receive(&mut stream).await);
            let mut consumers = wire.consumers.clone();
            // Whether it is answered depends on when the broker dies.
            failing.spawn(async move { consumers.nack(request).await.is_ok() });
        }
        tokio::time::sleep(Duration::from_micros(random.below(LIFE_MAX_US))).await;
        block_in_place(|| node.kill());
        let answered = failing.join_all().await.into_iter().filter(|ok| *ok).count();
        block_in_place(|| node.restart());
        println!("round {round}: {answered} of {FAILURES} nacks were answered");

        // What had not failed yet fails now.
        let mut wire = Wire::connect(&broker).await;
        let mut control = Control::connect(&admin).await;
        let consumer = wire.subscribe(TOPIC, "s", "c").await.expect("attached");
        let mut stream = wire.receive(consumer).await.expect("open");
        while control.backlog(TOPIC, "s").await > 0 {
            let pause = Duration::from_millis(20);
            if let Ok(received) = tokio::time::timeout(pause, stream.message()).await {
                let message = received.expect("the stream is open").expect("a message");
                wire.consumers.nack(refusal(&message)).await.expect("nacked");
            }
        }
    }
    let mut copies = BTreeMap::new();
    let peeked = block_in_place(|| topics_json(&node, &["peek", DEAD_LETTERS, "-n", "1000"]));
    for letter in peeked.as_array().expect("a list") {
        let origin = &letter["attributes"]["x-original-topic-offset"];
        let origin: u64 = origin.as_str().and_then(|o| o.parse().ok()).expect("an offset");
        *copies.entry(origin).or_insert(0) += 1;
    }
    let expected = (0..u64::from(ROUNDS) * FAILURES).map(|offset| (offset, 1));
    assert_eq!(copies, expected.collect::<BTreeMap<_, _>>());
}

fn refusal(message: &StreamMessage) -> NackRequest {
    NackRequest {
        request_id: message.request_id,
        msg_id: message.msg_id.clone(),
        subscription_name: "s".into(),
        delay_ms: None,
        reason: Some("broken".into()),
    }
}
