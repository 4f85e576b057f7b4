//! Large batches that go past the operating system's cache, on real files.

use super::*;

/// Everything large goes past the cache, from the first on.
fn direct(dir: &Path) -> StoreOptions {
    StoreOptions {
        file_bytes_max: 256 << 10,
        burst_bytes_max: 0,
        direct_batch_bytes_min: 2_000,
        cache_bytes_max: 0,
        ..options(dir)
    }
}

fn batch(first: usize, count: usize) -> Vec<Bytes> {
    (first..first + count).map(|at| Bytes::from(format!("{at:0>200}"))).collect()
}

#[test]
fn what_goes_past_the_cache_and_what_does_not_stand_side_by_side() {
    let dir = tempfile::tempdir().expect("directory");
    let mut written = 0;
    for life in 0..3 {
        let store = Store::open(direct(dir.path()), &mut |_| {}).expect("opens");
        let log = topic(&store, 1);
        for turn in 0..60 {
            // Now large, now small; what is small ends anywhere in a unit.
            let count = if turn % 3 == 2 { 1 + turn % 7 } else { 20 + turn };
            let sync =
                if turn % 5 == 0 { WalSyncMode::FsyncBatch } else { WalSyncMode::OsCacheFlush };
            wait(&start_append(&log, batch(written, count), sync)).expect("appends");
            written += count;
            if turn % 10 == 9 {
                assert_eq!(texts(&log).len(), written, "life {life}, turn {turn}");
            }
        }
        if life == 1 {
            store.tend().expect("makes segments of what is full");
        }
        let all = texts(&log);
        assert!(all.iter().enumerate().all(|(at, text)| *text == format!("{at:0>200}")));
        store.close().expect("closes");
    }
    assert!(journal_files(dir.path()).len() < 10, "full ones became segments");
    let store = Store::open(direct(dir.path()), &mut |_| {}).expect("opens");
    assert_eq!(texts(&topic(&store, 1)).len(), written);
}

#[test]
fn a_process_that_dies_has_written_what_went_past_the_cache() {
    let dir = tempfile::tempdir().expect("directory");
    let after = tempfile::tempdir().expect("directory");
    let store = Store::open(direct(dir.path()), &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    for turn in 0..10 {
        wait(&start_append(&log, batch(turn * 30, 30), WalSyncMode::OsCacheFlush))
            .expect("appends");
    }
    for file in journal_files(dir.path()) {
        let name = file.file_name().expect("a name");
        fs::copy(&file, after.path().join(name)).expect("copies");
    }
    let store = Store::open(direct(after.path()), &mut |_| {}).expect("opens");
    assert_eq!(texts(&topic(&store, 1)).len(), 300);
}
