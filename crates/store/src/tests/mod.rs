//! Tests of the whole store: through its face, on real files, with crashes made by copying them
//! and with a disk that fails on demand.

mod beside;
mod crash;
mod damage;
mod direct;
mod failing_disk;
mod faults;
mod format;
mod history;
mod lone;
mod model;
mod next;
mod power;
mod repair;
mod retention;
mod sequence;
mod service;
mod spares;
mod taken;

use crate::read_batch::{ReadBatch, ReadLimit};
use crate::topic_log::{Appended, TopicLog};
use crate::{AppendError, ReadError, Store, StoreOptions};
use bytes::Bytes;
use danube_core::sequence::Opened;
use danube_core::subscription::progress::{ProgressRecord, Step};
use danube_core::{Epoch, Incarnation, Offset, ProducerId, SubscriptionId, TopicId, WalSyncMode};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

const ALL: ReadLimit = ReadLimit { records_max: usize::MAX, bytes_max: usize::MAX };
/// Long enough for any machine; reached only when an answer never comes.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(dir: &Path) -> StoreOptions {
    // Each start of a process has a number above all earlier ones.
    static STARTS: AtomicU32 = AtomicU32::new(100);
    let incarnation = Incarnation(STARTS.fetch_add(1, Ordering::Relaxed));
    StoreOptions {
        file_bytes_max: 64 << 10,
        inline_bytes_max: 1000,
        background: false,
        ..StoreOptions::new(dir, incarnation)
    }
}

fn open(dir: &Path) -> Store {
    Store::open(options(dir), &mut |_| {}).expect("opens")
}

fn topic(store: &Store, id: u32) -> TopicLog {
    store.topic(TopicId(id), Epoch(1))
}

fn wait<T>(answers: &Receiver<T>) -> T {
    answers.recv_timeout(PATIENCE).expect("every call answers")
}

/// Opens a producer and waits until it is: only then are its batches taken.
fn open_producer(log: &TopicLog, producer: ProducerId) -> Opened {
    let (tell, answers) = mpsc::sync_channel(1);
    log.open_producer(producer, move |outcome| tell.send(outcome).expect("somebody waits"));
    wait(&answers).expect("opens")
}

fn start_append(
    log: &TopicLog,
    records: Vec<Bytes>,
    sync: WalSyncMode,
) -> Receiver<Result<Appended, AppendError>> {
    let (tell, answers) = mpsc::sync_channel(1);
    log.append(records, sync, move |outcome| tell.send(outcome).expect("somebody waits"));
    answers
}

fn append(log: &TopicLog, text: &str, sync: WalSyncMode) -> Result<Appended, AppendError> {
    wait(&start_append(log, vec![Bytes::copy_from_slice(text.as_bytes())], sync))
}

fn put(log: &TopicLog, text: &str) -> Offset {
    append(log, text, WalSyncMode::OsCacheFlush).expect("appends").first
}

fn record(log: &TopicLog, subscription: u32, step: Step) -> Result<(), AppendError> {
    let (tell, answers) = mpsc::sync_channel(1);
    let records = vec![ProgressRecord { subscription: SubscriptionId(subscription), step }];
    log.record(records, WalSyncMode::OsCacheFlush, move |outcome| {
        tell.send(outcome).expect("somebody waits");
    });
    wait(&answers)
}

fn read(log: &TopicLog, from: u64, limit: ReadLimit) -> Result<ReadBatch, ReadError> {
    let (tell, answers) = mpsc::sync_channel(1);
    log.read(Offset(from), limit, move |outcome| tell.send(outcome).expect("somebody waits"));
    wait(&answers)
}

/// Everything in the topic, checked to have offsets without gap or repeat from `bounds().start`.
fn texts(log: &TopicLog) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next = log.bounds().start.0;
    loop {
        let batch = read(log, next, ALL).expect("reads");
        if batch.records.is_empty() {
            assert_eq!(next, log.bounds().next.0);
            return texts;
        }
        for (offset, record) in batch.records {
            assert_eq!(offset.0, next, "no gap, no repeat");
            next += 1;
            texts.push(String::from_utf8(record.to_vec()).expect("text"));
        }
        assert_eq!(batch.next.0, next);
    }
}

fn journal_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .expect("lists")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    files.sort();
    files
}
