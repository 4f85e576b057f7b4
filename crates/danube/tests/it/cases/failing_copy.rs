//! U07: a dead-letter copy that fails holds the message, says so, and is made once in the end.

use crate::harness::Node;
use crate::tools::{nack, next_offset, publish, receive, topics_json, topics_ok};
use crate::wire::{Control, Wire, offset_of};
use std::time::Duration;
use tokio::task::block_in_place;

const TOPIC: &str = "/default/jobs";
const TARGET: &str = "/default/failed";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_copy_holds_the_message_and_is_made_once() {
    let node = block_in_place(Node::start);
    block_in_place(|| {
        topics_ok(&node, &["create", TOPIC, "--intent", "task_queue"]);
        topics_ok(&node, &["create", TARGET, "--dispatch-strategy", "reliable"]);
        let policy = ["--max-redelivery-count", "0", "--dead-letter-topic", TARGET];
        topics_ok(&node, &[&["set-failure-policy", TOPIC, "-s", "s"][..], &policy].concat());
        // Broken: where the dead letters should go is a partitioned topic now.
        topics_ok(&node, &["delete", TARGET]);
        topics_ok(&node, &["create", TARGET, "--intent", "event_stream", "--partitions", "2"]);
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(TOPIC, "s", "c").await.expect("attached");
    let mut stream = wire.receive(consumer).await.expect("open");
    publish(&mut wire, TOPIC, ["x", "y"]).await;
    let x = receive(&mut stream).await;
    nack(&mut wire, &x, "s").await;
    let y = receive(&mut stream).await;
    assert_eq!(offset_of(&y), 1, "others pass by");
    wire.ack(&y, "s").await.expect("acknowledged");

    let mut control = Control::connect(&node.addresses().admin).await;
    let failing = |why: &str| why.contains("dead-letter copy of offset 0 failed at try 2");
    while !failing(&control.describe(TOPIC).await.subscriptions[0].why) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let held = &control.describe(TOPIC).await.subscriptions[0];
    assert_eq!((held.cursor, held.backlog), (0, 1), "nothing is lost, the cursor waits");

    // Repaired.
    block_in_place(|| topics_ok(&node, &["delete", TARGET]));
    while control.backlog(TOPIC, "s").await > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    block_in_place(|| {
        assert_eq!(next_offset(&node, TARGET), 1, "one copy");
        let copy = &topics_json(&node, &["peek", TARGET])[0];
        assert_eq!((&copy["payload"], &copy["key"]), (&"x".into(), &"k0".into()));
        let said = &copy["attributes"];
        for (name, value) in [
            ("x-original-topic", TOPIC),
            ("x-original-subscription", "s"),
            ("x-original-topic-offset", "0"),
            ("x-poison-policy", "dead_letter"),
            ("x-delivery-attempt", "1"),
            ("x-failure-reason", "broken"),
        ] {
            assert_eq!(said[name], value, "{name}");
        }
    });
}
