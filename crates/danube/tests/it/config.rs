//! Layers of the configuration, seen from outside: which one wins in a running broker, and how a
//! wrong one ends the start. The text of each error is tested beside the configuration.

use crate::harness::{Node, danube, danube_ok, danube_with};

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

#[test]
fn a_running_broker_has_its_file_and_flags_win_over_it() {
    // The directory cannot be made, so the broker serves only if the flag won.
    let file = file("data_dir: /dev/null/data\nbootstrap_namespaces: [agents]\n");
    let path = file.path().display().to_string();
    let node = Node::start_with(&["--config-file", &path]);
    let admin = node.addresses().admin.as_str();
    let namespaces = danube_ok(&["ctl", "--endpoint", admin, "namespaces", "list"]);
    assert_eq!(namespaces.lines().collect::<Vec<_>>(), ["agents", "default", "system"]);
}

#[test]
fn the_endpoint_of_ctl_may_come_from_the_environment() {
    let node = Node::start();
    let environment = [("DANUBE_ADMIN_ENDPOINT", node.addresses().admin.as_str())];
    let run = danube_with(&["ctl", "namespaces", "list"], &environment);
    assert_eq!((run.code, run.stdout.as_str()), (0, "default\nsystem\n"));
}

#[test]
fn a_wrong_configuration_ends_the_start_with_a_usage_error() {
    let file = file("storage:\n  cach_bytes: 1\n");
    let path = file.path().display().to_string();
    let run = danube(&["start", "--config-file", &path]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains(&path), "{}", run.stderr);
    assert!(run.stderr.contains("`cach_bytes`"), "{}", run.stderr);
    assert!(run.stderr.contains("line 2"), "{}", run.stderr);

    let run = danube_with(&["start"], &[("DANUBE_MODE", "edge")]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("DANUBE_MODE: mode `edge`"), "{}", run.stderr);

    let run = danube_with(&["start"], &[("RUST_LOG", "danube=loudly")]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("RUST_LOG"), "{}", run.stderr);
}
