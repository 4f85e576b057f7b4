//! The window of a subscription is shown and set, at once and for good.

use super::*;
use crate::wire::offset_of;
use tokio::task::block_in_place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_is_set_shown_applied_and_kept() {
    let mut node = block_in_place(Node::start);
    let topic = "/default/jobs";
    block_in_place(|| topics_ok(&node, &["create", topic, "--intent", "event_stream"]));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(topic, "s", "c").await.expect("attached");
    let mut stream = wire.receive(consumer).await.expect("open");
    let window = |node: &Node| {
        topics_json(node, &["get-dispatch-config", topic, "-s", "s"])["max_unacked_messages"]
            .clone()
    };
    block_in_place(|| {
        let set = |n: &str| {
            topics(&node, &["set-dispatch-config", topic, "-s", "s", "--max-unacked-messages", n])
        };
        assert_eq!(window(&node), 64, "the broker's default for these clients");
        refused(&set("0"), 2, "1..=10000");
        refused(&set("10001"), 2, "1..=10000");
        let none = ["set-dispatch-config", topic, "-s", "t", "--max-unacked-messages", "5"];
        refused(&topics(&node, &none), 1, "no subscription `t`");
        assert_eq!(set("3").code, 0);
        assert_eq!(window(&node), 3);
        let text = topics_ok(&node, &["get-dispatch-config", topic, "-s", "s"]);
        assert_eq!(text, format!("Topic: {topic}\nSubscription: s\nMax Unacked Messages: 3\n"));
    });
    publish(&mut wire, topic, (0..10).map(|n| n.to_string())).await;
    let mut held = Vec::new();
    for offset in 0..3 {
        held.push(receive(&mut stream).await);
        assert_eq!(offset_of(&held[held.len() - 1]), offset);
    }
    block_in_place(|| {
        let described = topics_json(&node, &["describe", topic]);
        let subscription = &described["subscriptions"][0];
        assert_eq!(subscription["in_flight"], 3, "the window is full");
        assert_eq!(subscription["max_unacked_messages"], 3);
        topics_ok(&node, &["set-dispatch-config", topic, "-s", "s", "--max-unacked-messages", "5"]);
    });
    for offset in 3..5 {
        assert_eq!(offset_of(&receive(&mut stream).await), offset, "a wider window, at once");
    }
    block_in_place(|| {
        node.kill();
        node.restart();
        assert_eq!(window(&node), 5);
    });
}
