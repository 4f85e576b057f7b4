//! What intents keep: of a work queue nothing that is finished, of an audit log everything, while
//! journal files come and go.

use crate::harness::{Node, danube};
use crate::wire::{Control, Wire, message, offset_of, within};
use serde_json::Value;
use std::time::Duration;
use tokio::task::block_in_place;

const WORK: &str = "/default/kept-work";
const AUDIT: &str = "/default/kept-audit";
/// Messages of each topic, in several journal files.
const COUNT: u64 = 300;
const SIZE: usize = 4 << 10;
const CONFIG: &str = "storage:\n  journal_file_bytes: 262144\n";

/// Offset of the first message that there is.
fn first(node: &Node, topic: &str) -> Option<u64> {
    let at = ["ctl", "--endpoint", node.addresses().admin.as_str(), "topics", "peek", topic];
    let run = danube(&[&at[..], &["--from", "earliest", "-n", "1", "--output", "json"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let found: Value = serde_json::from_str(&run.stdout).expect("a JSON document");
    found[0]["offset"].as_u64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_work_queue_keeps_nothing_finished_and_an_audit_log_everything() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("danube.yml");
    std::fs::write(&config, CONFIG).expect("written");
    let flags = ["--config-file", config.to_str().expect("a plain path")];
    let mut node = block_in_place(|| Node::start_with(&flags));
    let at = node.addresses().clone();
    let mut control = Control::connect(&at.admin).await;
    let mut wire = Wire::connect(&at.broker).await;
    for (topic, intent) in [(WORK, "task_queue"), (AUDIT, "audit_log")] {
        control.create_topic(topic, intent).await;
        let consumer = wire.subscribe(topic, "s", "c").await.expect("subscribed");
        let producer = wire.create_producer(topic, "p").await.expect("created");
        let mut stream = wire.receive(consumer).await.expect("opened");
        for number in 0..COUNT {
            let mut payload = number.to_le_bytes().to_vec();
            payload.resize(SIZE, b'x');
            wire.send(message(topic, producer, "p", payload)).await.expect("published");
            let next = within("a message", stream.message()).await;
            let message = next.expect("the stream goes on").expect("it has not ended");
            assert_eq!(offset_of(&message), number);
            wire.ack(&message, "s").await.expect("acknowledged");
        }
    }
    within("what is finished to go", async {
        while block_in_place(|| first(&node, WORK)).is_some_and(|offset| offset < COUNT / 2) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    block_in_place(|| {
        node.kill();
        node.restart();
    });
    assert_eq!(block_in_place(|| first(&node, AUDIT)), Some(0));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(AUDIT, "auditor", "c").await.expect("subscribed");
    let seek = ["topics", "seek", AUDIT, "-s", "auditor", "--to", "earliest"];
    let at = ["ctl", "--endpoint", node.addresses().admin.as_str()];
    let sought = block_in_place(|| danube(&[&at[..], &seek].concat()));
    assert_eq!(sought.code, 0, "{}", sought.stderr);
    let mut stream = wire.receive(consumer).await.expect("opened");
    for number in 0..COUNT {
        let next = within("a message", stream.message()).await;
        let message = next.expect("the stream goes on").expect("it has not ended");
        assert_eq!(offset_of(&message), number, "an audit log has everything");
        wire.ack(&message, "auditor").await.expect("acknowledged");
    }
    assert!(!node.stderr().contains("damage"), "{}", node.stderr());
}
