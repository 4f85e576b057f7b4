//! Repairs of segments that something comes between: a full disk, one that refuses to read, a
//! crash.

use super::failing_disk::{Condition, FailingDisk};
use super::history::copy_dir;
use super::*;
use crate::checkpoint;
use crate::disk::{Disk, OsDisk};
use crate::doctor::{self, Lost};
use crate::header::journal_path;
use crate::listing::find;
use crate::segment::{frames_path, frames_sequence};
use std::sync::Arc;

/// Messages of each topic, and the one that is damaged.
const MESSAGES: u64 = 15;
const HIT: u64 = 2;

fn text(id: u32, at: u64) -> String {
    format!("{id}: {at}: {}", "x".repeat(30_000))
}

fn small(dir: &Path, taken: bool) -> StoreOptions {
    StoreOptions {
        file_bytes_max: 300_000,
        journal_files_keep: 0,
        spare_files_max: 0,
        cache_bytes_max: 0,
        adopt_frame_bytes_min: if taken { 1000 } else { u64::MAX },
        ..options(dir)
    }
}

/// Topics 1 and 2 in segments, the damaged message being one of topic 1; and the file that it is
/// in.
fn patient(taken: bool) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("directory");
    let store = Store::open(small(dir.path(), taken), &mut |_| {}).expect("opens");
    for at in 0..MESSAGES {
        for id in [1, 2] {
            assert_eq!(put(&topic(&store, id), &text(id, at)), Offset(at));
        }
    }
    store.tend().expect("tends");
    store.tend().expect("tends");
    assert_eq!(store.stats().files_adopted > 0, taken);
    drop(store);
    let mark = format!("1: {HIT}: ");
    for (path, mut bytes) in everything(&dir.path().join("segments")) {
        if let Some(at) = bytes.windows(mark.len()).position(|it| it == mark.as_bytes()) {
            bytes[at + 1000] ^= 1;
            fs::write(&path, bytes).expect("writes");
            return (dir, path);
        }
    }
    panic!("it is in no segment");
}

/// All files with their bytes.
fn everything(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(everything(&path));
        } else if !path.ends_with("LOCK") {
            all.push((path.clone(), fs::read(&path).expect("reads")));
        }
    }
    all.sort();
    all
}

fn read_all(log: &TopicLog) -> Result<Vec<u64>, ReadError> {
    let (mut next, mut all) = (0, Vec::new());
    loop {
        let batch = read(log, next, ALL)?;
        if batch.records.is_empty() {
            return Ok(all);
        }
        next = batch.next.0;
        for (offset, bytes) in batch.records {
            assert_eq!(bytes, text(log.id().0, offset.0).as_bytes());
            all.push(offset.0);
        }
    }
}

/// What a repair on a disk that is well comes to: all that holds, and the damaged bytes kept.
fn check_repaired(dir: &Path, taken: bool, damaged: &[u8], what: &str) {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let repaired = doctor::repair(&disk, dir).expect("repairs");
    assert!(repaired.after.problems.is_empty(), "{what}: {:?}", repaired.after.problems);
    let store = Store::open(small(dir, taken), &mut |_| {}).expect("opens");
    let one = read_all(&topic(&store, 1)).expect("reads");
    // Those in the same block are lost with it.
    let lost: Vec<u64> = (0..MESSAGES).filter(|at| !one.contains(at)).collect();
    assert!(lost.contains(&HIT) && lost.len() <= if taken { 1 } else { 3 }, "{what}: {lost:?}");
    let two = read_all(&topic(&store, 2)).expect("reads");
    assert_eq!(two, (0..MESSAGES).collect::<Vec<_>>(), "{what}");
    store.tend().expect("tends");
    drop(store);
    let kept = everything(&dir.join("quarantine"));
    assert!(kept.iter().any(|(_, bytes)| bytes == damaged), "{what}");
}

#[test]
fn a_crash_anywhere_in_a_repair_loses_nothing_and_the_next_one_goes_on() {
    for taken in [false, true] {
        let (dir, victim) = patient(taken);
        let damaged = fs::read(&victim).expect("reads");
        let mut steps = 0;
        loop {
            let copy = tempfile::tempdir().expect("directory");
            copy_dir(dir.path(), copy.path());
            let disk = FailingDisk::default();
            disk.set(|condition| condition.changes_left = Some(steps));
            let disk: Arc<dyn Disk> = Arc::new(disk);
            if doctor::repair(&disk, copy.path()).is_ok() {
                break;
            }
            let what = format!("{taken}, after {steps} changes");
            let started = tempfile::tempdir().expect("directory");
            copy_dir(copy.path(), started.path());
            check_repaired(copy.path(), taken, &damaged, &what);
            // A start comes first, and removes what is left over.
            let store = Store::open(small(started.path(), taken), &mut |_| {}).expect("opens");
            let _ = read_all(&topic(&store, 1));
            store.tend().expect("tends");
            drop(store);
            check_repaired(started.path(), taken, &damaged, &format!("{what}, and a start"));
            steps += 1;
        }
        assert!(steps > 15, "{steps}");
    }
}

