//! Seek puts a cursor while messages are in flight (case U12).

use super::*;
use crate::wire::{Control, offset_of};
use tokio::task::block_in_place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seek_voids_what_is_in_flight() {
    let node = block_in_place(Node::start);
    let (topic, dead) = ("/default/jobs", "/default/jobs-dlq");
    block_in_place(|| topics_ok(&node, &["create", topic, "--intent", "event_stream"]));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let consumer = wire.subscribe(topic, "s", "c").await.expect("attached");
    block_in_place(|| {
        topics_ok(&node, &["set-failure-policy", topic, "-s", "s", "--ack-timeout-ms", "1000"]);
        let ten = ["set-dispatch-config", topic, "-s", "s", "--max-unacked-messages", "10"];
        topics_ok(&node, &ten);
    });
    publish(&mut wire, topic, (0..100).map(|n| n.to_string())).await;
    let mut stream = wire.receive(consumer).await.expect("open");
    for offset in 0..10 {
        assert_eq!(offset_of(&receive(&mut stream).await), offset);
    }

    block_in_place(|| {
        let seek = |to: &str, more: &[&str]| {
            topics(&node, &[&["seek", topic, "-s", "s", "--to", to], more].concat())
        };
        let dry = seek("offset:80", &["--dry-run", "--output", "json"]);
        let dry: Value = serde_json::from_str(&dry.stdout).expect("JSON");
        assert_eq!(dry["partitions"][0]["old_offset"], 0);
        assert_eq!(dry["partitions"][0]["new_offset"], 80);
        let described = topics_json(&node, &["describe", topic]);
        assert_eq!(described["subscriptions"][0]["cursor"], 0, "a dry run moves nothing");

        refused(&seek("offset:101", &[]), 1, "is not there yet");
        refused(&seek("offset:x", &[]), 2, "earliest, latest, offset:N");
        refused(&topics(&node, &["seek", topic, "-s", "t", "--to", "latest"]), 1, "`t`");
        refused(&topics(&node, &["seek", "/default/no", "-s", "s", "--to", "latest"]), 1, "/no");

        let moved = seek("offset:80", &[]);
        assert_eq!((moved.code, moved.stderr.as_str()), (0, ""));
        let row = moved.stdout.lines().nth(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
        assert_eq!(row, Some(vec!["s", topic, "0", "80"]));
    });

    // The window is free again, and the next ten fill it.
    let mut held = Vec::new();
    for offset in 80..90 {
        let message = receive(&mut stream).await;
        assert_eq!(offset_of(&message), offset, "nothing of before the seek comes");
        held.push(message);
    }
    // By the time these come again, the timers of 0 to 9 would have ended long ago.
    let again = offset_of(&receive(&mut stream).await);
    assert!((80..90).contains(&again), "{again}");
    for message in &held {
        wire.ack(message, "s").await.expect("acknowledged");
    }
    let mut control = Control::connect(&node.addresses().admin).await;
    while control.backlog(topic, "s").await > 0 {
        let message = receive(&mut stream).await;
        assert!(offset_of(&message) >= 80, "{}", offset_of(&message));
        wire.ack(&message, "s").await.expect("acknowledged");
    }
    block_in_place(|| assert_eq!(next_offset(&node, dead), 0, "no dead letters"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_position_means_the_same_on_all_partitions() {
    let node = block_in_place(Node::start);
    let base = "/default/parts";
    let create = ["create", base, "--intent", "event_stream", "--partitions", "2"];
    block_in_place(|| topics_ok(&node, &create));
    let mut wire = Wire::connect(&node.addresses().broker).await;
    for (partition, count) in [("0", 20), ("1", 5)] {
        let name = format!("{base}-part-{partition}");
        wire.subscribe(&name, "s", "c").await.expect("attached");
        publish(&mut wire, &name, (0..count.min(3)).map(|n| n.to_string())).await;
    }
    let early = block_in_place(between);
    publish(&mut wire, &format!("{base}-part-0"), (3..10).map(|n| n.to_string())).await;
    publish(&mut wire, &format!("{base}-part-1"), (3..5).map(|n| n.to_string())).await;
    let late = block_in_place(between);
    publish(&mut wire, &format!("{base}-part-0"), (10..20).map(|n| n.to_string())).await;
    block_in_place(|| {
        let seek = |arguments: &[&str]| {
            let json =
                topics_json(&node, &[&["seek", base, "-s", "s", "--to"], arguments].concat());
            let offsets = json["partitions"].as_array().expect("a list").clone();
            offsets
                .iter()
                .map(|partition| {
                    let offset = |name: &str| partition[name].as_u64().expect("a number");
                    (offset("old_offset"), offset("new_offset"))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(seek(&["latest"]), [(0, 20), (0, 5)]);
        assert_eq!(seek(&[&early]), [(20, 3), (5, 3)]);
        assert_eq!(seek(&[&late]), [(3, 10), (3, 5)]);
        let beyond = topics(&node, &["seek", base, "-s", "s", "--to", "offset:9"]);
        refused(&beyond, 1, "/default/parts-part-1");
        assert_eq!(seek(&["offset:9", "--clamp"]), [(10, 9), (5, 5)], "none had moved");
        assert_eq!(seek(&["earliest"]), [(9, 0), (5, 0)]);
    });
    // A moved cursor is as safe as an ack.
    let mut node = node;
    block_in_place(|| {
        topics_ok(&node, &["seek", base, "-s", "s", "--to", "offset:4"]);
        node.kill();
        node.restart();
        let described = topics_json(&node, &["describe", base]);
        let cursors: Vec<&Value> = described["subscriptions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|subscription| &subscription["cursor"])
            .collect();
        assert_eq!(cursors, [4, 4]);
    });
}
