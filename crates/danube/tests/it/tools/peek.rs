//! Peek shows messages and leaves no trace (case U22).

use super::*;
use crate::wire::{Control, offset_of};
use tokio::task::block_in_place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peek_leaves_no_trace() {
    let node = block_in_place(Node::start);
    let topic = "/default/events";
    block_in_place(|| topics_ok(&node, &["create", topic, "--intent", "event_stream"]));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(topic, "audit", "c").await.expect("attached");
    block_in_place(|| {
        let two = ["set-dispatch-config", topic, "-s", "audit", "--max-unacked-messages", "2"];
        topics_ok(&node, &two);
    });
    let mut stream = wire.receive(consumer).await.expect("open");
    let bodies = (0..10_u8).map(|n| if n == 4 { vec![0xff, 0x00, n] } else { vec![b'a' + n] });
    let mut bodies: Vec<Vec<u8>> = bodies.collect();
    let last = bodies.split_off(8);
    publish(&mut wire, topic, bodies).await;
    let time = block_in_place(between);
    publish(&mut wire, topic, last).await;
    let held = [receive(&mut stream).await, receive(&mut stream).await];
    Control::connect(&node.addresses().admin).await.connected(topic, "audit", "c").await;

    block_in_place(|| {
        let describe = || topics_ok(&node, &["describe", topic, "--output", "json"]);
        let subscriptions = || topics_ok(&node, &["subscriptions", topic]);
        let before = (describe(), subscriptions());
        for _ in 0..3 {
            let text = topics_ok(&node, &["peek", topic, "-n", "5"]);
            assert_eq!(text.lines().count(), 6, "a heading and five messages: {text}");
            let json = topics_json(&node, &["peek", topic, "-n", "5"]);
            let offsets: Vec<u64> = json
                .as_array()
                .expect("a list")
                .iter()
                .map(|message| message["offset"].as_u64().expect("a number"))
                .collect();
            assert_eq!(offsets, [0, 1, 2, 3, 4]);
        }
        let json = topics_json(&node, &["peek", topic, "--from", "offset:3", "-n", "2"]);
        let (text, bytes) = (&json[0], &json[1]);
        assert_eq!((&text["key"], &text["payload"]), (&"k3".into(), &"d".into()));
        assert_eq!((&text["encoding"], &text["size"]), (&"text".into(), &1.into()));
        assert_eq!((&bytes["payload"], &bytes["encoding"]), (&"/wAE".into(), &"base64".into()));
        assert_eq!(
            (&bytes["attributes"], &bytes["topic"]),
            (&Value::Object([].into_iter().collect::<serde_json::Map<_, _>>()), &topic.into())
        );
        let json = topics_json(&node, &["peek", topic, "--from", &time]);
        assert_eq!(json[0]["offset"], 8);
        let json = topics_json(&node, &["peek", topic, "-s", "audit"]);
        assert_eq!((json.as_array().map(Vec::len), &json[0]["offset"]), (Some(10), &0.into()));

        for end in ["latest", "offset:10", "offset:999", "time:2030-01-01T00:00:00+02:00"] {
            assert_eq!(topics_json(&node, &["peek", topic, "--from", end]), Value::Array(vec![]));
            let text = topics_ok(&node, &["peek", topic, "--from", end]);
            assert_eq!(text.lines().count(), 1, "only the heading: {text}");
        }
        for output in ["table", "json"] {
            let ask = |arguments: &[&str]| {
                topics(&node, &[&["peek"], arguments, &["--output", output]].concat())
            };
            refused(&ask(&["/default/missing"]), 1, "topic `/default/missing` not found");
            refused(&ask(&[topic, "-s", "nobody"]), 1, "no subscription `nobody`");
            refused(&ask(&[topic, "--from", "10"]), 2, "earliest, latest, offset:N");
            refused(&ask(&[topic, "--from", "time:2026-11-30T12:00:00"]), 2, "zone");
            refused(&ask(&[topic, "--from", "latest", "-s", "audit"]), 2, "cannot be used with");
            refused(&ask(&[topic, "-n", "0"]), 2, "1..=1000");
        }
        assert_eq!((describe(), subscriptions()), before, "byte for byte");
    });

    // The consumer is still attached, and still at its first attempt.
    wire.ack(&held[0], "audit").await.expect("acknowledged");
    assert_eq!(offset_of(&receive(&mut stream).await), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_partitions_are_peeked_at_by_their_base_name() {
    let node = block_in_place(Node::start);
    let base = "/default/parts";
    let create = ["create", base, "--intent", "event_stream", "--partitions", "3"];
    block_in_place(|| topics_ok(&node, &create));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    for partition in ["0", "1", "2"] {
        let bodies = ["a", "b"].map(|body| format!("{body}{partition}"));
        publish(&mut wire, &format!("{base}-part-{partition}"), bodies).await;
    }
    block_in_place(|| {
        let json = topics_json(&node, &["peek", base, "-n", "4"]);
        let payloads: Vec<&str> = json
            .as_array()
            .expect("a list")
            .iter()
            .map(|message| message["payload"].as_str().expect("text"))
            .collect();
        assert_eq!(payloads, ["a0", "a1", "a2", "b0"], "by publish time");
        topics_ok(&node, &["create", "/default/live", "--intent", "realtime"]);
        refused(&topics(&node, &["peek", "/default/live"]), 1, "NonReliable");
    });
}
