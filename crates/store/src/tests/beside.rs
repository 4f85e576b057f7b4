//! What is written in one frame with messages: progress of other topics, and who sent them. Both
//! are there or neither is, whatever is left of the file.

use super::failing_disk::{Condition, FailingDisk};
use super::*;
use crate::RecordBatchBuilder;
use danube_core::sequence::Origin;
use danube_core::{ProducerId, Retention};
use std::sync::Arc;

const PRODUCER: ProducerId = ProducerId(9);

fn append_with(
    log: &TopicLog,
    text: &str,
    also: &[&TopicLog],
    sync: WalSyncMode,
) -> Result<Appended, AppendError> {
    let (tell, answers) = mpsc::sync_channel(1);
    let step = Step::Finished { first: Offset(0), end: Offset(1) };
    let step = ProgressRecord { subscription: SubscriptionId(1), step };
    let also = also.iter().map(|log| ((*log).clone(), vec![step.clone()])).collect();
    let records = vec![Bytes::copy_from_slice(text.as_bytes())];
    log.append_with(records, also, sync, move |outcome| {
        tell.send(outcome).expect("somebody waits");
    });
    wait(&answers)
}

fn append_numbered(log: &TopicLog, texts: &[&str], first_sequence: u64) -> Appended {
    let (tell, answers) = mpsc::sync_channel(1);
    let origin = Origin { producer: PRODUCER, epoch: 1, after: 0, first_sequence };
    let mut batch = RecordBatchBuilder::numbered(origin, 0, 0);
    texts.iter().for_each(|text| batch.push(|out| out.extend_from_slice(text.as_bytes())));
    let batch = batch.build().expect("has a record");
    log.append_batch(batch, WalSyncMode::OsCacheFlush, move |outcome| {
        tell.send(outcome).expect("somebody waits");
    });
    wait(&answers).expect("appends")
}

fn has_finished(log: &TopicLog) -> bool {
    log.subscription(SubscriptionId(1), Offset(0)).cursor() == Offset(1)
}

#[test]
fn messages_and_progress_of_other_topics_outlive_the_process_together() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let (letters, one, two) = (topic(&store, 1), topic(&store, 2), topic(&store, 3));
    put(&one, "one");
    let done = append_with(&letters, "letter", &[&one, &two], WalSyncMode::FsyncBatch);
    assert_eq!(done.expect("appends"), Appended { first: Offset(0), count: 1 });
    assert_eq!(append_with(&letters, "alone", &[], WalSyncMode::Async).expect("").first, Offset(1));
    let check = |store: &Store| {
        assert_eq!(texts(&topic(store, 1)), ["letter", "alone"]);
        assert!(has_finished(&topic(store, 2)) && has_finished(&topic(store, 3)));
    };
    store.settle();
    check(&store);
    store.close().expect("closes");
    check(&open(dir.path()));
}

#[test]
fn whatever_refuses_one_of_them_refuses_all() {
    let dir = tempfile::tempdir().expect("directory");
    let elsewhere = tempfile::tempdir().expect("directory");
    let (store, other) = (open(dir.path()), open(elsewhere.path()));
    let letters = topic(&store, 1);
    let gone = topic(&store, 2);
    let fenced = topic(&store, 3);
    let whole = topic(&store, 4);
    store.forget_topic(TopicId(2));
    store.topic(TopicId(3), Epoch(2));
    let foreign = topic(&other, 5);
    for bad in [&gone, &fenced, &foreign] {
        let error = append_with(&letters, "x", &[&whole, bad], WalSyncMode::OsCacheFlush);
        error.expect_err("is refused");
        assert_eq!(letters.bounds().next, Offset(0));
        assert!(!has_finished(&whole));
    }
}

#[test]
fn of_a_torn_frame_neither_is_left() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    put(&topic(&store, 2), "one");
    let begin = 64 + store.stats().bytes as usize;
    let (letters, other) = (topic(&store, 1), topic(&store, 2));
    append_with(&letters, "letter", &[&other], WalSyncMode::FsyncBatch).expect("appends");
    let end = 64 + store.stats().bytes as usize;
    let file = journal_files(dir.path()).remove(0);
    let bytes = fs::read(&file).expect("reads");
    for len in begin..=end {
        let dir = tempfile::tempdir().expect("directory");
        fs::write(dir.path().join(file.file_name().expect("name")), &bytes[..len]).expect("writes");
        let store = open(dir.path());
        let there = texts(&topic(&store, 1)) == ["letter"];
        assert_eq!((there, has_finished(&topic(&store, 2))), (len == end, len == end), "{len}");
        assert_eq!(store.stats().topics_damaged, 0, "{len}");
    }
}

#[test]
fn progress_in_another_topics_damaged_frame_is_told_as_lost() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let (letters, other) = (topic(&store, 1), topic(&store, 2));
    let begin = 64 + store.stats().bytes as usize;
    append_with(&letters, "letter", &[&other], WalSyncMode::OsCacheFlush).expect("appends");
    put(&other, "behind");
    store.close().expect("closes");
    let file = journal_files(dir.path()).remove(0);
    let bytes = fs::read(&file).expect("reads");
    for at in [9, 70] {
        let mut bytes = bytes.clone();
        bytes[begin + at] ^= 1;
        let dir = tempfile::tempdir().expect("directory");
        fs::write(dir.path().join(file.file_name().expect("name")), &bytes).expect("writes");
        let store = open(dir.path());
        assert!(topic(&store, 1).damage().is_some(), "byte {at}");
        assert_eq!(texts(&topic(&store, 2)), ["behind"]);
        let place = store.lost_progress().expect("topic 2 has lost an ack");
        assert!(place.contains(&format!("byte {begin} of")), "{place}");
    }
}

#[test]
fn how_far_a_producer_has_come_outlives_journal_files_and_failed_syncs() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = FailingDisk::default();
    let store =
        Store::open_on(Arc::new(disk.clone()), options(dir.path()), &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    open_producer(&log, PRODUCER);
    append_numbered(&log, &["a", "b"], 10);
    // Written again elsewhere.
    disk.set(|condition| condition.fail_sync = true);
    append(&log, "refused", WalSyncMode::FsyncBatch).expect_err("the disk refuses");
    disk.set(|condition| *condition = Condition::default());
    assert_eq!(log.sequences().last(PRODUCER), Some((11, Offset(1))));
    append_numbered(&log, &["c"], 12);
    let full = "x".repeat(40 << 10);
    for _ in 0..8 {
        put(&topic(&store, 2), &full);
    }
    log.set_retention(Retention::FOREVER);
    store.tend().expect("archives");
    drop(store);
    let store = open(dir.path());
    let log = topic(&store, 1);
    assert_eq!(texts(&log), ["a", "b", "c"], "in a segment by now");
    assert_eq!(log.sequences().last(PRODUCER), Some((12, Offset(2))));
}
