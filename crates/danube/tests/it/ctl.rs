//! The operator's and the user's commands against a broker: what they print and what they do.

use crate::harness::{Node, command, danube, danube_ok};
use crate::wire::Control;
use serde_json::Value;
use std::process::{Child, Stdio};
use tokio::task::block_in_place;

/// Runs `danube ctl` against the node and requires success; stdout.
#[track_caller]
fn ctl(node: &Node, arguments: &[&str]) -> String {
    danube_ok(&[&["ctl", "--endpoint", node.addresses().admin.as_str()], arguments].concat())
}

#[test]
fn a_topic_with_an_intent_is_created_described_listed_and_deleted() {
    let node = Node::start();
    let jobs = "/default/agent-jobs";
    let made = ctl(
        &node,
        &["topics", "create", jobs, "--intent", "Agent-Task-Queue", "--partitions", "3"],
    );
    for topic in ["-part-0", "-part-1", "-part-2", "-dlq"] {
        assert!(made.contains(&format!("{jobs}{topic}\n")), "{made}");
    }

    let described = ctl(&node, &["topics", "describe", jobs]);
    let first: Vec<&str> = described.lines().take(4).collect();
    assert_eq!(
        [first[0], first[2], first[3]],
        [
            "Topic: /default/agent-jobs",
            "Delivery: Reliable",
            "Intent: task_queue (delivery=reliable, wal_sync=fsync_batch, max_retries=5, \
             backoff_ms=1000, poison_policy=dead_letter, dlq=/default/agent-jobs-dlq)",
        ]
    );
    assert!(first[1].starts_with("Broker ID: "), "{described}");

    let listed = ctl(&node, &["topics", "list"]);
    for topic in ["-part-0", "-part-1", "-part-2", "-dlq"] {
        assert!(listed.contains(&format!("{jobs}{topic}")), "{listed}");
    }
    ctl(&node, &["topics", "delete", jobs]);
    let listed = ctl(&node, &["topics", "list"]);
    assert!(!listed.contains("/default/agent-jobs-part-"), "{listed}");
    let gone = danube(&["ctl", "--endpoint", &node.addresses().admin, "topics", "describe", jobs]);
    assert_eq!(gone.code, 1, "{gone:?}");
}

#[test]
fn every_intent_and_alias_is_stored_as_documented() {
    let node = Node::start();
    for (names, delivery, wal_sync_mode, max_retries, backoff_ms, poison_policy, dlq_suffix) in [
        (
            "realtime telemetry_firehose firehose telemetry ephemeral",
            "NonReliable",
            "async",
            0,
            0,
            "none",
            None,
        ),
        (
            "event_stream agent_event_mesh event_mesh events lakehouse_feed lakehouse custom",
            "Reliable",
            "os_cache_flush",
            3,
            500,
            "dead_letter",
            Some("-dlq"),
        ),
        (
            "task_queue agent_task_queue tasks work_queue",
            "Reliable",
            "fsync_batch",
            5,
            1000,
            "dead_letter",
            Some("-dlq"),
        ),
        (
            "audit_log tool_invocation_log tool_log audit state_log",
            "Reliable",
            "fsync_batch",
            10,
            500,
            "block",
            None,
        ),
    ] {
        let canonical = names.split(' ').next().expect("a first name");
        for name in names.split(' ') {
            let topic = format!("/default/as-{name}");
            ctl(&node, &["topics", "create", &topic, "--intent", name]);
            let text = ctl(&node, &["topics", "describe", &topic, "--output", "json"]);
            let document: Value = serde_json::from_str(&text).expect("JSON");
            let intent = &document["intent"];
            assert_eq!(document["delivery"], delivery, "{name}");
            assert_eq!(intent["intent"], canonical, "{name}");
            assert_eq!(intent["wal_sync_mode"], wal_sync_mode, "{name}");
            assert_eq!(intent["max_retries"], max_retries, "{name}");
            assert_eq!(intent["backoff_ms"], backoff_ms, "{name}");
            assert_eq!(intent["poison_policy"], poison_policy, "{name}");
            assert_eq!(intent["dlq_suffix"], Value::from(dlq_suffix), "{name}");
        }
    }
}

