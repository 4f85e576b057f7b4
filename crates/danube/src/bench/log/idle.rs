//! Many topics that nobody uses: what they cost in memory, and how long a start takes.
//!
//! The start is measured in a process of its own, so that nothing else is in its memory.

use super::report::{Row, Target};
use super::{Scale, Scratch, close, doing, open};
use crate::failure::Failure;
use crate::output;
use bytes::Bytes;
use danube_core::subscription::progress::{ProgressRecord, Step};
use danube_core::{Epoch, Offset, SubscriptionId, TopicId, WalSyncMode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

/// The process that starts on idle topics
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Its journal
    dir: PathBuf,
    /// How many topics it has
    topics: u32,
}

/// Messages of each topic.
const MESSAGES: u64 = 3;

/// Measures memory and time.
pub fn measure(scratch: &Scratch, scale: Scale) -> Result<Vec<Row>, Failure> {
    let topics = scale.idle_topics;
    doing("idle topics");
    let dir = scratch.sub("idle");
    fill(&dir, topics)?;
    let seen = start(&dir, topics)?;
    let figure = |key: &str| {
        seen[key].as_f64().ok_or_else(|| Failure::refused(format!("no `{key}` was measured")))
    };
    let bytes = (figure("after_kib")? - figure("before_kib")?) * 1024.0;
    let share = f64::from(topics) / 20_000.0;
    Ok(vec![
        Row {
            name: "memory per idle topic",
            limit_name: "the budget",
            unit: "KiB",
            engine: bytes / 1024.0 / f64::from(topics),
            limit: 12.0,
            target: Target::AtMost(1.0),
        },
        Row {
            name: "memory of all idle topics",
            limit_name: "the budget for as many",
            unit: "MiB",
            engine: figure("after_kib")? / 1024.0,
            limit: 400.0 * share,
            target: Target::AtMost(1.0),
        },
        Row {
            name: "recovery of all idle topics",
            limit_name: "the budget for as many",
            unit: "ms",
            engine: figure("recovery_ms")?,
            limit: 5_000.0 * share,
            target: Target::AtMost(1.0),
        },
    ])
}

/// Writes a few messages to each topic, and how far a subscription has come.
fn fill(dir: &Path, topics: u32) -> Result<(), Failure> {
    let store = open(dir, 1)?;
    let record = Bytes::from(vec![b'd'; 256]);
    for id in 1..=topics {
        let log = store.topic(TopicId(id), Epoch(1));
        let (tell, answers) = mpsc::sync_channel(2);
        let told = tell.clone();
        let records = vec![record.clone(); MESSAGES as usize];
        log.append(records, WalSyncMode::OsCacheFlush, move |outcome| {
            let _ = told.send(outcome.map(drop).map_err(|error| error.to_string()));
        });
        let step = Step::Finished { first: Offset(0), end: Offset(1) };
        let records = vec![ProgressRecord { subscription: SubscriptionId(1), step }];
        log.record(records, WalSyncMode::OsCacheFlush, move |outcome| {
            let _ = tell.send(outcome.map_err(|error| error.to_string()));
        });
        for _ in 0..2 {
            let answer: Result<(), String> =
                answers.recv().map_err(|_| Failure::refused("an append was never answered"))?;
            answer.map_err(Failure::refused)?;
        }
    }
    close(&store)
}

fn start(dir: &Path, topics: u32) -> Result<Value, Failure> {
    let program = std::env::current_exe().map_err(super::io("this program"))?;
    let output = Command::new(program)
        .args(["bench", "log-idle"])
        .arg(dir)
        .arg(topics.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(super::io("the process that starts on idle topics"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        Failure::refused(format!("the process that starts on idle topics said nothing: {error}"))
    })
}

/// Starts on the topics and prints what that took.
///
/// # Errors
/// When the log does not open.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let before = resident_kib();
    let begun = Instant::now();
    let store = open(&arguments.dir, 2)?;
    let recovery = begun.elapsed();
    let logs: Vec<_> =
        (1..=arguments.topics).map(|id| store.topic(TopicId(id), Epoch(1))).collect();
    let whole = logs.iter().filter(|log| log.bounds().next == Offset(MESSAGES)).count();
    if whole != logs.len() {
        return Err(Failure::refused(format!("{whole} of {} topics are whole", logs.len())));
    }
    output::json(&json!({
        "before_kib": before,
        "after_kib": resident_kib(),
        "recovery_ms": recovery.as_secs_f64() * 1e3,
    }))?;
    close(&store)
}

/// Memory of this process, from `/proc`; 0 where there is none.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
