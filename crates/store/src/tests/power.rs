//! Power losses: pages of what was not synced are gone while later ones are there.

use super::failing_disk::{Condition, FailingDisk};
use super::history::copy_dir;
use super::*;
use crate::frame::FRAME_HEADER_LEN;
use crate::topic::PROMISED_MAX;
use std::sync::Arc;

/// A disk that cannot tell whether the power was lost.
fn open_unsure(dir: &Path) -> (FailingDisk, Store) {
    let disk = FailingDisk::default();
    let opened = Store::open_on(Arc::new(disk.clone()), options(dir), &mut |_| {});
    (disk, opened.expect("opens"))
}

/// Where each of the frames that `append` makes begins in the only journal file.
fn begins(store: &Store, append: impl FnOnce()) -> usize {
    let begin = 64 + store.stats().bytes as usize;
    append();
    begin
}

/// What the power loss leaves: a copy of `dir` with `gone` as zeros in its last journal file.
fn lose(dir: &Path, gone: std::ops::Range<usize>) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("directory");
    copy_dir(dir, copy.path());
    let last = journal_files(copy.path()).pop().expect("a file");
    let mut bytes = fs::read(&last).expect("reads");
    bytes[gone].fill(0);
    fs::write(last, bytes).expect("writes");
    copy
}

#[test]
fn what_was_not_synced_may_go_and_stops_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let (_disk, store) = open_unsure(dir.path());
    let (flushed, synced) = (topic(&store, 1), topic(&store, 2));
    put(&flushed, "safe, as a sync follows");
    append(&synced, "promised", WalSyncMode::FsyncBatch).expect("appends");
    let mut at = Vec::new();
    for text in ["a", "b", "c"] {
        at.push(begins(&store, || assert!(put(&flushed, text).0 > 0)));
    }
    let end = 64 + store.stats().bytes as usize;
    // Any of the three gone, in part or whole, while the others are there.
    for (hit, from) in at.iter().enumerate() {
        for gone in [*from..from + 10, from + 10..from + FRAME_HEADER_LEN + 5, *from..end] {
            let copy = lose(dir.path(), gone.clone());
            for _ in 0..2 {
                let (_disk, store) = open_unsure(copy.path());
                assert_eq!(store.stats().topics_damaged, 0, "{gone:?}");
                assert_eq!(texts(&topic(&store, 1)).len(), 1 + hit, "{gone:?}");
                assert_eq!(texts(&topic(&store, 2)), ["promised"]);
            }
            let (_disk, store) = open_unsure(copy.path());
            let new = put(&topic(&store, 1), "new");
            assert!(new.0 >= 4, "above every offset promised: {new}");
            let appended = append(&topic(&store, 2), "new", WalSyncMode::FsyncBatch);
            assert_eq!(appended.expect("appends").first, Offset(1), "it lost nothing");
            drop(store);
            let (_disk, store) = open_unsure(copy.path());
            assert_eq!(store.stats().topics_damaged, 0, "{gone:?}");
            let last = read(&topic(&store, 1), 4, ALL).expect("reads");
            assert_eq!((last.start, last.records.len()), (new, 1));
        }
    }
}

#[test]
fn what_was_synced_and_cannot_be_read_is_damage() {
    let dir = tempfile::tempdir().expect("directory");
    let (_disk, store) = open_unsure(dir.path());
    let at = begins(&store, || {
        put(&topic(&store, 1), "safe, as a sync follows");
    });
    append(&topic(&store, 2), "promised", WalSyncMode::FsyncBatch).expect("appends");
    // This frame knows that the others are durable.
    put(&topic(&store, 2), "witness");
    let copy = lose(dir.path(), at..at + 70);
    let (_disk, store) = open_unsure(copy.path());
    assert!(topic(&store, 1).damage().is_some());
    assert_eq!(texts(&topic(&store, 2)), ["promised", "witness"]);
}

#[test]
fn offsets_go_on_far_above_what_may_have_been_promised_and_nowhere_else() {
    let dir = tempfile::tempdir().expect("directory");
    let (_disk, store) = open_unsure(dir.path());
    put(&topic(&store, 1), "zero");
    let copy = lose(dir.path(), 0..0);
    let (_disk, store) = open_unsure(copy.path());
    store.adopt([TopicId(1), TopicId(7)]);
    assert_eq!(put(&topic(&store, 1), "after"), Offset(1 + PROMISED_MAX));
    assert_eq!(put(&topic(&store, 1), "after"), Offset(2 + PROMISED_MAX));
    assert_eq!(put(&topic(&store, 7), "all of it may be lost"), Offset(PROMISED_MAX));
    assert_eq!(put(&topic(&store, 8), "a new topic"), Offset(0));
    store.close().expect("closes");
    drop(store);
    let (_disk, store) = open_unsure(copy.path());
    store.adopt([TopicId(1), TopicId(7), TopicId(8)]);
    assert_eq!(put(&topic(&store, 1), "after a clean close"), Offset(3 + PROMISED_MAX));
    assert_eq!(put(&topic(&store, 8), "after a clean close"), Offset(1));
    drop(store);
    let killed = tempfile::tempdir().expect("directory");
    let store = open(killed.path());
    put(&topic(&store, 1), "zero");
    let copy = lose(killed.path(), 0..0);
    // The same boot: the process was killed, and the kernel has everything.
    assert_eq!(put(&topic(&open(copy.path()), 1), "one"), Offset(1));
}

#[test]
fn what_a_failed_sync_left_unsafe_is_written_again() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_unsure(dir.path());
    let (flushed, synced) = (topic(&store, 1), topic(&store, 2));
    append(&synced, "durable", WalSyncMode::FsyncBatch).expect("appends");
    put(&flushed, "acknowledged and unsafe");
    record(&flushed, 3, Step::Moved { cursor: Offset(1) }).expect("records");
    disk.set(|condition| condition.fail_sync = true);
    append(&synced, "refused", WalSyncMode::FsyncBatch).expect_err("the disk refuses");
    append(&synced, "refused", WalSyncMode::FsyncBatch).expect_err("no new file can be synced");
    assert_eq!(texts(&flushed), ["acknowledged and unsafe"], "reads go on");
    let meanwhile = lose(dir.path(), 0..0);
    disk.set(|condition| *condition = Condition::default());
    append(&synced, "after", WalSyncMode::FsyncBatch).expect("goes on");
    // Power is lost now, and with it all that the first file's syncs did not reach.
    let first = journal_files(dir.path()).remove(0);
    let copy = lose(dir.path(), 0..0);
    let mut bytes = fs::read(&first).expect("reads");
    let end = 64 + FRAME_HEADER_LEN + 4 + "durable".len();
    bytes[end..].fill(0);
    fs::write(copy.path().join(first.file_name().expect("name")), bytes).expect("writes");
    for (dir, synced) in [(copy, &["durable", "after"][..]), (meanwhile, &["durable"])] {
        let (_disk, store) = open_unsure(dir.path());
        assert_eq!(store.stats().topics_damaged, 0);
        assert_eq!(texts(&topic(&store, 1)), ["acknowledged and unsafe"]);
        assert_eq!(texts(&topic(&store, 2)), synced);
        let progress = topic(&store, 1).subscription(SubscriptionId(3), Offset(0));
        assert_eq!(progress.cursor(), Offset(1));
    }
}
