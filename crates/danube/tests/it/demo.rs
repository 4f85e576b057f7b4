//! The demo plays to its end, alone, and leaves nothing behind.

use crate::harness::{command, danube};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use tempfile::TempDir;

fn is_empty(dir: &TempDir) -> bool {
    std::fs::read_dir(dir.path()).expect("readable").next().is_none()
}

#[test]
fn the_story_is_told_to_its_end() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let output = command().arg("demo").env("TMPDIR", dir.path()).output().expect("it runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(!stdout.contains('\u{1b}'), "no colours where nobody watches");
    let mut rest = &*stdout;
    for told in [
        "$ danube ctl topics create /default/thumbnails --intent task_queue",
        "fox.png           ok, it is on the disk",
        "worker-1  cat.png           killed",
        "worker-2  cat.png           done (2nd delivery)",
        "worker-2  dog.svg           failed: cannot read SVG (3rd delivery, after ",
        "\"x-failure-reason\": \"cannot read SVG\"",
        "would replay 1 dead letters",
        "worker-3  dog.svg           done",
        "drained: every message is finished",
        "Six jobs in, six jobs done, none lost and none done twice",
    ] {
        let (_, after) = rest.split_once(told).unwrap_or_else(|| panic!("{told:?} in {stdout}"));
        rest = after;
    }
    assert!(is_empty(&dir), "its files are gone");
}

#[test]
fn whoever_stops_it_finds_no_files_either() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let mut demo = command();
    demo.arg("demo").env("TMPDIR", dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = demo.spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    lines.next().expect("a line").expect("readable");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("positive");
    kill_process(pid, Signal::INT).expect("our own child");
    // Somebody goes on reading what it may still tell.
    lines.for_each(drop);
    let output = child.wait_with_output().expect("our own child");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let told = (output.status.code(), &*stderr);
    assert_eq!(told, (Some(1), "error: the demo was stopped by SIGINT\n"));
    assert!(is_empty(&dir));
}

#[test]
fn it_takes_no_arguments_but_one() {
    assert_eq!(danube(&["demo", "--slow"]).code, 2);
}
