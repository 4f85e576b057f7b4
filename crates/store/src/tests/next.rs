//! From one journal file to the next while much is written: the device is behind, and the next file is
//! made early.

use super::failing_disk::FailingDisk;
use super::history::copy_dir;
use super::*;
use crate::header::journal_new_path;
use std::sync::Arc;

/// Bytes of one message. Two of them leave no room for a third in a journal file.
const LARGE: usize = 30 << 10;

/// A store with its threads, on a disk that knows that the machine keeps running.
fn open_busy(dir: &Path) -> (FailingDisk, Store) {
    let disk = FailingDisk::default();
    disk.set(|condition| condition.knows_boots = true);
    let options = StoreOptions { background: true, ..options(dir) };
    (disk.clone(), Store::open_on(Arc::new(disk), options, &mut |_| {}).expect("opens"))
}

/// So many large messages, told apart by their first byte.
fn put_large(log: &TopicLog, numbers: std::ops::Range<u8>) {
    for number in numbers {
        let message = Bytes::from(vec![number; LARGE]);
        let appended = wait(&start_append(log, vec![message], WalSyncMode::OsCacheFlush));
        assert_eq!(appended.expect("appends").first, Offset(number.into()));
    }
}

fn numbers(log: &TopicLog) -> Vec<u8> {
    let mut numbers = Vec::new();
    while (numbers.len() as u64) < log.bounds().next.0 {
        for (_, message) in read(log, numbers.len() as u64, ALL).expect("reads").records {
            assert!(message.len() == LARGE && message.iter().all(|byte| *byte == message[0]));
            numbers.push(message[0]);
        }
    }
    numbers
}

/// What a killed process leaves of `dir`.
fn killed(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("directory");
    copy_dir(dir, copy.path());
    copy
}

#[test]
fn a_device_that_is_behind_makes_the_file_longer_and_nobody_wait() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_busy(dir.path());
    let log = topic(&store, 1);
    put_large(&log, 0..2);
    disk.set(|condition| condition.stall_sync = true);
    // The second file has four of them instead of two, as the first one does not become durable.
    put_large(&log, 2..6);
    let unnamed = journal_new_path(dir.path());
    assert!(fs::metadata(&unnamed).expect("is there").len() > 4 * LARGE as u64);
    let copy = killed(dir.path());
    let (_disk, after) = open_busy(copy.path());
    assert_eq!(numbers(&topic(&after, 1)), [0, 1, 2, 3, 4, 5], "of a killed process");
    assert_eq!(numbers(&log), [0, 1, 2, 3, 4, 5]);
    disk.set(|condition| condition.stall_sync = false);
    put_large(&log, 6..12);
    store.close().expect("closes");
    assert!(!unnamed.exists(), "all of them have their names");
    let (_disk, store) = open_busy(dir.path());
    assert_eq!(numbers(&topic(&store, 1)), (0..12).collect::<Vec<u8>>());
}

#[test]
fn the_next_file_is_made_early_and_is_none_before_it_is_begun() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_busy(dir.path());
    let log = topic(&store, 1);
    put_large(&log, 0..2);
    let early = journal_new_path(dir.path());
    // The first one had this name, too.
    disk.wait_for_creates(&early, 2);
    assert!(early.exists());
    let copy = killed(dir.path());
    let (_disk, after) = open_busy(copy.path());
    assert!(!journal_new_path(copy.path()).exists(), "it was never begun");
    assert_eq!(numbers(&topic(&after, 1)), [0, 1]);
    put_large(&log, 2..3);
    put_large(&log, 3..4);
    store.close().expect("closes");
    assert!(!early.exists(), "one that is not needed goes");
    let (_disk, store) = open_busy(dir.path());
    assert_eq!(numbers(&topic(&store, 1)), [0, 1, 2, 3]);
}

#[test]
fn a_next_file_that_cannot_be_made_early_is_made_when_it_is_due() {
    let dir = tempfile::tempdir().expect("directory");
    let (disk, store) = open_busy(dir.path());
    let log = topic(&store, 1);
    put_large(&log, 0..1);
    disk.set(|condition| condition.fail_create = true);
    put_large(&log, 1..2);
    disk.wait_for_creates(&journal_new_path(dir.path()), 2);
    disk.set(|condition| condition.fail_create = false);
    put_large(&log, 2..6);
    assert_eq!(numbers(&log), [0, 1, 2, 3, 4, 5]);
}
