//! History: from the journal into segments and back, over restarts, lost files and damage.

use super::*;
use crate::disk::{Disk, OsDisk};
use crate::{OpenError, doctor};
use danube_core::Retention;
use std::sync::Arc;

/// Files small enough that a few messages fill one, and none of them is spared.
fn small(dir: &Path) -> StoreOptions {
    StoreOptions { journal_files_keep: 0, cache_bytes_max: 20_000, ..options(dir) }
}

fn open_small(dir: &Path) -> Store {
    Store::open(small(dir), &mut |_| {}).expect("opens")
}

fn text(at: u64) -> String {
    format!("{at}: {}", "x".repeat(5_000))
}

/// Appends messages `range` to `log`, which is to have as many as `range` begins with.
fn fill(log: &TopicLog, range: std::ops::Range<u64>) {
    for at in range {
        assert_eq!(put(log, &text(at)), Offset(at));
    }
}

fn expected(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(text).collect()
}

fn finished(first: u64, end: u64) -> Step {
    Step::Finished { first: Offset(first), end: Offset(end) }
}

fn segment_files(dir: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(dir.join("segments")).expect("lists");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    files
}

#[test]
fn history_is_read_from_segments_journal_and_memory_without_a_seam() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_small(dir.path());
    let (one, two) = (topic(&store, 1), topic(&store, 2));
    for round in 0..4 {
        fill(&one, round * 20..round * 20 + 20);
        put(&two, &format!("two {round}"));
        store.tend().expect("tends");
        assert_eq!(texts(&one), expected(0..round * 20 + 20), "round {round}");
    }
    let stats = store.stats();
    assert!(stats.segments >= 2 && stats.files <= 2, "{stats:?}");
    assert_eq!(texts(&two), ["two 0", "two 1", "two 2", "two 3"]);
    let middle = read(&one, 33, ReadLimit { records_max: 2, bytes_max: usize::MAX });
    let middle = middle.expect("reads");
    assert_eq!((middle.start, middle.next), (Offset(33), Offset(35)));
    for _ in 0..2 {
        drop(open_small_after(dir.path(), &[1, 2], 80));
    }
    drop(store);
    let store = open_small_after(dir.path(), &[1, 2], 80);
    fill(&topic(&store, 1), 80..100);
    store.tend().expect("tends");
    assert_eq!(texts(&topic(&store, 1)), expected(0..100));
}

/// A copy of the directory, as a crash leaves it, opens and has all of topic 1.
fn open_small_after(dir: &Path, topics: &[u32], count: u64) -> Store {
    let copy = tempfile::tempdir().expect("directory");
    copy_dir(dir, copy.path());
    let store = open_small(copy.path());
    store.retain(&|id| topics.contains(&id.0));
    assert_eq!(store.stats().topics_damaged, 0);
    assert_eq!(texts(&topic(&store, 1)), expected(0..count));
    drop(store);
    // What the crash left is no hindrance to the process that goes on.
    match Store::open(small(dir), &mut |_| {}) {
        Ok(store) => store,
        Err(OpenError::Locked { .. }) => open_small(copy.path()),
        Err(error) => panic!("{error}"),
    }
}

/// Copies a directory as it is at one moment: begins again when a file got another name meanwhile.
pub(super) fn copy_dir(from: &Path, to: &Path) {
    while let Err(error) = try_copy_dir(from, to) {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        fs::remove_dir_all(to).expect("removes");
    }
}

fn try_copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().expect("name"));
        if path.is_dir() {
            try_copy_dir(&path, &target)?;
        } else {
            fs::copy(&path, target)?;
        }
    }
    Ok(())
}