#[test]
fn a_disk_that_is_full_or_refuses_to_read_changes_nothing() {
    type Change = fn(&mut Condition, &Path);
    let table: [(&str, Change); 5] = [
        ("no room for bytes", |it, _| it.fail_write = true),
        ("no room for a file", |it, _| it.fail_create = true),
        ("no sync", |it, _| it.fail_sync = true),
        ("not the first time, but then", |it, _| it.fail_syncs_from = Some(2)),
        ("a read that fails is no damage", |it, path| it.fail_read = Some(path.to_path_buf())),
    ];
    for taken in [false, true] {
        let (dir, victim) = patient(taken);
        let damaged = fs::read(&victim).expect("reads");
        let before = everything(dir.path());
        for (what, change) in table {
            let failing = FailingDisk::default();
            failing.set(|condition| change(condition, &victim));
            let disk: Arc<dyn Disk> = Arc::new(failing.clone());
            let error = doctor::repair(&disk, dir.path()).map(|_| ()).expect_err(what);
            assert!(everything(dir.path()) == before, "{taken}, {what}: {error}");
            if what.contains("read") {
                let name = victim.file_name().expect("name").to_string_lossy();
                assert!(error.to_string().contains(&*name), "{error}");
                doctor::examine(&disk, dir.path()).map(|_| ()).expect_err(what);
            }
        }
        check_repaired(dir.path(), taken, &damaged, "on a disk that is well again");
    }
}

#[test]
fn what_a_checkpoint_has_by_now_stays_when_the_disk_refuses_the_rest() {
    for taken in [false, true] {
        let (dir, victim) = patient(taken);
        let damaged = fs::read(&victim).expect("reads");
        let mut first = 1;
        loop {
            let copy = tempfile::tempdir().expect("directory");
            copy_dir(dir.path(), copy.path());
            let disk = FailingDisk::default();
            disk.set(|condition| condition.fail_syncs_from = Some(first));
            let disk: Arc<dyn Disk> = Arc::new(disk);
            if doctor::repair(&disk, copy.path()).is_ok() {
                break;
            }
            check_repaired(copy.path(), taken, &damaged, &format!("{taken}, from sync {first} on"));
            first += 1;
        }
        assert!(first > 3, "{first}");
    }
}

#[test]
fn a_file_that_was_taken_over_is_repaired_under_its_old_name_and_stays_what_it_is() {
    for is_journal in [false, true] {
        let (dir, victim) = patient(true);
        let damaged = fs::read(&victim).expect("reads");
        let sequences = everything(&dir.path().join("segments"));
        let sequences = sequences.iter().filter_map(|(path, _)| frames_sequence(path));
        for sequence in sequences.collect::<Vec<_>>() {
            let (from, to) =
                (frames_path(dir.path(), sequence), journal_path(dir.path(), sequence));
            fs::rename(from, to).expect("moves");
        }
        let victim = frames_sequence(&victim).expect("was taken over");
        if is_journal {
            // As when another topic's part of it could not be archived.
            let journal = find(&OsDisk, dir.path()).expect("lists").journal;
            let header = journal.iter().find(|file| file.sequence == victim);
            let header = header.and_then(|file| file.header).expect("holds");
            let loaded = checkpoint::load(&OsDisk, dir.path(), &journal).expect("loads");
            let mut changed = loaded.newest.expect("there is one");
            (changed.journal_from, changed.journal_lsn) = (victim, header.start_lsn);
            checkpoint::store(&OsDisk, dir.path(), &changed).expect("stores");
        }
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let before = doctor::examine(&disk, dir.path()).expect("can be looked at");
        let lost = Lost { topic: TopicId(1), first: HIT, end: HIT + 1 };
        assert!(before.problems.iter().any(|it| it.lost == [lost]), "{:?}", before.problems);
        check_repaired(dir.path(), true, &damaged, &format!("a journal file: {is_journal}"));
        let again = doctor::repair(&disk, dir.path()).expect("repairs");
        assert!(again.done.is_empty(), "{:?}", again.done);
    }
}

#[test]
fn a_segment_with_gaps_loses_no_more_than_was_hit_and_progress_stays() {
    let dir = tempfile::tempdir().expect("directory");
    let store = Store::open(small(dir.path(), false), &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    log.set_retention(danube_core::Retention {
        drop_finished: true,
        ..danube_core::Retention::FOREVER
    });
    log.set_subscriptions([(SubscriptionId(1), Offset(0))]);
    let messages = 2 * MESSAGES;
    for at in 0..messages {
        put(&log, &text(1, at));
    }
    // Every third message is still to be finished.
    for at in (0..messages).filter(|at| at % 3 != 0) {
        let step = Step::Finished { first: Offset(at), end: Offset(at + 1) };
        record(&log, 1, step).expect("records");
    }
    store.tend().expect("tends");
    store.tend().expect("tends");
    drop(store);
    let mut segments = everything(&dir.path().join("segments"));
    segments.retain(|(_, bytes)| bytes.windows(6).any(|it| it == b"1: 6: "));
    let (path, mut bytes) = segments.remove(0);
    let at = bytes.windows(6).position(|it| it == b"1: 6: ").expect("it is there");
    bytes[at + 1000] ^= 1;
    fs::write(path, bytes).expect("writes");
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let repaired = doctor::repair(&disk, dir.path()).expect("repairs");
    assert!(repaired.after.problems.is_empty(), "{:?}", repaired.after.problems);
    let lost = [Lost { topic: TopicId(1), first: 6, end: 7 }];
    assert_eq!(repaired.before.problems[0].lost, lost);
    let store = Store::open(small(dir.path(), false), &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    let found = read_all(&log).expect("reads");
    assert!(found.starts_with(&[0, 3, 9]), "{found:?}");
    let progress = log.subscription(SubscriptionId(1), Offset(0));
    assert_eq!(progress.cursor(), Offset(0), "nothing that was not finished counts as finished");
    for (from, next) in [(1, 3), (4, 9), (6, 9), (7, 9)] {
        let batch = read(&log, from, ReadLimit { records_max: 1, bytes_max: 1 }).expect("reads");
        assert_eq!(batch.start, Offset(next), "from {from}");
    }
}
