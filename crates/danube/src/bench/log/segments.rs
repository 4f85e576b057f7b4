//! Publishing while full journal files are turned into segments behind it.

use super::report::{Row, Target};
use super::{Scale, Scratch, close, doing};
use crate::failure::Failure;
use bytes::Bytes;
use danube_core::{Epoch, Incarnation, TopicId, WalSyncMode};
use danube_store::{Store, StoreOptions, TopicLog};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Messages of one append of the backlog, and the size of all messages in bytes. Large batches would
/// stay where they are, and be no work.
const BATCH: usize = 10;
const SIZE: usize = 1024;
/// Fewest publishes that a percentile is taken of.
const LEAST: usize = 500;
/// Most of them: a machine that never gets done is not waited for.
const MOST: usize = 2_000_000;

/// Measures both modes.
pub fn measure(scratch: &Scratch, scale: Scale) -> Result<Vec<Row>, Failure> {
    let modes = [
        (WalSyncMode::OsCacheFlush, "os_cache_flush, p99 while segments are written", "flush"),
        (WalSyncMode::FsyncBatch, "fsync_batch, p99 while segments are written", "fsync"),
    ];
    let mut rows = Vec::new();
    for (mode, name, dir) in modes {
        doing(name);
        let dir = scratch.sub(&format!("segments-{dir}"));
        fill(&dir, scale.stream_bytes)?;
        let (busy, idle) = publish(&dir, mode)?;
        let _ = std::fs::remove_dir_all(dir);
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let (engine, limit) = (us(busy), us(idle));
        let (limit_name, unit, target) =
            ("the same with nothing else to do", "us", Target::AtMost(2.0));
        rows.push(Row { name, limit_name, unit, engine, limit, target });
    }
    Ok(rows)
}

fn open(dir: &Path, start: u32, keep: usize) -> Result<Store, Failure> {
    let mut options = StoreOptions::new(dir, Incarnation(start));
    options.journal_files_keep = keep;
    Store::open(options, &mut |_| {}).map_err(|error| Failure::refused(error.to_string()))
}

/// Leaves `bytes` of messages in journal files.
fn fill(dir: &Path, bytes: usize) -> Result<(), Failure> {
    let store = open(dir, 1, usize::MAX)?;
    let log = store.topic(TopicId(1), Epoch(1));
    let record = Bytes::from(vec![b'd'; SIZE]);
    for _ in 0..bytes / (BATCH * SIZE) {
        append(&log, vec![record.clone(); BATCH], WalSyncMode::OsCacheFlush)?;
    }
    close(&store)
}

/// The 99th percentile of publishes one after the other, while segments are written and while none are:
/// then there is no journal file but the one that is written.
fn publish(dir: &Path, mode: WalSyncMode) -> Result<(Duration, Duration), Failure> {
    let store = open(dir, 2, 0)?;
    let log = store.topic(TopicId(2), Epoch(1));
    let mut busy = Vec::new();
    while busy.len() < LEAST || (store.stats().files > 1 && busy.len() < MOST) {
        busy.push(one(&log, mode)?);
    }
    let mut idle = Vec::new();
    while idle.len() < busy.len().min(20_000) {
        let took = one(&log, mode)?;
        // Also later: a file that is full by then is copied, too.
        if store.stats().files == 1 {
            idle.push(took);
        }
    }
    close(&store)?;
    Ok((p99(&mut busy), p99(&mut idle)))
}

fn one(log: &TopicLog, mode: WalSyncMode) -> Result<Duration, Failure> {
    let record = Bytes::from(vec![b'd'; SIZE]);
    let begun = Instant::now();
    append(log, vec![record], mode)?;
    Ok(begun.elapsed())
}

fn append(log: &TopicLog, records: Vec<Bytes>, mode: WalSyncMode) -> Result<(), Failure> {
    let (tell, answer) = mpsc::sync_channel(1);
    log.append(records, mode, move |outcome| {
        // The receiver is gone only when the run has failed already.
        let _ = tell.send(outcome.map(drop).map_err(|error| error.to_string()));
    });
    let answer = answer.recv().map_err(|_| Failure::refused("an append was never answered"))?;
    answer.map_err(Failure::refused)
}

fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).copied().unwrap_or_default()
}
