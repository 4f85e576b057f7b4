//! Appends that wait for the disk: one at a time, many at a time, a thousand topics at a time.

use super::limit::BareSync;
use super::report::{Row, Target};
use super::{Scale, Scratch, close, doing, median, open};
use crate::failure::Failure;
use bytes::Bytes;
use danube_core::{Epoch, TopicId, WalSyncMode};
use danube_store::{Store, TopicLog};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

/// Appends in flight where there are many.
const IN_FLIGHT: usize = 256;
/// Topics of a round.
const TOPICS: u32 = 1_000;
/// Size of a message, in bytes.
const SIZE: usize = 1024;
/// Turns that the engine and the bare disk take.
const TURNS: u32 = 10;

/// Measures all of them.
pub fn measure(scratch: &Scratch, scale: Scale) -> Result<Vec<Row>, Failure> {
    let mut bare_file = BareSync::make(&scratch.sub("bare-sync"))?;
    let store = open(&scratch.sub("sync"), 1)?;
    let log = store.topic(TopicId(1), Epoch(1));

    doing("fsync_batch, one append in flight");
    let (mut bare, mut one, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
    append(&log)?;
    for _ in 0..TURNS {
        for _ in 0..scale.syncs / TURNS {
            bare.push(bare_file.one()?);
        }
        for _ in 0..scale.syncs / TURNS {
            one.push(append(&log)?);
        }
    }
    let alone = f64::from(scale.syncs) / one.iter().sum::<Duration>().as_secs_f64();

    doing("fsync_batch, 256 appends in flight");
    let many = throughput(&log, scale.syncs as usize * 50)?;

    doing("fsync_batch, a message to each of 1,000 topics per round");
    let topics: Vec<TopicLog> =
        (2..2 + TOPICS).map(|id| store.topic(TopicId(id), Epoch(1))).collect();
    round(&topics)?;
    let mut bare_beside = Vec::new();
    for _ in 0..scale.rounds {
        bare_beside.push(bare_file.one()?);
        rounds.push(round(&topics)?);
    }
    finish(store)?;

    let us = |times: &mut Vec<Duration>| median(times).as_secs_f64() * 1e6;
    Ok(vec![
        Row {
            name: "fsync_batch, one in flight, median",
            limit_name: "4 KiB append + fdatasync",
            unit: "us",
            engine: us(&mut one),
            limit: us(&mut bare),
            target: Target::AtMost(1.5),
        },
        Row {
            name: "fsync_batch, 256 in flight",
            limit_name: "one in flight",
            unit: "append/s",
            engine: many,
            limit: alone,
            target: Target::AtLeast(20.0),
        },
        Row {
            name: "fsync_batch, a round over 1,000 topics, median",
            limit_name: "4 KiB append + fdatasync",
            unit: "us",
            engine: us(&mut rounds),
            limit: us(&mut bare_beside),
            target: Target::AtMost(10.0),
        },
    ])
}

fn finish(store: Store) -> Result<(), Failure> {
    close(&store)
}

type Told = Result<(), String>;

fn send(log: &TopicLog, record: Bytes, tell: SyncSender<Told>) {
    log.append(vec![record], WalSyncMode::FsyncBatch, move |outcome| {
        // The receiver is gone only when the run has failed already.
        let _ = tell.send(outcome.map(drop).map_err(|error| error.to_string()));
    });
}

fn wait(answers: &Receiver<Told>) -> Result<(), Failure> {
    answers
        .recv()
        .map_err(|_| Failure::refused("an append was never answered"))?
        .map_err(Failure::refused)
}

fn append(log: &TopicLog) -> Result<Duration, Failure> {
    let (tell, answers) = mpsc::sync_channel(1);
    let begun = Instant::now();
    send(log, Bytes::from(vec![b'd'; SIZE]), tell);
    wait(&answers)?;
    Ok(begun.elapsed())
}

/// Appends per second.
fn throughput(log: &TopicLog, count: usize) -> Result<f64, Failure> {
    let (tell, answers) = mpsc::sync_channel(IN_FLIGHT);
    let record = Bytes::from(vec![b'd'; SIZE]);
    let begun = Instant::now();
    for at in 0..count + IN_FLIGHT {
        if at >= IN_FLIGHT {
            wait(&answers)?;
        }
        if at < count {
            send(log, record.clone(), tell.clone());
        }
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// A message to each of `topics`. Whoever waits is woken once, when the last one is answered: to be woken
/// for each would be measured with the log.
fn round(topics: &[TopicLog]) -> Result<Duration, Failure> {
    let (tell, failures) = mpsc::sync_channel::<String>(topics.len());
    let stored = Arc::new(AtomicUsize::new(0));
    let record = Bytes::from(vec![b'd'; SIZE]);
    let begun = Instant::now();
    for log in topics {
        let (tell, stored) = (tell.clone(), Arc::clone(&stored));
        log.append(vec![record.clone()], WalSyncMode::FsyncBatch, move |outcome| match outcome {
            Ok(_) => drop(stored.fetch_add(1, Relaxed)),
            // The receiver is gone only when the run has failed already.
            Err(error) => drop(tell.send(error.to_string())),
        });
    }
    drop(tell);
    if let Ok(failure) = failures.recv() {
        return Err(Failure::refused(failure));
    }
    let took = begun.elapsed();
    if stored.load(Relaxed) == topics.len() {
        Ok(took)
    } else {
        Err(Failure::refused("an append was never answered"))
    }
}
