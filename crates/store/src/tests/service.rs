//! The store in good health.

use super::failing_disk::FailingDisk;
use super::*;
use crate::OpenError;
use danube_core::subscription::progress::Progress;
use danube_core::{Fault, FaultKind};
use std::sync::Arc;

#[test]
fn what_was_appended_is_read_in_order_from_memory_and_after_reopening_from_disk() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    assert_eq!(journal_files(dir.path()).len(), 0, "no file before there is something to keep");
    let (one, two) = (topic(&store, 1), topic(&store, 2));
    for sync in [WalSyncMode::Async, WalSyncMode::OsCacheFlush, WalSyncMode::FsyncBatch] {
        for at in 0..5 {
            append(&one, &format!("one {sync:?} {at}"), sync).expect("appends");
            append(&two, &format!("two {sync:?} {at}"), sync).expect("appends");
        }
    }
    let expected = texts(&one);
    assert_eq!(expected.len(), 15);
    assert_eq!(expected[14], "one FsyncBatch 4");
    assert_eq!(store.stats().reads_disk, 0);
    store.close().expect("closes");
    assert_eq!(append(&one, "late", WalSyncMode::Async), Err(AppendError::Closed));

    let store = open(dir.path());
    let one = topic(&store, 1);
    assert_eq!(texts(&one), expected);
    assert!(store.stats().reads_disk > 0);
    assert_eq!(put(&one, "more"), Offset(15));
    assert_eq!(texts(&one).len(), 16, "from disk into memory without a seam");
}

#[test]
fn large_and_empty_records_survive_and_limits_hold() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let log = topic(&store, 1);
    let large = Bytes::from(vec![7; 300 << 10]);
    let records = vec![Bytes::new(), large.clone(), Bytes::from_static(b"x")];
    let appended = wait(&start_append(&log, records.clone(), WalSyncMode::FsyncBatch));
    assert_eq!(appended, Ok(Appended { first: Offset(0), count: 3 }));
    let (tell, answers) = mpsc::sync_channel(1);
    log.append(vec![], WalSyncMode::Async, move |outcome| tell.send(outcome).expect("waits"));
    assert_eq!(wait(&answers), Err(AppendError::Empty));
    let huge = Bytes::from(vec![0; crate::FRAME_PAYLOAD_MAX]);
    let refused = wait(&start_append(&log, vec![huge], WalSyncMode::Async));
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    store.close().expect("closes");

    let store = open(dir.path());
    let log = topic(&store, 1);
    let all = read(&log, 0, ALL).expect("reads");
    assert_eq!(all.records.iter().map(|(_, r)| r.clone()).collect::<Vec<_>>(), records);
    let one = read(&log, 1, ReadLimit { records_max: 5, bytes_max: 10 }).expect("reads");
    assert_eq!((one.records.len(), one.next), (1, Offset(2)), "the first comes whatever its size");
    let beyond = read(&log, 99, ALL).expect("reads");
    assert_eq!((beyond.records.len(), beyond.next), (0, Offset(99)));
}

#[test]
fn progress_is_kept_per_subscription() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let log = topic(&store, 1);
    for at in 0..9 {
        put(&log, &at.to_string());
    }
    let finished = |first, end| Step::Finished { first: Offset(first), end: Offset(end) };
    record(&log, 1, Step::Moved { cursor: Offset(5) }).expect("records");
    record(&log, 1, finished(5, 6)).expect("records");
    record(&log, 2, finished(4, 5)).expect("records");
    let failed =
        Step::Failed { offset: Offset(7), attempt: 2, blocked: true, reason: "no".to_owned() };
    record(&log, 1, failed).expect("records");
    let (before, unknown) = (log.subscriptions(), log.subscription(SubscriptionId(3), Offset(8)));
    assert_eq!(unknown, Progress::at(Offset(8)));
    store.close().expect("closes");

    let store = open(dir.path());
    let log = topic(&store, 1);
    assert_eq!(log.subscriptions(), before);
    let one = log.subscription(SubscriptionId(1), Offset(0));
    assert_eq!(one.cursor(), Offset(6), "a cursor that was moved does not care where it began");
    assert_eq!(one.attempts(Offset(7)).map(|a| (a.count, a.blocked)), Some((2, true)));
    let two = log.subscription(SubscriptionId(2), Offset(3));
    assert_eq!(two.cursor(), Offset(3));
    assert!(two.is_finished(Offset(4)));
}

#[test]
fn a_second_open_is_refused_by_name_and_works_after_the_first_is_gone() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let second = Store::open(options(dir.path()), &mut |_| {}).map(|_| ());
    let error = second.expect_err("is locked");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&*dir.path().to_string_lossy()), "{error}");
    drop(store);
    open(dir.path());
}

