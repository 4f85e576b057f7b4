//! Journal files of zeros that are ready before they are needed.

use super::history::copy_dir;
use super::*;
use crate::Clock;
use crate::header::spare_path;
use danube_core::{Tick, WallMs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Spares in `dir`.
fn spares(dir: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("entry").path());
    all.filter(|path| path.extension().is_some_and(|end| end == "spare")).collect()
}

fn open_sparing(dir: &Path) -> Store {
    Store::open(StoreOptions { spare_files_max: 2, ..options(dir) }, &mut |_| {}).expect("opens")
}

fn expected(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("number {number}")).collect()
}

/// One at a time.
fn put_each(log: &TopicLog, numbers: std::ops::Range<usize>, sync: WalSyncMode) {
    for text in expected(numbers) {
        append(log, &text, sync).expect("appends");
        log.shared.commands.settle();
    }
}

#[test]
fn they_are_made_while_little_is_written_that_waits_for_syncs() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_sparing(dir.path());
    let log = topic(&store, 1);
    put_each(&log, 0..40, WalSyncMode::OsCacheFlush);
    store.tend().expect("tends");
    assert_eq!(spares(dir.path()).len(), 0, "nobody waits for syncs");
    put_each(&log, 40..55, WalSyncMode::FsyncBatch);
    store.tend().expect("tends");
    assert_eq!(spares(dir.path()).len(), 0, "not for long");
    put_each(&log, 55..60, WalSyncMode::FsyncBatch);
    store.tend().expect("tends");
    let ready = spares(dir.path());
    assert_eq!(ready.len(), 2);
    for path in ready {
        let bytes = fs::read(path).expect("is read");
        assert!(bytes.len() == 64 << 10 && bytes.iter().all(|byte| *byte == 0));
    }
    store.tend().expect("tends");
    assert_eq!(spares(dir.path()).len(), 2, "no more of them");
    // Each of them is used, and what was killed meanwhile is whole.
    let large = Bytes::from(vec![b'l'; 20 << 10]);
    for at in 60..70 {
        put_each(&log, at..at + 1, WalSyncMode::FsyncBatch);
        let other = start_append(&topic(&store, 2), vec![large.clone()], WalSyncMode::FsyncBatch);
        wait(&other).expect("appends");
        let copy = tempfile::tempdir().expect("directory");
        copy_dir(dir.path(), copy.path());
        let after = open_sparing(copy.path());
        assert_eq!(texts(&topic(&after, 1)), expected(0..at + 1), "killed after {at}");
    }
    assert_eq!(spares(dir.path()).len(), 0);
    store.close().expect("closes");
    let store = open_sparing(dir.path());
    assert_eq!(texts(&topic(&store, 1)), expected(0..70));
}

/// Time that passes whenever somebody looks, in milliseconds.
#[derive(Default)]
struct Passing {
    now: AtomicU64,
    each: AtomicU64,
}

impl Clock for Passing {
    fn wall(&self) -> WallMs {
        WallMs(0)
    }

    fn tick(&self) -> Tick {
        Tick(self.now.fetch_add(self.each.load(Ordering::Relaxed), Ordering::Relaxed))
    }
}

#[test]
fn a_slow_disk_makes_none() {
    for (each_ms, wanted) in [(35, 2), (36, 0)] {
        let dir = tempfile::tempdir().expect("directory");
        let clock = Arc::new(Passing::default());
        let options = options(dir.path());
        let options = StoreOptions { clock: clock.clone(), spare_files_max: 2, ..options };
        let store = Store::open(options, &mut |_| {}).expect("opens");
        put_each(&topic(&store, 1), 0..20, WalSyncMode::FsyncBatch);
        clock.each.store(each_ms, Ordering::Relaxed);
        store.tend().expect("tends");
        assert_eq!(spares(dir.path()).len(), wanted, "{each_ms} ms for each");
    }
}

#[test]
fn one_that_is_not_whole_is_not_used() {
    let dir = tempfile::tempdir().expect("directory");
    let half = spare_path(dir.path(), u64::MAX);
    fs::write(&half, vec![0; 10_000]).expect("is written");
    let store = open_sparing(dir.path());
    let log = topic(&store, 1);
    put_each(&log, 0..30, WalSyncMode::FsyncBatch);
    assert!(!half.exists(), "it was to be the first, and is removed");
    store.tend().expect("tends");
    let ready = spares(dir.path());
    assert_eq!(ready.len(), 2, "{ready:?}");
    assert_eq!(texts(&log), expected(0..30));
}
