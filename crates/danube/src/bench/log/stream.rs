//! A backlog written as fast as it goes, and read back from the disk.

use super::report::{Row, Target};
use super::{Scale, Scratch, close, doing, limit, median, open};
use crate::failure::Failure;
use bytes::Bytes;
use danube_core::{Epoch, Offset, TopicId, WalSyncMode};
use danube_store::{ReadBatch, ReadLimit, Store, TopicLog};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Messages of a batch, and the size of one in bytes.
const BATCH: usize = 100;
const SIZE: usize = 1024;
/// Batches in flight.
const IN_FLIGHT: usize = 64;
/// Turns that the engine and the bare disk take.
const TURNS: u32 = 9;
/// What one read asks for.
const READ: ReadLimit = ReadLimit { records_max: 4096, bytes_max: 1 << 20 };

/// Measures both ways.
pub fn measure(scratch: &Scratch, scale: Scale) -> Result<Vec<Row>, Failure> {
    let chunk = vec![b'd'; BATCH * SIZE];
    let batches = scale.stream_bytes / chunk.len();
    let bytes = batches * chunk.len();
    doing("os_cache_flush, batches of 100 messages of 1 KiB");
    let (mut engine, mut bare) = (Vec::new(), Vec::new());
    let kept = scratch.sub("stream");
    for turn in 0..TURNS {
        let dir = scratch.sub(&format!("bare-stream-{turn}"));
        bare.push(limit::write_with_checksum(&dir, &chunk, bytes)?);
        let _ = std::fs::remove_dir_all(dir);
        let dir = scratch.sub(&format!("stream-{turn}"));
        engine.push(write(&dir, batches)?);
        if turn == 0 {
            std::fs::rename(dir, &kept).map_err(super::io("the journal"))?;
        } else {
            let _ = std::fs::remove_dir_all(dir);
        }
    }

    doing("a cold sequential read of a backlog");
    let (mut reads, mut cats) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let files = limit::forget(&kept)?;
        cats.push(limit::cat(&files)?);
        reads.push(read_cold(&kept, turn + 2, batches * BATCH)?);
    }
    let rate = |times: &mut Vec<Duration>| bytes as f64 / 1e6 / median(times).as_secs_f64();
    Ok(vec![
        Row {
            name: "os_cache_flush, batches of 100 x 1 KiB",
            limit_name: "sequential write with checksum",
            unit: "MB/s",
            engine: rate(&mut engine),
            limit: rate(&mut bare),
            target: Target::AtLeast(0.7),
        },
        Row {
            name: "cold sequential read",
            limit_name: "cat of the same files",
            unit: "MB/s",
            engine: rate(&mut reads),
            limit: rate(&mut cats),
            target: Target::AtLeast(1.0),
        },
    ])
}

fn topic(store: &Store) -> TopicLog {
    store.topic(TopicId(1), Epoch(1))
}

fn write(dir: &Path, batches: usize) -> Result<Duration, Failure> {
    let store = open(dir, 1)?;
    let log = topic(&store);
    let record = Bytes::from(vec![b'd'; SIZE]);
    let (tell, answers) = mpsc::sync_channel(IN_FLIGHT);
    let begun = Instant::now();
    for at in 0..batches + IN_FLIGHT {
        if at >= IN_FLIGHT.min(batches) && at - IN_FLIGHT.min(batches) < batches {
            let answer: Result<(), String> =
                answers.recv().map_err(|_| Failure::refused("an append was never answered"))?;
            answer.map_err(Failure::refused)?;
        }
        if at < batches {
            let tell = tell.clone();
            let records = vec![record.clone(); BATCH];
            log.append(records, WalSyncMode::OsCacheFlush, move |outcome| {
                // The receiver is gone only when the run has failed already.
                let _ = tell.send(outcome.map(drop).map_err(|error| error.to_string()));
            });
        }
    }
    let took = begun.elapsed();
    close(&store)?;
    Ok(took)
}

fn read_cold(dir: &Path, start: u32, messages: usize) -> Result<Duration, Failure> {
    let store = open(dir, start)?;
    let log = topic(&store);
    // Recovery has read the files, so the kernel has them again.
    limit::forget(dir)?;
    let (mut next, mut seen) = (Offset(0), 0);
    let begun = Instant::now();
    while seen < messages {
        let batch = read(&log, next)?;
        if batch.records.is_empty() {
            return Err(Failure::refused(format!("{seen} of {messages} messages are in the log")));
        }
        seen += batch.records.len();
        next = batch.next;
    }
    let took = begun.elapsed();
    close(&store)?;
    Ok(took)
}

fn read(log: &TopicLog, from: Offset) -> Result<ReadBatch, Failure> {
    let (tell, answer) = mpsc::sync_channel(1);
    log.read(from, READ, move |outcome| {
        // The receiver is gone only when the run has failed already.
        let _ = tell.send(outcome);
    });
    let outcome = answer.recv().map_err(|_| Failure::refused("a read was never answered"))?;
    outcome.map_err(|error| Failure::refused(error.to_string()))
}
