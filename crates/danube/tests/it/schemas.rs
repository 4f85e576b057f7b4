//! Schemas from the command line: registering, checking, enforcing, encoding and decoding.

use crate::harness::{Node, Run, danube};
use serde_json::{Value, json};
use std::path::Path;

/// Runs `danube ctl`, whatever comes of it.
fn ctl(node: &Node, line: &[&str]) -> Run {
    let endpoint = node.addresses().admin.clone();
    danube(&[&["ctl", "--endpoint", endpoint.as_str()], line].concat())
}

fn fine(ran: Run) -> String {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

fn document(ran: Run) -> Value {
    serde_json::from_str(&fine(ran)).expect("JSON")
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("can be written");
    path.to_str().expect("text").to_owned()
}

const ORDER: &str = r#"{"type":"record","name":"Order","fields":[
    {"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}"#;

#[test]
fn the_registry_from_register_to_history() {
    let node = Node::start();
    let dir = tempfile::tempdir().expect("a directory");
    let first = write(dir.path(), "order.avsc", ORDER);
    let breaking = write(dir.path(), "bad.avsc", &ORDER.replace("long", "string"));
    let register = |file: &str| {
        ctl(
            &node,
            &[
                "schemas",
                "register",
                "orders",
                "--schema-type",
                "avro",
                "--file",
                file,
                "--tags",
                "shop",
            ],
        )
    };
    let text = fine(register(&first));
    assert!(text.contains("Version: 1") && text.contains("Fingerprint: sha256:"), "{text}");
    let again = register(&first);
    assert!(again.stderr.contains("the same as version 1"), "{again:?}");

    let refused = register(&breaking);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("Order.id"), "{refused:?}");
    let check = |file: &str, more: &[&str]| {
        let line = ["schemas", "check", "orders", "--schema-type", "avro", "--file", file];
        ctl(&node, &[&line, more].concat())
    };
    let verdict = check(&breaking, &[]);
    assert_eq!(verdict.code, 1, "{verdict:?}");
    for part in [
        "INCOMPATIBLE: orders (version 1), mode backward",
        "Order.id",
        "- long",
        "+ string",
        "cannot read what was written",
    ] {
        assert!(verdict.stdout.contains(part), "{part}: {}", verdict.stdout);
    }
    let verdict = check(&breaking, &["--output", "json"]);
    assert_eq!(verdict.code, 1);
    let verdict: Value = serde_json::from_str(&verdict.stdout).expect("JSON");
    assert_eq!(
        (&verdict["compatible"], &verdict["breaks"][0]["version"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(check(&breaking, &["--mode", "none"]).code, 0);
    assert_eq!(check(&first, &[]).code, 0);

    fine(ctl(&node, &["schemas", "set-compatibility", "orders", "--mode", "full"]));
    let promise =
        document(ctl(&node, &["schemas", "get-compatibility", "orders", "--output", "json"]));
    assert_eq!(
        (&promise["compatibility_mode"], &promise["json_level"]),
        (&json!("full"), &json!("lenient"))
    );
    let got = document(ctl(&node, &["schemas", "get", "--subject", "orders", "--output", "json"]));
    assert_eq!(got["definition"], ORDER);
    let by_id = ctl(&node, &["schemas", "get", "--id", &got["schema_id"].to_string()]);
    assert!(fine(by_id).contains("\"name\":\"Order\""));
    assert!(fine(ctl(&node, &["schemas", "versions", "orders"])).contains("danube-ctl"));
    let listed = fine(ctl(&node, &["schemas", "list-subjects"]));
    assert!(
        listed.contains("orders") && listed.contains("full") && listed.contains("shop"),
        "{listed}"
    );

    let delete = ["schemas", "delete", "orders", "--version", "1"];
    assert_eq!(ctl(&node, &delete).code, 2, "not without --confirm");
    fine(ctl(&node, &[&delete[..], &["--confirm"]].concat()));
    assert_eq!(ctl(&node, &["schemas", "versions", "orders"]).code, 1);
    let history = document(ctl(&node, &["schemas", "history", "orders", "--output", "json"]));
    let events: Vec<&str> = history
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert_eq!(events, ["registered", "compatibility_set", "deleted"]);
}

#[test]
fn a_topic_enforces_and_says_so_and_a_restart_knows_it() {
    let mut node = Node::start();
    let dir = tempfile::tempdir().expect("a directory");
    let file = write(dir.path(), "order.avsc", ORDER);
    let topic = "/default/orders";
    fine(ctl(&node, &["schemas", "register", "orders", "--schema-type", "avro", "--file", &file]));
    let absent = ctl(&node, &["topics", "create", topic, "--schema-subject", "none"]);
    assert_eq!(absent.code, 1);
    assert!(absent.stderr.contains("not found"), "{absent:?}");
    fine(ctl(&node, &["topics", "create", topic, "--dispatch-strategy", "reliable"]));
    assert_eq!(ctl(&node, &["topics", "get-schema-config", topic]).code, 1);
    assert_eq!(ctl(&node, &["topics", "set-validation-policy", topic, "--policy", "warn"]).code, 1);
    fine(ctl(
        &node,
        &[
            "topics",
            "configure-schema",
            topic,
            "--subject",
            "orders",
            "--validation-policy",
            "enforce",
            "--enable-payload-validation",
        ],
    ));
    node.terminate();
    node.restart();
    let config = document(ctl(&node, &["topics", "get-schema-config", topic, "--output", "json"]));
    assert_eq!(config["validation_policy"], "enforce");
    assert_eq!(config["enable_payload_validation"], true);
    let described = fine(ctl(&node, &["topics", "describe", topic]));
    for line in [
        "Schema: orders",
        "Schema Type: avro",
        "Compatibility: backward",
        "Validation: enforce, payload validation on",
    ] {
        assert!(described.contains(line), "{line}: {described}");
    }
    let bare = danube(&["produce", "-s", &node.addresses().broker, "-t", topic, "-m", "x"]);
    assert_eq!(bare.code, 1, "{bare:?}");
    assert!(bare.stderr.contains("no schema_id") && bare.stderr.contains("orders"), "{bare:?}");
    fine(ctl(&node, &["topics", "set-validation-policy", topic, "--policy", "none"]));
    fine(danube(&["produce", "-s", &node.addresses().broker, "-t", topic, "-m", "x"]));
    let history = fine(ctl(&node, &["schemas", "history", "--topic", topic]));
    assert_eq!(history.matches("configured").count(), 2, "{history}");
}

#[test]
fn json_lines_go_out_encoded_and_come_back_decoded() {
    let node = Node::start();
    let dir = tempfile::tempdir().expect("a directory");
    let avsc = write(dir.path(), "order.avsc", ORDER);
    let proto = write(
        dir.path(),
        "order.proto",
        "syntax = \"proto3\"; message Order { int64 id = 1; string note = 2; }",
    );
    let lines = write(dir.path(), "orders.jsonl", "{\"id\":1}\n\n{\"id\":2,\"note\":\"größe\"}\n");
    let wrong = write(dir.path(), "wrong.jsonl", "{\"id\":1}\n{\"id\":\"two\",\"note\":[]}\n");
    let broker = node.addresses().broker.clone();
    for (kind, definition, second) in [
        ("avro", &avsc, json!({"id": 2, "note": "größe"})),
        ("protobuf", &proto, json!({"id": "2", "note": "größe"})),
    ] {
        let topic = format!("/default/{kind}");
        let produce = |file: &str| {
            danube(&[
                "produce",
                "-s",
                &broker,
                "-t",
                &topic,
                "--reliable",
                "-i",
                "0",
                "--schema-subject",
                kind,
                "--schema-file",
                definition,
                "--schema-type",
                kind,
                "-f",
                file,
            ])
        };
        let refused = produce(&wrong);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("line 2"), "{refused:?}");
        let consume = |more: &[&str]| {
            let line = [
                "consume",
                "-s",
                &broker,
                "-t",
                &topic,
                "--count",
                "2",
                "--timeout",
                "20",
                "--output",
                "json",
            ];
            danube(&[&line, more].concat())
        };
        fine(ctl(&node, &["topics", "create", &topic, "--dispatch-strategy", "reliable"]));
        let endpoint = node.addresses().admin.clone();
        // A subscription begins with what comes after it.
        let waits = std::thread::spawn({
            let (broker, topic) = (broker.clone(), topic.clone());
            move || {
                danube(&[
                    "consume",
                    "-s",
                    &broker,
                    "-t",
                    &topic,
                    "-m",
                    "live",
                    "--count",
                    "2",
                    "--timeout",
                    "60",
                    "--output",
                    "json",
                ])
            }
        });
        while !danube(&["ctl", "--endpoint", &endpoint, "topics", "subscriptions", &topic])
            .stdout
            .contains("live")
        {}
        fine(produce(&lines));
        let received = fine(waits.join().expect("does not panic"));
        let received: Vec<Value> =
            received.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(received[1]["payload"], second, "{received:?}");
        assert_eq!(
            (&received[1]["encoding"], &received[1]["schema_version"]),
            (&json!(kind), &json!(1))
        );
        let peeked = document(ctl(&node, &["topics", "peek", &topic, "--output", "json"]));
        assert_eq!((&peeked[1]["payload"], &peeked[1]["encoding"]), (&second, &json!(kind)));
        // The bytes themselves are not JSON.
        fine(ctl(&node, &["topics", "seek", &topic, "-s", "live", "--to", "earliest"]));
        let raw = fine(consume(&["-m", "live", "--no-decode"]));
        assert!(!raw.contains("\"encoding\":\"avro\"") && !raw.contains("\"note\""), "{raw}");
        assert_eq!(
            danube(&[
                "produce",
                "-s",
                &broker,
                "-t",
                &topic,
                "-m",
                "{\"id\":3}",
                "--schema-subject",
                kind,
                "--schema-min-version",
                "2"
            ])
            .code,
            1
        );
        fine(danube(&[
            "produce",
            "-s",
            &broker,
            "-t",
            &topic,
            "-m",
            "{\"id\":3}",
            "--schema-subject",
            kind,
            "--schema-version",
            "1",
        ]));
    }
}
