//! An ack that was promised to hold does so over a restart, also one that reaches the broker before
//! the message was delivered again (U15, U01).

use crate::harness::Node;
use crate::tools::{publish, receive, topics_ok};
use crate::wire::{Control, Wire, offset_of};
use tokio::task::block_in_place;

const TOPIC: &str = "/default/jobs";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_counts_before_the_message_is_delivered_again() {
    let mut node = block_in_place(Node::start);
    block_in_place(|| topics_ok(&node, &["create", TOPIC, "--intent", "task_queue"]));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(TOPIC, "s", "c").await.expect("attached");
    let mut stream = wire.receive(consumer).await.expect("open");
    publish(&mut wire, TOPIC, ["slow", "slower", "next"]).await;
    let slow = receive(&mut stream).await;
    let slower = receive(&mut stream).await;
    for (message, left) in [(&slow, 2), (&slower, 1)] {
        block_in_place(|| {
            node.kill();
            node.restart();
        });
        // The application is done with it before its client has a stream again.
        let mut wire = Wire::connect(&node.addresses().broker).await;
        wire.ack(message, "s").await.expect("acknowledged");
        let mut control = Control::connect(&node.addresses().admin).await;
        assert_eq!(control.backlog(TOPIC, "s").await, left);
    }
    block_in_place(|| {
        node.kill();
        node.restart();
    });
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(TOPIC, "s", "c").await.expect("attached");
    let mut stream = wire.receive(consumer).await.expect("open");
    assert_eq!(offset_of(&receive(&mut stream).await), 2, "what was acknowledged is over");
}
