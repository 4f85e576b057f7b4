//! Replay of dead letters: cut short, repeated, and fed by what fails again (case U08).

use super::*;
use crate::harness::command;
use crate::wire::offset_of;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use tokio::task::block_in_place;

/// The batch of a replay that is not held back by a rate.
const BATCH_LEN: u64 = 50;

const TOPIC: &str = "/default/jobs";
const LETTERS: &str = "/default/jobs-dlq";

/// A topic whose consumer fails on everything at once, and `count` dead letters of it.
async fn broken(node: &Node, wire: &mut Wire, count: u64) -> Streaming<StreamMessage> {
    block_in_place(|| topics_ok(node, &["create", TOPIC, "--intent", "event_stream"]));
    let consumer = wire.subscribe(TOPIC, "workers", "c").await.expect("attached");
    block_in_place(|| {
        topics_ok(
            node,
            &["set-failure-policy", TOPIC, "-s", "workers", "--max-redelivery-count", "0"],
        )
    });
    let mut stream = wire.receive(consumer).await.expect("open");
    let producer = wire.create_producer(TOPIC, "maker").await.expect("a producer");
    for n in 0..count {
        let mut message = message(TOPIC, producer, "maker", n.to_string().into_bytes());
        message.routing_key = Some(format!("k{}", n % 3));
        message.schema_id = Some(7);
        message.schema_version = Some(2);
        message.attributes.insert("colour".into(), ["red", "blue"][n as usize % 2].into());
        wire.send(message).await.expect("published");
        let failed = receive(&mut stream).await;
        assert_eq!(offset_of(&failed), n);
        nack(wire, &failed, "workers").await;
    }
    block_in_place(|| wait_for(node, LETTERS, count));
    stream
}

