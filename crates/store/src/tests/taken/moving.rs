//! Journal files that segments take over while somebody reads, and after a crash on the way.

use super::super::failing_disk::FailingDisk;
use super::super::history::copy_dir;
use super::*;
use crate::disk::{Disk, OsDisk};
use crate::doctor;
use std::sync::Arc;

#[test]
fn a_reader_sees_no_gap_while_a_file_is_taken_over_and_moved() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = FailingDisk::default();
    let opened = Store::open_on(Arc::new(disk.clone()), large(dir.path()), &mut |_| {});
    let store = Arc::new(opened.expect("opens"));
    let log = topic(&store, 1);
    fill(&log, 0..25);
    let journal = |sequence| crate::header::journal_path(dir.path(), sequence);
    let tending = |store: &Arc<Store>| {
        let store = Arc::clone(store);
        Box::new(move || tend(&store)) as Box<dyn FnOnce() + Send>
    };
    // It has looked up where to read, and then the file is not there any more.
    disk.set(|it| it.before_open = Some((journal(0), tending(&store))));
    assert_eq!(texts(&log), expected(1, 0..25));
    assert!(!disk.is_waiting() && store.stats().files_adopted == 2);
    drop((log, store));

    // It finds the file under neither name, as it is moved between two looks.
    let opened = Store::open_on(Arc::new(disk.clone()), large(dir.path()), &mut |_| {});
    let store = Arc::new(opened.expect("opens"));
    let log = topic(&store, 1);
    disk.set(|it| it.fail_move = true);
    fill(&log, 25..36);
    tend(&store);
    assert_eq!(store.stats().files_adopted, 2, "the last one of before, and a full one");
    assert!(journal(2).exists() && journal(3).exists(), "they cannot be moved");
    disk.set(|it| it.fail_move = false);
    disk.set(|it| it.before_open = Some((journal(2), tending(&store))));
    assert_eq!(texts(&log), expected(1, 0..36));
    assert!(!disk.is_waiting() && !journal(2).exists(), "it was moved meanwhile");
}

#[test]
fn what_a_crash_left_under_its_old_name_is_read_there_and_moved_later() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = FailingDisk::default();
    disk.set(|it| it.fail_move = true);
    let opened = Store::open_on(Arc::new(disk), large(dir.path()), &mut |_| {});
    let store = opened.expect("opens");
    fill(&topic(&store, 1), 0..25);
    tend(&store);
    assert_eq!(texts(&topic(&store, 1)), expected(1, 0..25));
    assert_eq!(files(dir.path(), "frames"), []);
    let copy = tempfile::tempdir().expect("directory");
    copy_dir(dir.path(), copy.path());
    drop(store);
    let report = doctor::examine(&(Arc::new(OsDisk) as Arc<dyn Disk>), copy.path());
    let report = report.expect("can be looked at");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let store = open_large(copy.path());
    assert_eq!(texts(&topic(&store, 1)), expected(1, 0..25));
    tend(&store);
    assert_eq!(files(copy.path(), "frames").len(), 3, "and the one that was written to");
    assert_eq!(texts(&topic(&store, 1)), expected(1, 0..25));
}

#[test]
fn one_lost_checkpoint_loses_no_file_that_was_taken_over() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    fill(&topic(&store, 1), 0..25);
    tend(&store);
    drop(store);
    for copy in [1, 2] {
        fs::remove_file(dir.path().join(format!("checkpoint.{copy}"))).expect("removes");
        let store = open_large(dir.path());
        tend(&store);
        assert_eq!(texts(&topic(&store, 1)), expected(1, 0..25));
    }
}

#[test]
fn reads_go_on_while_files_are_taken_over_in_the_background() {
    let dir = tempfile::tempdir().expect("directory");
    let options = StoreOptions { background: true, sync_interval_ms: 1, ..large(dir.path()) };
    let store = Store::open(options, &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    let mut count = 0;
    while store.stats().files_adopted == 0 || files(dir.path(), "frames").is_empty() {
        fill(&log, count..count + 5);
        count += 5;
        assert_eq!(texts(&log), expected(1, 0..count));
    }
    store.close().expect("closes");
    drop(store);
    assert_eq!(texts(&topic(&open_large(dir.path()), 1)), expected(1, 0..count));
}