#[test]
fn a_drained_work_queue_is_never_written_twice() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_small(dir.path());
    let log = topic(&store, 1);
    log.set_retention(Retention { drop_finished: true, ..Retention::FOREVER });
    fill(&log, 0..40);
    store.tend().expect("tends");
    assert!(store.stats().segments > 0, "nobody has said that there are no subscriptions to come");
    log.set_subscriptions([(SubscriptionId(1), Offset(0)), (SubscriptionId(2), Offset(0))]);
    fill(&log, 40..80);
    record(&log, 1, finished(0, 80)).expect("records");
    store.tend().expect("tends");
    assert!(store.stats().segments > 0, "the other one has finished nothing");
    // All but one, in the middle of what is in segments by now.
    record(&log, 2, finished(0, 17)).expect("records");
    record(&log, 2, finished(18, 80)).expect("records");
    fill(&log, 80..100);
    store.tend().expect("tends");
    let left = read(&log, 0, ALL).expect("reads");
    assert_eq!((left.start, left.records[0].0), (Offset(17), Offset(17)), "the gap is explicit");
    assert_eq!(left.records[1].0, Offset(80), "nothing of what is finished is left");
    fill(&log, 100..101);
    record(&log, 2, finished(17, 18)).expect("records");
    record(&log, 1, finished(80, 101)).expect("records");
    record(&log, 2, finished(80, 101)).expect("records");
    store.tend().expect("tends");
    assert_eq!(store.stats().segments, 0);
    assert_eq!(segment_files(dir.path()).len(), 0);
    drop(store);
    let store = open_small(dir.path());
    let log = topic(&store, 1);
    assert_eq!(log.bounds().next, Offset(101), "offsets go on");
    assert_eq!(log.subscription(SubscriptionId(2), Offset(0)).cursor(), Offset(101));
}

#[test]
fn progress_outlives_the_journal_files_it_was_written_to() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_small(dir.path());
    let log = topic(&store, 1);
    for at in (0..400).filter(|at| *at != 7) {
        record(&log, 1, finished(at, at + 1)).expect("records");
    }
    let failed =
        Step::Failed { offset: Offset(7), attempt: 3, blocked: true, reason: "no".to_owned() };
    record(&log, 1, failed).expect("records");
    record(&log, 2, Step::Moved { cursor: Offset(5) }).expect("records");
    fill(&topic(&store, 2), 0..30);
    store.tend().expect("tends");
    let before = log.subscriptions();
    assert!(!journal_files(dir.path()).iter().any(|path| path.ends_with(format!("{:020}.log", 0))));
    drop(store);
    let store = open_small(dir.path());
    let log = topic(&store, 1);
    assert_eq!(log.subscriptions(), before);
    let progress = log.subscription(SubscriptionId(1), Offset(0));
    assert_eq!(progress.backlog(Offset(400)), 1, "one hole, one message");
    assert_eq!(progress.attempts(Offset(7)).map(|a| (a.count, a.blocked)), Some((3, true)));
}