#[test]
fn a_thousand_topics_share_syncs() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = FailingDisk::default();
    let opened = Store::open_on(Arc::new(disk.clone()), options(dir.path()), &mut |_| {});
    let store = opened.expect("opens");
    disk.set(|condition| condition.stall_sync = true);
    let send = |id: u32| {
        let record = vec![Bytes::from(format!("message of {id}"))];
        start_append(&topic(&store, id), record, WalSyncMode::FsyncBatch)
    };
    let first = send(0);
    disk.wait_for_stall();
    let others: Vec<_> = (1..1000).map(send).collect();
    disk.set(|condition| condition.stall_sync = false);
    wait(&first).expect("appends");
    for answer in &others {
        assert_eq!(wait(answer).expect("appends").first, Offset(0));
    }
    // One for the new file, one for the first, and a few for what gathered meanwhile.
    assert!(disk.syncs() < 20, "{} syncs for 1000 appends", disk.syncs());
    assert_eq!(texts(&topic(&store, 999)), ["message of 999"]);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = FailingDisk::default();
    let options = StoreOptions { queue_count_max: 2, ..options(dir.path()) };
    let store = Store::open_on(Arc::new(disk.clone()), options, &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    disk.set(|condition| condition.stall_sync = true);
    let send = || start_append(&log, vec![Bytes::from_static(b"x")], WalSyncMode::FsyncBatch);
    let first = send();
    disk.wait_for_stall();
    let (second, third, fourth) = (send(), send(), send());
    assert_eq!(fourth.try_recv(), Ok(Err(AppendError::Full)), "before the call returns");
    assert_eq!(Fault::from(AppendError::Full).kind, FaultKind::Exhausted);
    disk.set(|condition| condition.stall_sync = false);
    let offsets: Vec<_> =
        [&first, &second, &third].map(|answer| wait(answer).expect("appends").first.0).into();
    assert_eq!(offsets, [0, 1, 2]);
    assert_eq!(store.stats().refused, 1);
}

#[test]
fn readers_see_nothing_before_it_is_acknowledged() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = FailingDisk::default();
    let opened = Store::open_on(Arc::new(disk.clone()), options(dir.path()), &mut |_| {});
    let store = opened.expect("opens");
    let log = topic(&store, 1);
    put(&log, "first");
    disk.set(|condition| condition.stall_sync = true);
    let second = start_append(&log, vec![Bytes::from_static(b"second")], WalSyncMode::FsyncBatch);
    disk.wait_for_stall();
    assert_eq!(log.bounds().next, Offset(1));
    assert_eq!(read(&log, 0, ALL).expect("reads").records.len(), 1);
    disk.set(|condition| condition.stall_sync = false);
    wait(&second).expect("appends");
    assert_eq!(texts(&log), ["first", "second"]);
}

#[test]
fn files_roll_and_go_when_what_is_in_them_is_settled() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let (short, long) = (topic(&store, 1), topic(&store, 2));
    let text = "x".repeat(10 << 10);
    put(&long, "keeps the first file");
    for _ in 0..40 {
        put(&short, &text);
    }
    let files = journal_files(dir.path());
    assert!(files.len() > 5, "{files:?}");
    store.forget_topic(TopicId(1));
    assert_eq!(append(&short, "x", WalSyncMode::Async), Err(AppendError::Forgotten(TopicId(1))));
    assert_eq!(read(&short, 0, ALL), Err(ReadError::Forgotten(TopicId(1))));
    put(&long, "after");
    // The first pass makes the newest full file durable, so that the second can do without it.
    store.tend().expect("tends");
    store.tend().expect("tends");
    assert_eq!(store.stats().segments, 1, "of the one that lives");
    store.close().expect("closes");
    let left = journal_files(dir.path());
    assert_eq!(left.len(), 3, "two full ones and the active one: {left:?}");

    let store = open(dir.path());
    assert_eq!(texts(&topic(&store, 2)), ["keeps the first file", "after"]);
    assert_eq!(topic(&store, 1).bounds().next, Offset(0));
    store.retain(&|_| false);
    store.tend().expect("tends");
    assert_eq!(store.stats().segments, 0);
    store.close().expect("closes");
    assert_eq!(journal_files(dir.path()).len(), 2, "full ones stay for a while");
}

#[test]
fn an_older_epoch_is_refused_and_remembered_over_a_restart() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let old = store.topic(TopicId(1), Epoch(1));
    put(&store.topic(TopicId(1), Epoch(4)), "x");
    let fenced = AppendError::Fenced { topic: TopicId(1), epoch: Epoch(1), current: Epoch(4) };
    assert_eq!(append(&old, "y", WalSyncMode::OsCacheFlush), Err(fenced.clone()));
    drop(store);
    let store = open(dir.path());
    let old = store.topic(TopicId(1), Epoch(1));
    assert_eq!(append(&old, "y", WalSyncMode::OsCacheFlush), Err(fenced));
}

#[test]
fn a_callback_that_panics_does_not_stop_the_journal() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let log = topic(&store, 1);
    log.append(vec![Bytes::from_static(b"a")], WalSyncMode::OsCacheFlush, |_| panic!("on purpose"));
    assert_eq!(put(&log, "b"), Offset(1));
}
