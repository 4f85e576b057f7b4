//! `danube doctor` on the data directory of a real broker: healthy, torn, damaged, repaired.

use crate::harness::{Node, danube, get};
use crate::wire::{Control, Wire, message};
use serde_json::Value;
use std::path::PathBuf;
use tokio::task::block_in_place;

const TOPIC: &str = "/default/patient";

/// A broker that has ten messages and was killed.
async fn patient() -> Node {
    let mut node = block_in_place(Node::start);
    let at = node.addresses().clone();
    Control::connect(&at.admin).await.create_topic(TOPIC, "task_queue").await;
    let mut wire = Wire::connect(&at.broker).await;
    wire.subscribe(TOPIC, "s", "c").await.expect("subscribed");
    let id = wire.create_producer(TOPIC, "p").await.expect("created");
    for number in 0..10 {
        let payload = format!("patient message {number}").into_bytes();
        wire.send(message(TOPIC, id, "p", payload)).await.expect("acknowledged");
    }
    block_in_place(|| node.kill());
    node
}

fn doctor(node: &Node, flags: &[&str]) -> (i32, Value, String) {
    let dir = node.data_dir().to_str().expect("a plain path").to_owned();
    let arguments = [&["doctor", &dir, "--output", "json"], flags].concat();
    let run = block_in_place(|| danube(&arguments));
    (run.code, serde_json::from_str(&run.stdout).unwrap_or_default(), run.stderr)
}

fn journal(node: &Node) -> PathBuf {
    let entries = std::fs::read_dir(node.data_dir().join("wal")).expect("listed");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
    files.sort();
    files.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doctor_finds_names_and_repairs_damage_in_the_middle() {
    let mut node = patient().await;
    let (code, report, errors) = doctor(&node, &[]);
    assert_eq!((code, &report["healthy"]), (0, &Value::Bool(true)), "{report:#}{errors}");
    assert!(report["catalog"].is_string(), "{report:#}");

    let path = journal(&node);
    let mut bytes = std::fs::read(&path).expect("read");
    let mark = b"patient message 4";
    let at = bytes.windows(mark.len()).position(|window| window == mark).expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let (code, report, errors) = doctor(&node, &[]);
    assert_eq!(code, 1, "{report:#}");
    let problem = &report["problems"][0];
    assert_eq!(problem["path"], path.to_str().expect("a plain path"), "{report:#}");
    assert_eq!((&problem["lost"][0]["first"], &problem["lost"][0]["end"]), (&4.into(), &5.into()));
    assert!(errors.contains("--repair"), "{errors}");

    let (code, report, errors) = doctor(&node, &["--repair"]);
    assert_eq!(code, 1, "a loss is no health: {report:#}{errors}");
    assert_eq!(report["after"]["problems"].as_array().map(Vec::len), Some(0), "{report:#}");
    assert!(node.data_dir().join("wal/quarantine").is_dir());

    block_in_place(|| node.restart());
    let at = node.addresses().clone();
    let mut wire = Wire::connect(&at.broker).await;
    let log = crate::load::read_all(&mut wire, &at, TOPIC, "s").await;
    let offsets: Vec<u64> = log.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, [0, 1, 2, 3, 5, 6, 7, 8, 9], "only what is lost is gone");

    // The subscription that was there before is told of the gap, once, in words and in numbers.
    let told: Vec<String> = node
        .stderr()
        .lines()
        .filter(|line| line.contains("the log does not have messages that were not finished"))
        .map(str::to_owned)
        .collect();
    let [told] = told.as_slice() else { panic!("{told:#?}") };
    for field in ["topic=/default/patient", "subscription=s", "first=4", "end=5"] {
        assert!(told.contains(field), "{told}");
    }
    let metrics = block_in_place(|| get(&format!("{}/metrics", at.http)));
    let of = r#"{topic="/default/patient",subscription="s"} 1"#;
    for name in ["danube_subscription_gap_total", "danube_subscription_gap_messages_total"] {
        assert!(metrics.contains(&format!("{name}{of}\n")), "{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doctor_refuses_a_broker_that_runs_and_a_directory_that_is_none() {
    let mut node = patient().await;
    block_in_place(|| node.restart());
    let (code, _, errors) = doctor(&node, &["--repair"]);
    assert!(code == 1 && errors.contains("in use"), "{code} {errors}");
    let run = block_in_place(|| danube(&["doctor", "/nowhere/at/all"]));
    assert!(run.code == 2 && run.stderr.contains("/nowhere/at/all"), "{run:?}");
    let empty = tempfile::tempdir().expect("a temporary directory can be made");
    let run = block_in_place(|| danube(&["doctor", empty.path().to_str().expect("a plain path")]));
    assert_eq!(run.code, 2, "{run:?}");
}
