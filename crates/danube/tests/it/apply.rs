//! `danube ctl apply` and its companions against a broker, killed brokers and rivals included.

use crate::harness::{Node, Run, command, danube, danube_ok};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

const SEED: &str = "namespaces:
  - agents
topics:
  - name: /agents/events
    intent: agent_event_mesh
    partitions: 3
  - name: /agents/tasks
    intent: task_queue
    partitions: 6
  - name: /agents/tool-audit
    intent: tool_invocation_log
";

fn ctl(node: &Node, arguments: &[&str]) -> Run {
    danube(&[&["ctl", "--endpoint", node.addresses().admin.as_str()], arguments].concat())
}

#[track_caller]
fn ctl_ok(node: &Node, arguments: &[&str]) -> String {
    danube_ok(&[&["ctl", "--endpoint", node.addresses().admin.as_str()], arguments].concat())
}

/// A manifest in a file of that name.
fn file(home: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = home.path().join(name);
    std::fs::write(&path, text).expect("a temporary directory can be written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

#[test]
fn a_topic_is_replaced_by_name_and_what_is_in_it_goes_only_by_force() {
    let (node, home) = (Node::start(), home());
    let topic = "/default/t";
    ctl_ok(&node, &["topics", "create", topic, "--intent", "task_queue", "--partitions", "2"]);
    for _ in 0..5 {
        ctl_ok(&node, &["topics", "publish", topic, "-m", "old"]);
    }
    let declared = "topics: [{name: /default/t, intent: task_queue, dlq: /default/failed, \
                    subscriptions: [{name: w}]}]";
    let path = file(&home, "t.yaml", declared);
    let replace = ["apply", "-f", text(&path), "--replace", topic];
    assert_eq!(ctl(&node, &["apply", "-f", text(&path)]).code, 1, "fewer partitions");
    let refused = ctl(&node, &replace);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.contains("it has 5 messages, which a replacement loses"), "{refused:?}");
    let done = ctl(&node, &[&replace[..], &["--force"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("replace   topic        /default/t"), "{}", done.stdout);
    assert_eq!(ctl(&node, &replace).code, 0, "a second run has nothing to replace");
    // The new topic's subscription starts where the new topic does, and fails where it is to.
    ctl_ok(&node, &["topics", "publish", topic, "-m", "new"]);
    let why = ctl_ok(&node, &["topics", "describe", topic, "--output", "json"]);
    let described: Value = serde_json::from_str(&why).expect("JSON");
    assert_eq!(described["subscriptions"][0]["backlog"], 1, "{why}");
    assert_eq!(described["intent"]["dead_letter_topic"], "/default/failed", "{why}");
    let explained = ctl_ok(&node, &["topics", "explain", topic]);
    assert!(explained.contains("/default/failed"), "{explained}");
}

#[test]
fn a_manifest_is_checked_without_a_broker() {
    let home = home();
    let offline = |path: &Path| {
        let endpoint = "http://127.0.0.1:1"; // Nobody is asked, so nobody need be there.
        danube(&["ctl", "--endpoint", endpoint, "apply", "-f", text(path), "--validate-only"])
    };
    let run = offline(&file(&home, "good.yaml", SEED));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.ends_with("4 entries are valid; no broker was asked\n"), "{}", run.stdout);
    let run = offline(&file(&home, "wrong.yaml", "topics: [{name: t, intnet: audit_log}]"));
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("did you mean `intent`?"), "{}", run.stderr);
}

/// A namespace with many topics whose publishes survive what `mode` says.
fn many(count: usize, mode: &str) -> String {
    let topics = (0..count)
        .map(|n| format!("  - {{name: /many/t-{n}, intent: audit_log, wal_sync: {mode}}}\n"));
    format!("namespaces: [many]\ntopics:\n{}", topics.collect::<String>())
}

/// The lines of a plan, without what became of them.
fn plan(run: &Run) -> Vec<&str> {
    run.stdout.lines().filter(|line| !line.trim_start().starts_with("done")).collect()
}

#[test]
fn the_seeds_manifest_is_planned_made_and_then_unchanged() {
    let (node, home) = (Node::start(), home());
    let path = file(&home, "cluster-topology.yaml", SEED);
    let dry = ctl(&node, &["apply", "-f", text(&path), "--dry-run"]);
    assert_eq!(dry.code, 10, "something would change: {dry:?}");
    assert!(dry.stdout.contains("create    topic        /agents/tasks"), "{}", dry.stdout);
    assert!(
        !ctl_ok(&node, &["namespaces", "list"]).contains("agents"),
        "a dry run changes nothing"
    );
    assert_eq!(ctl(&node, &["diff", "-f", text(&path)]).code, 1);
    let real = ctl(&node, &["apply", "-f", text(&path)]);
    assert_eq!(real.code, 0, "{real:?}");
    assert_eq!(plan(&dry), plan(&real), "line by line");
    for arguments in [&["apply", "-f", text(&path)][..], &["apply", "-f", text(&path), "--dry-run"]]
    {
        let again = ctl(&node, arguments);
        assert_eq!(again.code, 0, "{again:?}");
        assert!(again.stdout.ends_with("0 to create, 0 to update, 0 to prune, 4 unchanged\n"));
    }
    assert_eq!(ctl(&node, &["diff", "-f", text(&path)]).code, 0);
    let described = ctl_ok(&node, &["topics", "describe", "/agents/tool-audit"]);
    assert!(described.contains("Intent: audit_log"), "{described}");
}

#[test]
fn a_manifest_that_is_wrong_or_impossible_writes_nothing_and_says_where() {
    let (node, home) = (Node::start(), home());
    ctl_ok(&node, &["topics", "create", "/default/live", "--intent", "realtime"]);
    let before = ctl_ok(&node, &["metadata", "list", "/", "--output", "json"]);
    let wrong = file(
        &home,
        "wrong.yaml",
        "namespaces: [agents]\ntopics:\n  - name: /agents/t\n    intnet: audit_log\n",
    );
    let run = ctl(&node, &["apply", "-f", text(&wrong)]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    let at = format!("{}:4: topic: unknown key `intnet`; did you mean `intent`?", wrong.display());
    assert!(run.stderr.contains(&at), "{}", run.stderr);
    let impossible = "namespaces: [agents]\ntopics:\n  - {name: /agents/new, intent: audit_log}\n  - {name: /default/live, intent: audit_log}\n";
    let impossible = file(&home, "impossible.yaml", impossible);
    let run = ctl(&node, &["apply", "-f", text(&impossible)]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("conflict  topic        /default/live"), "{}", run.stdout);
    assert!(run.stderr.contains("nothing was changed"), "{}", run.stderr);
    assert_eq!(ctl_ok(&node, &["metadata", "list", "/", "--output", "json"]), before);
}

#[test]
fn what_is_exported_changes_nothing_when_it_is_applied() {
    let (mut node, home) = (Node::start(), home());
    let topic = "/default/jobs";
    ctl_ok(&node, &["topics", "create", topic, "--intent", "task_queue", "--partitions", "2"]);
    ctl_ok(
        &node,
        &["topics", "configure", topic, "--retention-time", "3d", "--limit", "max_publish_rate=9"],
    );
    ctl_ok(&node, &["topics", "create-subscription", topic, "-s", "w", "--type", "key_shared"]);
    ctl_ok(
        &node,
        &["topics", "set-failure-policy", topic, "-s", "w", "--max-redelivery-count", "9"],
    );
    ctl_ok(
        &node,
        &["namespaces", "set-policies", "default", "--limit", "max_producers_per_topic=7"],
    );
    let exported = ctl_ok(&node, &["export"]);
    let path = file(&home, "all.yaml", &exported);
    let applied = ctl(&node, &["apply", "-f", text(&path)]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert!(applied.stdout.contains("0 to create, 0 to update"), "{}\n{exported}", applied.stdout);
    // It also makes the same again somewhere else, and a restart changes nothing.
    let other = Node::start();
    assert_eq!(ctl(&other, &["apply", "-f", text(&path)]).code, 0);
    assert_eq!(ctl_ok(&other, &["export"]), exported);
    node.kill();
    node.restart();
    assert_eq!(ctl_ok(&node, &["export"]), exported);
}

#[test]
fn drift_says_who_changed_what_and_apply_mends_it() {
    let (node, home) = (Node::start(), home());
    let manifest = "topics:\n  - name: jobs\n    intent: task_queue\n    subscriptions: [{name: w, failure_policy: {max_redelivery_count: 8}}]\n";
    let path = file(&home, "m.yaml", manifest);
    assert_eq!(ctl(&node, &["apply", "-f", text(&path)]).code, 0);
    assert_eq!(ctl(&node, &["drift"]).code, 0);
    let set = command()
        .args(["ctl", "--endpoint", &node.addresses().admin, "topics", "set-failure-policy"])
        .args(["/default/jobs", "-s", "w", "--max-redelivery-count", "2"])
        .env("USER", "bob")
        .output()
        .expect("the binary was built for this test");
    assert!(set.status.success());
    let drift = ctl(&node, &["drift", "--output", "json"]);
    assert_eq!(drift.code, 1, "{drift:?}");
    let drift: Value = serde_json::from_str(&drift.stdout).expect("JSON");
    let found = &drift["drift"][0];
    assert_eq!((&found["kind"], &found["how"]), (&"subscription".into(), &"changed".into()));
    assert_eq!(found["fields"][0]["old"], 8);
    assert_eq!(found["fields"][0]["new"], 2);
    assert!(found["changed_by"].as_str().is_some_and(|by| by.starts_with("bob from ")), "{found}");
    assert_eq!(ctl(&node, &["apply", "-f", text(&path)]).code, 0);
    assert_eq!(ctl(&node, &["drift"]).code, 0);
}

#[test]
fn prune_takes_what_is_no_longer_declared_and_no_data_unless_forced() {
    let (node, home) = (Node::start(), home());
    let both = file(
        &home,
        "both.yaml",
        "topics: [{name: a, intent: audit_log}, {name: b, intent: audit_log}]",
    );
    let one = file(&home, "one.yaml", "topics: [{name: a, intent: audit_log}]");
    assert_eq!(ctl(&node, &["apply", "-f", text(&both)]).code, 0);
    let kept = ctl(&node, &["apply", "-f", text(&one)]);
    assert_eq!(kept.code, 0);
    assert!(kept.stderr.contains("--prune removes them: topic `/default/b`"), "{}", kept.stderr);
    ctl_ok(&node, &["topics", "publish", "/default/b", "-m", "precious"]);
    let blocked = ctl(&node, &["apply", "-f", text(&one), "--prune"]);
    assert_eq!(blocked.code, 1, "{blocked:?}");
    assert!(blocked.stdout.contains("it has 1 messages; give --force"), "{}", blocked.stdout);
    assert!(ctl_ok(&node, &["topics", "list"]).contains("/default/b"));
    assert_eq!(ctl(&node, &["apply", "-f", text(&one), "--prune", "--force"]).code, 0);
    assert!(!ctl_ok(&node, &["topics", "list"]).contains("/default/b"));
}

#[test]
fn schemas_come_from_files_beside_the_manifest_and_variables_on_demand() {
    let (node, home) = (Node::start(), home());
    file(&home, "order.json", r#"{"type": "object", "properties": {"id": {"type": "string"}}}"#);
    let manifest = "schemas: [{subject: orders, type: json_schema, file: order.json}]\ntopics:\n  - {name: \"${TOPIC}\", intent: event_stream, schema: {subject: orders, validation: enforce}}\n";
    let path = file(&home, "m.yaml", manifest);
    let with_env = |value: Option<&str>| -> Run {
        let mut command = command();
        command.args([
            "ctl",
            "--endpoint",
            &node.addresses().admin,
            "apply",
            "--env",
            "-f",
            text(&path),
        ]);
        value.map(|value| command.env("TOPIC", value));
        command.output().expect("the binary was built for this test").into()
    };
    let unset = with_env(None);
    assert_eq!(unset.code, 2, "{unset:?}");
    assert!(unset.stderr.contains("m.yaml:3: variable `TOPIC` is not set"), "{}", unset.stderr);
    assert_eq!(with_env(Some("orders")).code, 0);
    let again = with_env(Some("orders"));
    assert!(again.stdout.contains("2 unchanged"), "{again:?}");
    let config = ctl_ok(&node, &["topics", "get-schema-config", "/default/orders"]);
    assert!(config.contains("enforce"), "{config}");
}

fn spawn(node: &Node, path: &Path) -> Child {
    command()
        .args(["ctl", "--endpoint", &node.addresses().admin, "apply", "-f", text(path)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test")
}

#[test]
fn two_applies_at_once_end_in_one_clean_state_and_a_clear_conflict() {
    let (node, home) = (Node::start(), home());
    let first = file(&home, "first.yaml", &many(400, "async"));
    let second = file(&home, "second.yaml", &many(400, "os_cache_flush"));
    let runs = [spawn(&node, &first), spawn(&node, &second)]
        .map(|child| Run::from(child.wait_with_output().expect("our own child")));
    let won = runs.iter().filter(|run| run.code == 0).count();
    assert!(won >= 1, "{runs:?}");
    for run in runs.iter().filter(|run| run.code != 0) {
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("conflict: another apply is under way"), "{}", run.stderr);
    }
    let same = [&first, &second].map(|path| ctl(&node, &["diff", "-f", text(path)]).code == 0);
    assert_eq!(same.iter().filter(|same| **same).count(), 1, "one of the two, and no mixture");
}

#[test]
fn a_broker_killed_in_the_middle_leaves_what_the_next_apply_completes() {
    let (mut node, home) = (Node::start(), home());
    let path = file(&home, "many.yaml", &many(1_500, "async"));
    let mut child = spawn(&node, &path);
    // Steps go in batches: some topics are there, most are not.
    let count = |node: &Node| {
        let listed = ctl(node, &["namespaces", "topics", "many", "--output", "json"]);
        listed.stdout.matches("/many/t-").count()
    };
    while count(&node) == 0 && child.try_wait().expect("our own child").is_none() {}
    node.kill();
    let cut = Run::from(child.wait_with_output().expect("our own child"));
    node.restart();
    let there = count(&node);
    assert!(cut.code != 0 || there == 1_500, "{cut:?}");
    let completed = ctl(&node, &["apply", "-f", text(&path)]);
    assert_eq!(completed.code, 0, "{}", completed.stderr);
    assert_eq!(count(&node), 1_500);
    assert_eq!(ctl(&node, &["diff", "-f", text(&path)]).code, 0);
}

#[test]
fn a_manifest_can_come_from_stdin_and_a_directory() {
    let (node, home) = (Node::start(), home());
    let mut child = command()
        .args(["ctl", "--endpoint", &node.addresses().admin, "apply", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(br#"{"namespaces": ["a"]}"#).expect("a pipe can be written");
    drop(stdin);
    assert!(child.wait().expect("our own child").success());
    file(&home, "1.yaml", "namespaces: [a]");
    file(&home, "2.yml", "topics: [{name: /a/t}]");
    let both = ctl(&node, &["apply", "-f", text(home.path())]);
    assert_eq!(both.code, 0, "{both:?}");
    assert!(both.stdout.contains("1 to create, 0 to update, 0 to prune, 1 unchanged"), "{both:?}");
}