#[test]
fn one_lost_checkpoint_is_no_loss_and_two_are_refused_by_name() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_small(dir.path());
    fill(&topic(&store, 1), 0..40);
    store.tend().expect("tends");
    assert!(store.stats().checkpoint > 0);
    fill(&topic(&store, 1), 40..50);
    drop(store);
    let harm: [fn(&Path); 3] = [
        |path| fs::remove_file(path).expect("removes"),
        |path| fs::write(path, vec![0; 500]).expect("writes"),
        |path| {
            let mut bytes = fs::read(path).expect("reads");
            let at = bytes.len() / 2;
            bytes[at] ^= 4;
            fs::write(path, bytes).expect("writes");
        },
    ];
    for harm in harm {
        for harmed in [&[1][..], &[2], &[1, 2]] {
            let copy = tempfile::tempdir().expect("directory");
            copy_dir(dir.path(), copy.path());
            for number in harmed {
                harm(&copy.path().join(format!("checkpoint.{number}")));
            }
            match Store::open(small(copy.path()), &mut |_| {}) {
                Ok(store) => {
                    assert_eq!(harmed.len(), 1);
                    assert_eq!(texts(&topic(&store, 1)), expected(0..50));
                }
                Err(error) => {
                    assert_eq!(harmed.len(), 2, "{error}");
                    assert!(error.to_string().contains("checkpoint."), "{error}");
                    assert!(matches!(error, OpenError::Checkpoint { .. }), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_missing_or_damaged_segment_stops_its_topic_alone() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_small(dir.path());
    put(&topic(&store, 2), "other");
    fill(&topic(&store, 1), 0..40);
    store.tend().expect("tends");
    drop(store);
    let of_one = |dir: &Path| {
        let files = segment_files(dir);
        let name = |path: &PathBuf| path.file_name().expect("name").to_string_lossy().into_owned();
        files.into_iter().find(|path| name(path).starts_with("0000000001-")).expect("is there")
    };
    let len = fs::metadata(of_one(dir.path())).expect("file").len();
    for at in (0..len).step_by(997).chain(len - 64..len).chain([u64::MAX]) {
        let copy = tempfile::tempdir().expect("directory");
        copy_dir(dir.path(), copy.path());
        let victim = of_one(copy.path());
        if at == u64::MAX {
            fs::remove_file(&victim).expect("removes");
        } else {
            let mut bytes = fs::read(&victim).expect("reads");
            bytes[at as usize] ^= 0x10;
            fs::write(&victim, bytes).expect("writes");
        }
        let store = open_small(copy.path());
        assert_eq!(texts(&topic(&store, 2)), ["other"]);
        let log = topic(&store, 1);
        let (mut next, mut seen) = (0, Vec::new());
        let error = loop {
            match read(&log, next, ReadLimit { records_max: 3, bytes_max: usize::MAX }) {
                Ok(batch) if batch.records.is_empty() => break None,
                Ok(batch) => {
                    next = batch.next.0;
                    seen.extend(batch.records.into_iter().map(|(_, record)| record));
                }
                Err(error) => break Some(error.to_string()),
            }
        };
        let seen: Vec<String> =
            seen.iter().map(|record| String::from_utf8_lossy(record).into_owned()).collect();
        assert_eq!(seen, expected(0..seen.len() as u64), "byte {at}: no wrong byte");
        let name = victim.file_name().expect("name").to_string_lossy().into_owned();
        match error {
            Some(said) => assert!(said.contains(&name), "byte {at}: {said}"),
            None => assert_eq!(seen.len(), 40, "byte {at}"),
        }
    }
}

#[test]
fn journal_files_are_used_again_and_their_former_life_is_never_seen() {
    let dir = tempfile::tempdir().expect("directory");
    let options =
        |dir: &Path| StoreOptions { spare_files_max: 2, journal_files_max: 0, ..small(dir) };
    let store = Store::open(options(dir.path()), &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    fill(&log, 0..60);
    store.tend().expect("tends");
    let spares = || {
        let all =
            fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("entry").path());
        all.filter(|path| path.extension().is_some_and(|end| end == "spare")).count()
    };
    assert_eq!(spares(), 2);
    for at in 60..100 {
        fill(&log, at..at + 1);
        if at % 5 == 0 {
            let copy = tempfile::tempdir().expect("directory");
            copy_dir(dir.path(), copy.path());
            let disk: Arc<dyn Disk> = Arc::new(OsDisk);
            let report = doctor::examine(&disk, copy.path()).expect("can be looked at");
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            let store = Store::open(options(copy.path()), &mut |_| {}).expect("opens");
            assert_eq!(store.stats().topics_damaged, 0);
            assert_eq!(texts(&topic(&store, 1)), expected(0..at + 1), "killed after {at}");
        }
    }
    assert_eq!(spares(), 0, "both are in use again");
    store.tend().expect("tends");
    assert_eq!(spares(), 2);
    assert_eq!(texts(&log), expected(0..100));
}

#[test]
fn background_work_happens_by_itself() {
    let dir = tempfile::tempdir().expect("directory");
    let options = StoreOptions { background: true, sync_interval_ms: 1, ..small(dir.path()) };
    let store = Store::open(options, &mut |_| {}).expect("opens");
    let log = topic(&store, 1);
    let mut count = 0;
    // Reads go on while files move under them.
    while store.stats().segments == 0 || store.stats().checkpoint == 0 {
        fill(&log, count..count + 20);
        count += 20;
        assert_eq!(texts(&log), expected(0..count));
    }
    store.close().expect("closes");
    drop(store);
    assert_eq!(texts(&topic(&open_small(dir.path()), 1)), expected(0..count));
}