/// Waits until a topic has this many messages.
#[track_caller]
fn wait_for(node: &Node, topic: &str, count: u64) {
    for _ in 0..2_000 {
        if next_offset(node, topic) >= count {
            return;
        }
    }
    panic!("{topic} does not come to {count} messages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_that_is_killed_goes_on_and_never_chases_its_own_tail() {
    const COUNT: u64 = 1_000;
    let node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let mut stream = broken(&node, &mut wire, COUNT).await;

    // The consumer is still broken: what is replayed fails once more, while the replay runs.
    let mut failing = wire.clone();
    let returns = tokio::spawn(async move {
        let mut seen: BTreeMap<u64, StreamMessage> = BTreeMap::new();
        while let Ok(Some(message)) = stream.message().await {
            nack(&mut failing, &message, "workers").await;
            seen.insert(offset_of(&message), message);
        }
        seen
    });
    block_in_place(|| {
        let dry = topics_json(&node, &["replay-dlq", LETTERS, "--dry-run"]);
        assert_eq!((&dry["replayed"], &dry["dry_run"]), (&COUNT.into(), &true.into()));
        assert_eq!(dry["letters"].as_array().map(Vec::len), Some(1_000));
        assert_eq!(dry["letters"][5]["to"], TOPIC);
        assert_eq!(next_offset(&node, TOPIC), COUNT, "a dry run writes nothing");

        let mut tool = command()
            .args(["ctl", "--endpoint", &node.addresses().admin, "topics", "replay-dlq", LETTERS])
            .args(["--rate", "500"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built for this test");
        wait_for(&node, TOPIC, COUNT + 400);
        tool.kill().expect("our own child");
        tool.wait().expect("our own child");

        // What the first run published has failed again by now, and more comes back while the
        // second one runs; neither is taken for one of its letters.
        wait_for(&node, LETTERS, COUNT + 400);
        let second = topics(&node, &["replay-dlq", LETTERS, "--output", "json"]);
        assert_eq!(second.code, 0, "{second:?}");
        assert!(second.stderr.contains("cut short"), "{second:?}");
        let second: Value = serde_json::from_str(&second.stdout).expect("JSON");
        let before = second["replayed_before"].as_u64().expect("a number");
        assert!((400..COUNT).contains(&before), "{before} were replayed by the first run");
        assert_eq!(second["replayed"].as_u64(), Some(COUNT - before));
        assert_eq!((&second["failed"], &second["resumed"]), (&0.into(), &true.into()));
    });

    // Each original was published again at least once, and at most one batch of them twice.
    let total = block_in_place(|| next_offset(&node, TOPIC));
    assert!((2 * COUNT..=2 * COUNT + BATCH_LEN).contains(&total), "{total}");
    block_in_place(|| {
        wait_for(&node, LETTERS, total);
        let copies = topics_json(&node, &["peek", LETTERS, "--from", "offset:1000", "-n", "1000"]);
        for copy in copies.as_array().expect("a list") {
            let attributes = &copy["attributes"];
            assert_eq!(attributes["x-replay-count"], "1", "{copy}");
            assert_eq!(attributes["x-delivery-attempt"], "1", "{copy}");
            assert_eq!(attributes["x-original-topic-offset"], copy["payload"], "{copy}");
        }
        // The next replay takes those that came back.
        let third = topics_json(&node, &["replay-dlq", LETTERS, "--dry-run"]);
        assert_eq!(third["replayed"].as_u64(), Some(total - COUNT));
        assert_eq!(third["letters"][0]["replay_count"], 2);
    });
    drop(node);
    let seen = returns.await.expect("no panic");
    let mut times: BTreeMap<String, u64> = BTreeMap::new();
    for message in seen.values() {
        let payload = String::from_utf8(message.payload.to_vec()).expect("text");
        *times.entry(payload).or_default() += 1;
        let attribute = |name: &str| message.attributes.get(name).map(String::as_str);
        assert_eq!(attribute("x-replay-count"), Some("1"));
        assert_eq!(attribute("x-replayed-from"), Some(LETTERS));
        assert_eq!(attribute("x-original-topic"), Some(TOPIC));
        assert_eq!(attribute("x-delivery-attempt"), None, "attempts restart");
        assert_eq!((message.schema_id, message.schema_version), (Some(7), Some(2)));
        assert_eq!(message.producer_name, "maker");
    }
    assert_eq!(times.len() as u64, COUNT);
    let twice = times.values().filter(|times| **times > 1).count() as u64;
    assert!(twice <= BATCH_LEN && times.values().all(|times| *times <= 2), "{twice}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_outlives_its_broker() {
    const COUNT: u64 = 300;
    let mut node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    drop(broken(&node, &mut wire, COUNT).await);
    block_in_place(|| {
        let tool = command()
            .args(["ctl", "--endpoint", &node.addresses().admin, "topics", "replay-dlq", LETTERS])
            .args(["--rate", "300", "--output", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        wait_for(&node, TOPIC, COUNT + 100);
        node.kill();
        node.restart();
        let ended: Run = tool.wait_with_output().expect("our own child").into();
        assert_eq!(ended.code, 0, "{ended:?}");
        let total = next_offset(&node, TOPIC);
        assert!((2 * COUNT..=2 * COUNT + BATCH_LEN).contains(&total), "{total}");
        let from = format!("offset:{COUNT}");
        let replayed = topics_json(&node, &["peek", TOPIC, "--from", &from, "-n", "1000"]);
        let replayed = replayed.as_array().expect("a list").iter();
        let different: BTreeSet<&str> =
            replayed.map(|message| message["payload"].as_str().expect("text")).collect();
        assert_eq!(different.len() as u64, COUNT, "none is missing");
        assert_eq!(topics_json(&node, &["replay-dlq", LETTERS])["replayed"], 0);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_takes_what_is_asked_for_and_remembers_it() {
    let mut node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let stream = broken(&node, &mut wire, 10).await;
    // From here on nobody receives; what is replayed stays where it is.
    drop(stream);
    block_in_place(|| {
        topics_ok(&node, &["create", "/default/fixed", "--intent", "event_stream"]);
        let replay = |arguments: &[&str]| {
            topics_json(&node, &[&["replay-dlq", LETTERS], arguments].concat())
        };
        let blue = ["--filter", "colour=blue", "--filter", "x-failure-reason=broken"];
        let limited = replay(&[&blue[..], &["--limit", "2", "--to", "/default/fixed"]].concat());
        assert_eq!(limited["replayed"], 2);
        let rest = replay(&[&blue[..], &["--to", "/default/fixed"]].concat());
        assert_eq!((&rest["replayed"], &rest["replayed_before"]), (&3.into(), &2.into()));
        assert_eq!(rest["not_matching"], 5);
        let peeked = topics_json(&node, &["peek", "/default/fixed"]);
        let peeked = peeked.as_array().expect("a list");
        let payloads: Vec<&Value> = peeked.iter().map(|message| &message["payload"]).collect();
        assert_eq!(payloads, ["1", "3", "5", "7", "9"]);
        assert_eq!((&peeked[1]["key"], &peeked[1]["schema_id"]), (&"k0".into(), &7.into()));
        assert_eq!(peeked[1]["attributes"]["x-original-topic-offset"], "3");

        assert_eq!(replay(&["--subscription", "others"])["replayed"], 0);
        let to_nowhere = ["replay-dlq", LETTERS, "--to", "/default/nowhere"];
        refused(&topics(&node, &to_nowhere), 1, "/default/nowhere");
        refused(&topics(&node, &["replay-dlq", LETTERS, "--to", LETTERS]), 1, "another topic");
        refused(&topics(&node, &["replay-dlq", "/default/no-dlq"]), 1, "/default/no-dlq");
        refused(&topics(&node, &["replay-dlq", LETTERS, "--filter", "colour"]), 2, "KEY=VALUE");
    });
    // What was replayed is as safe as what was acknowledged.
    block_in_place(|| {
        node.kill();
        node.restart();
        let rest = topics_json(&node, &["replay-dlq", LETTERS, "--subscription", "workers"]);
        assert_eq!((&rest["replayed"], &rest["replayed_before"]), (&5.into(), &5.into()));
        assert_eq!(topics_json(&node, &["replay-dlq", LETTERS])["replayed"], 0);
        let again = topics_json(&node, &["replay-dlq", LETTERS, "--again", "--dry-run"]);
        assert_eq!(again["replayed"], 10);
        assert_eq!(topics_json(&node, &["replay-dlq", LETTERS, "--again"])["replayed"], 10);
        assert_eq!(next_offset(&node, TOPIC), 25);

        // Some go and some do not: the exit code says so, and what cannot stays.
        topics_ok(&node, &["delete", TOPIC]);
        let gone = topics(&node, &["replay-dlq", LETTERS, "--again"]);
        refused(&gone, 1, "topic `/default/jobs` does not exist");
        topics_ok(&node, &["create", TOPIC, "--intent", "event_stream"]);
        assert_eq!(topics_json(&node, &["replay-dlq", LETTERS])["replayed"], 10);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_without_an_origin_is_a_partial_failure() {
    let node = block_in_place(Node::start);
    let mut wire = Wire::connect(&node.addresses().broker).await;
    let _stream = broken(&node, &mut wire, 2).await;
    publish(&mut wire, LETTERS, ["by hand"]).await;
    block_in_place(|| {
        let run = topics(&node, &["replay-dlq", LETTERS, "--output", "json"]);
        assert_eq!(run.code, 4, "{run:?}");
        assert!(run.stderr.contains("at offset 2") && run.stderr.contains("--to"), "{run:?}");
        let document: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!((&document["replayed"], &document["failed"]), (&2.into(), &1.into()));
        assert_eq!(document["letters"][0]["offset"], 2);
    });
}