#[test]
fn what_exists_is_not_created_again() {
    let node = Node::start();
    ctl(&node, &["topics", "create", "/default/once", "--intent", "audit_log"]);
    let again = danube(&[
        "ctl",
        "--endpoint",
        &node.addresses().admin,
        "topics",
        "create",
        "/default/once",
        "--intent",
        "realtime",
    ]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("/default/once"), "{again:?}");
    let described = ctl(&node, &["topics", "describe", "/default/once"]);
    assert!(described.contains("Intent: audit_log"), "{described}");
}

/// `danube consume` in the background.
fn consume(node: &Node, arguments: &[&str]) -> Child {
    command()
        .args(["consume", "-s", &node.addresses().broker])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_produced_is_consumed_as_json_lines() {
    let node = block_in_place(Node::start);
    let topic = "/default/orders";
    block_in_place(|| ctl(&node, &["topics", "create", topic, "--intent", "event_stream"]));
    let arguments = ["-t", topic, "-m", "billing", "-n", "c", "--count", "4", "--output", "json"];
    let consumer = block_in_place(|| consume(&node, &arguments));
    Control::connect(&node.addresses().admin).await.connected(topic, "billing", "c").await;

    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let file = home.path().join("bytes");
    std::fs::write(&file, [0xff, 0x00, 0x10]).expect("written");
    let produce = |arguments: &[&str]| {
        danube_ok(
            &[&["produce", "-s", node.addresses().broker.as_str(), "-t", topic], arguments]
                .concat(),
        )
    };
    let output = block_in_place(|| {
        let sent = produce(&["-m", "two\nlines", "--count", "2", "--interval", "0", "--reliable"]);
        assert_eq!(sent.lines().count(), 2, "{sent}");
        produce(&["-m", "größe", "--key", "k-1", "-a", "colour:blue,url:http://h:1/"]);
        produce(&["--file", file.to_str().expect("a plain path")]);
        consumer.wait_with_output().expect("our own child")
    });
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);

    let stdout = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    let field = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("payload"), ["two\nlines", "two\nlines", "größe", "/wAQ"]);
    assert_eq!(field("encoding"), ["text", "text", "text", "base64"]);
    assert_eq!(field("offset"), [0, 1, 2, 3]);
    assert!(field("topic").iter().all(|name| name == topic));
    assert_eq!(field("key"), [Value::Null, Value::Null, "k-1".into(), Value::Null]);
    assert_eq!(lines[2]["attributes"]["colour"], "blue");
    assert_eq!(lines[2]["attributes"]["url"], "http://h:1/");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_topic_is_consumed_as_a_whole() {
    let node = block_in_place(Node::start);
    let topic = "/default/parts";
    let create = ["topics", "create", topic, "--intent", "task_queue", "--partitions", "2"];
    block_in_place(|| ctl(&node, &create));
    let consumer = block_in_place(|| {
        consume(
            &node,
            &["-t", topic, "-m", "all", "-n", "c", "--count", "4", "--sub-type", "exclusive"],
        )
    });
    let mut control = Control::connect(&node.addresses().admin).await;
    for partition in 0..2 {
        control.connected(&format!("{topic}-part-{partition}"), "all", "c").await;
    }
    let output = block_in_place(|| {
        let broker = node.addresses().broker.as_str();
        danube_ok(&[
            "produce",
            "-s",
            broker,
            "-t",
            topic,
            "-m",
            "hello",
            "--count",
            "4",
            "--interval",
            "0",
        ]);
        consumer.wait_with_output().expect("our own child")
    });
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert_eq!(stdout.lines().count(), 4, "{stdout}");
    for partition in 0..2 {
        let of_one = format!("topic={topic}-part-{partition} ");
        assert_eq!(stdout.lines().filter(|line| line.contains(&of_one)).count(), 2, "{stdout}");
    }
    assert!(stdout.lines().all(|line| line.ends_with("payload=hello")), "{stdout}");
}
