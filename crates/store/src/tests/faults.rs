//! The disk refuses: nothing acknowledged is lost, nothing refused appears, and publishing goes
//! on by itself once the cause is gone.

use super::failing_disk::{Condition, FailingDisk};
use super::*;
use std::sync::Arc;

fn open_failing(dir: &Path) -> (FailingDisk, Store) {
    let disk = FailingDisk::default();
    let opened = Store::open_on(Arc::new(disk.clone()), options(dir), &mut |_| {});
    (disk, opened.expect("opens"))
}

/// Two topics append before, during and after `fault`; reopening must agree with the answers.
fn survives(fault: fn(&mut Condition), mode: WalSyncMode, refused: bool) {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_failing(dir.path());
    let (one, two) = (topic(&store, 1), topic(&store, 2));
    put(&one, "before");
    put(&two, "before");
    disk.set(fault);
    for text in ["during", "during again"] {
        let outcome = append(&one, text, mode);
        if refused {
            let error = outcome.expect_err("the disk refuses");
            let said = error.to_string();
            assert!(said.contains("journal-") && said.contains("os error 28"), "{said}");
            assert_eq!(error.kind(), danube_core::FaultKind::Retry);
        } else {
            outcome.expect("goes on all the same");
        }
    }
    disk.set(|condition| *condition = Condition::default());
    let expected = if refused { 1 } else { 3 };
    let after = append(&one, "after", mode).expect("goes on without a restart");
    assert_eq!(after.first, Offset(expected), "refused appends consume no offset");
    put(&two, "after");
    let (ones, twos) = (texts(&one), texts(&two));
    assert_eq!(twos, ["before", "after"]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(texts(&topic(&store, 1)), ones);
    assert_eq!(texts(&topic(&store, 2)), twos);
    assert_eq!(store.stats().topics_damaged, 0);
}

#[test]
fn a_failed_write_is_taken_back() {
    let fault = |condition: &mut Condition| condition.fail_write = true;
    survives(fault, WalSyncMode::OsCacheFlush, true);
    survives(fault, WalSyncMode::FsyncBatch, true);
}

#[test]
fn a_failed_write_that_cannot_be_cut_goes_on_in_a_new_file() {
    survives(
        |condition| (condition.fail_write, condition.fail_set_len) = (true, true),
        WalSyncMode::OsCacheFlush,
        true,
    );
}

#[test]
fn a_failed_sync_is_taken_back_even_where_it_cannot_be_cut() {
    survives(|condition| condition.fail_sync = true, WalSyncMode::FsyncBatch, true);
    survives(
        |condition| (condition.fail_sync, condition.fail_set_len) = (true, true),
        WalSyncMode::FsyncBatch,
        true,
    );
}

#[test]
fn a_new_file_that_cannot_be_made_is_tried_again() {
    survives(
        |condition| (condition.fail_sync, condition.fail_create) = (true, true),
        WalSyncMode::FsyncBatch,
        true,
    );
}

#[test]
fn it_works_where_nothing_can_be_preallocated() {
    survives(|condition| condition.fail_preallocate = true, WalSyncMode::FsyncBatch, false);
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_failing(dir.path());
    disk.set(|condition| condition.fail_preallocate = true);
    put(&topic(&store, 1), "x");
    let len = fs::metadata(&journal_files(dir.path())[0]).expect("file").len();
    assert!(len < 200, "{len} bytes");
}

#[test]
fn a_failed_sync_takes_back_its_own_part_of_the_group_only() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_failing(dir.path());
    let (flushed, synced) = (topic(&store, 1), topic(&store, 2));
    put(&topic(&store, 3), "makes the file");
    // A sync that stalls lets one group gather behind it.
    disk.set(|condition| condition.stall_sync = true);
    let record = |text: &'static str| vec![Bytes::from_static(text.as_bytes())];
    let stalled = start_append(&topic(&store, 3), record("x"), WalSyncMode::FsyncBatch);
    disk.wait_for_stall();
    let refused = start_append(&synced, record("refused"), WalSyncMode::FsyncBatch);
    let kept = start_append(&flushed, record("kept"), WalSyncMode::OsCacheFlush);
    disk.set(|condition| {
        condition.stall_sync = false;
        condition.fail_set_len = true;
        condition.fail_syncs_from = Some(condition.syncs + 1);
    });
    wait(&stalled).expect("its own sync succeeds");
    wait(&refused).expect_err("the next one fails");
    wait(&kept).expect("needs no sync");
    assert_eq!(texts(&flushed), ["kept"]);
    disk.set(|condition| *condition = Condition::default());
    append(&synced, "after", WalSyncMode::FsyncBatch).expect("goes on");
    assert_eq!(texts(&synced), ["after"]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(texts(&topic(&store, 1)), ["kept"]);
    assert_eq!(texts(&topic(&store, 2)), ["after"]);
}

#[test]
fn offsets_promised_by_async_never_mean_another_message() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_failing(dir.path());
    let log = topic(&store, 1);
    put(&log, "zero");
    disk.set(|condition| condition.fail_write = true);
    let lost = append(&log, "lost", WalSyncMode::Async).expect("is promised nothing");
    assert_eq!(lost.first, Offset(1));
    append(&log, "refused", WalSyncMode::OsCacheFlush).expect_err("the disk refuses");
    disk.set(|condition| condition.fail_write = false);
    assert_eq!(put(&log, "two"), Offset(2));
    let offsets = |log: &TopicLog| -> Vec<u64> {
        let all = read(log, 0, ALL).expect("reads").records;
        all.iter().map(|(offset, _)| offset.0).collect()
    };
    assert_eq!(offsets(&log), [0, 2]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(offsets(&topic(&store, 1)), [0, 2], "a hole that is no damage");
    assert_eq!(read(&topic(&store, 1), 1, ALL).expect("reads").records[0].0, Offset(2));
}

#[test]
fn what_failed_stays_void_when_the_topic_that_came_after_it_is_deleted() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_failing(dir.path());
    let (kept, deleted) = (topic(&store, 1), topic(&store, 2));
    put(&kept, "kept");
    disk.set(|condition| (condition.fail_sync, condition.fail_set_len) = (true, true));
    append(&kept, "refused", WalSyncMode::FsyncBatch).expect_err("the disk refuses");
    disk.set(|condition| *condition = Condition::default());
    let text = "x".repeat(40 << 10);
    for _ in 0..5 {
        put(&deleted, &text);
    }
    store.forget_topic(TopicId(2));
    put(&kept, "after");
    assert_eq!(texts(&kept), ["kept", "after"]);
    drop(store);
    for _ in 0..2 {
        let store = open(dir.path());
        store.retain(&|id| id == TopicId(1));
        assert_eq!(texts(&topic(&store, 1)), ["kept", "after"]);
    }
}
