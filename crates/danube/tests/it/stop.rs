//! SIGTERM and Ctrl-C: drains and stops by itself, and loses nothing that was acknowledged.
//!
//! The broker ends with an error when it cannot drain within 5 seconds, so exit code 0 is the
//! assertion about time.

use crate::harness::Node;
use crate::load::Load;
use crate::wire::{Control, Wire};
use rustix::process::Signal;
use tokio::task::block_in_place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_sigterm_under_load() {
    let mut node = block_in_place(Node::start);
    let addresses = node.addresses().clone();
    let mut load = Load::set_up(&addresses).await;
    for signal in [Signal::TERM, Signal::INT, Signal::TERM] {
        let before = load.acknowledged();
        let in_the_middle = load.in_the_middle(300);
        let stopping = async {
            in_the_middle.await;
            node.signal(signal);
            let status = block_in_place(|| node.wait());
            assert!(status.success(), "after {signal:?}: {status}; stderr:\n{}", node.stderr());
        };
        load.run(&addresses, stopping).await;
        assert!(load.acknowledged() > before, "the broker served under load");
        block_in_place(|| node.restart());
    }
    load.check(&addresses).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_streams_and_idle_connections_do_not_hold_up_a_stop() {
    let mut node = block_in_place(Node::start);
    let topic = "/default/idle";
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let _control = Control::connect(&node.addresses().admin).await;
    wire.create_producer(topic, "p").await.expect("created");
    let id = wire.subscribe(topic, "s", "c").await.expect("subscribed");
    let mut stream = wire.receive(id).await.expect("opened");
    let status = block_in_place(|| node.terminate());
    assert!(status.success(), "{status}; stderr:\n{}", node.stderr());
    let end = stream.message().await.expect_err("the stream ends");
    assert_eq!(end.code(), tonic::Code::Unavailable, "{end}");
}

#[test]
fn an_empty_broker_stops_and_starts_again() {
    let mut node = Node::start();
    for _ in 0..2 {
        let status = node.terminate();
        assert!(status.success(), "{status}; stderr:\n{}", node.stderr());
        node.restart();
    }
}
