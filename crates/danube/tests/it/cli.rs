//! Flags and help, seen from outside: the text a user reads, and what a wrong flag gives.

use crate::harness::{Run, danube, danube_ok, danube_with};
use expect_test::{Expect, expect};

fn help(arguments: &[&str], expected: Expect) {
    let run = danube_with(&[arguments, &["--help"]].concat(), &[("COLUMNS", "100")]);
    assert_eq!(run.code, 0);
    expected.assert_eq(&run.stdout);
}

#[track_caller]
fn usage_error(arguments: &[&str], says: &str) -> Run {
    let run = danube(arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {run:#?}");
    assert_eq!(run.stdout, "", "{arguments:?}: stdout is for results");
    assert!(run.stderr.starts_with("error: "), "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains(says), "{arguments:?}: {}", run.stderr);
    run
}

#[test]
fn help_of_all() {
    help(&[], expect![]);
}

#[test]
fn help_of_start() {
    help(&["start"], expect![]);
}

#[test]
fn help_of_produce() {
    help(&["produce"], expect![]);
}

#[test]
fn help_of_consume() {
    help(&["consume"], expect![]);
}

#[test]
fn help_of_ctl() {
    help(&["ctl"], expect![]);
    help(&["ctl", "topics"], expect![]);
    help(&["ctl", "topics", "create"], expect![]);
    help(&["ctl", "topics", "set-failure-policy"], expect![]);
}

#[test]
fn help_of_bench() {
    help(&["bench"], expect![]);
    help(&["bench", "publish"], expect![]);
}

#[test]
fn the_version_goes_to_stdout() {
    let expected = concat!("danube ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(danube_ok(&["version"]), expected);
    assert_eq!(danube_ok(&["--version"]), expected);
}

#[test]
fn wrong_flags_are_usage_errors() {
    usage_error(&["start", "--brokr-addr", "127.0.0.1:1"], "--brokr-addr");
    usage_error(&["consume"], "--subscription");
    usage_error(&["consume", "-m", "s", "--sub-type", "both"], "key-shared");
    usage_error(&["consume", "-m", "s", "--key-filter", "a*"], "--sub-type key-shared");
    usage_error(&["consume", "-m", "a/b"], "subscription name `a/b`");
    usage_error(&["consume", "-m", "s", "--count", "0"], "--count");
    usage_error(&["produce"], "--file");
    usage_error(&["produce", "-m", "x", "-f", "y"], "cannot be used with");
    usage_error(&["produce", "-m", "x", "-a", "novalue"], "key:value");
    usage_error(&["produce", "-m", "x", "-p", "0"], "--partitions");
    usage_error(&["produce", "-m", "x", "-t", "jobs"], "/namespace/topic");
    usage_error(&["produce", "-f", "/no/such/file"], "/no/such/file");
    usage_error(&["produce", "-m", "x", "-s", "https://h:1"], "TLS");
    usage_error(&["ctl", "topics", "create", "a b"], "`/default/a b`");
    usage_error(&["ctl", "topics", "create", "t", "--intent", "queue"], "task_queue");
    usage_error(&["ctl", "topics", "set-failure-policy", "t", "-s", "s"], "--poison-policy");
    usage_error(&["bench", "publish", "--size", "7"], "--size");
    usage_error(&["bench", "consume", "--non-reliable"], "non-reliable");
    usage_error(&["bench", "publish", "--count", "1", "--seconds", "1"], "cannot be used with");
}

#[test]
fn a_bench_counts_its_messages() {
    let flags = ["--count", "300", "--warm-up", "10", "--in-flight", "8", "--output", "json"];
    let report = danube_ok(&[&["bench", "echo"], &flags[..]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).expect("a JSON document");
    assert_eq!(report["messages"], 300);
    assert_eq!(report["size_bytes"], 1024);
    assert!(report["latency_us"]["p50"].as_u64() <= report["latency_us"]["max"].as_u64());
}
