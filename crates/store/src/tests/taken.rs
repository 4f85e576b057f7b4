//! Journal files that segments take over: whole, shared, damaged, and in the middle of moving.

use super::history::copy_dir;
use super::*;
use crate::disk::{Disk, DiskFile, OsDisk};
use crate::doctor;
use danube_core::Retention;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of one message, which is a batch of its own.
const LARGE: usize = 100_000;

/// Files that ten large messages fill, and none of them is spared.
fn large(dir: &Path) -> StoreOptions {
    StoreOptions {
        file_bytes_max: 1 << 20,
        journal_files_keep: 0,
        cache_bytes_max: 0,
        ..options(dir)
    }
}

fn open_large(dir: &Path) -> Store {
    Store::open(large(dir), &mut |_| {}).expect("opens")
}

fn text(id: u32, at: u64) -> String {
    format!("{id}: {at}: {}", "x".repeat(LARGE))
}

fn fill(log: &TopicLog, range: std::ops::Range<u64>) {
    for at in range {
        assert_eq!(put(log, &text(log.id().0, at)), Offset(at));
    }
}

fn expected(id: u32, range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|at| text(id, at)).collect()
}

/// The first pass makes the newest full file durable, so that the second can do without it.
fn tend(store: &Store) {
    store.tend().expect("tends");
    store.tend().expect("tends");
}

/// Files in the directory of segments whose names end so, with their sizes.
fn files(dir: &Path, end: &str) -> Vec<(PathBuf, u64)> {
    let listed = fs::read_dir(dir.join("segments")).expect("lists");
    let mut files: Vec<(PathBuf, u64)> = listed
        .map(|entry| entry.expect("entry"))
        .map(|entry| (entry.path(), entry.metadata().expect("file").len()))
        .filter(|(path, _)| path.extension().is_some_and(|found| found == end))
        .collect();
    files.sort();
    files
}

#[test]
fn a_backlog_of_large_batches_is_taken_over_and_read_whole_before_and_after_a_restart() {
    for spare_files_max in [0, 2] {
        let dir = tempfile::tempdir().expect("directory");
        let options = || StoreOptions { spare_files_max, ..large(dir.path()) };
        let store = Store::open(options(), &mut |_| {}).expect("opens");
        let log = topic(&store, 1);
        fill(&log, 0..45);
        tend(&store);
        let stats = store.stats();
        assert_eq!((stats.files_adopted, stats.segments, stats.files), (4, 4, 1), "{stats:?}");
        let (frames, indexes) = (files(dir.path(), "frames"), files(dir.path(), "seg"));
        assert_eq!((frames.len(), indexes.len()), (4, 4));
        assert!(indexes.iter().all(|(_, len)| *len < 1000), "nothing is copied: {indexes:?}");
        let bytes = 40 * LARGE as u64;
        assert!((bytes..bytes + 10_000).contains(&stats.segment_bytes), "as retention counts it");
        let check = |store: &Store| {
            let log = topic(store, 1);
            assert_eq!(texts(&log), expected(1, 0..45));
            for from in [0, 9, 10, 11, 39, 40, 44] {
                let one = read(&log, from, ReadLimit { records_max: 1, bytes_max: 1 });
                let one = one.expect("reads");
                assert_eq!((one.start, one.next), (Offset(from), Offset(from + 1)));
                assert_eq!(one.records[0].1, text(1, from));
            }
        };
        check(&store);
        drop(store);
        let store = Store::open(options(), &mut |_| {}).expect("opens");
        check(&store);
        // What comes later goes on behind it, and is taken over too.
        fill(&topic(&store, 1), 45..60);
        tend(&store);
        assert!(store.stats().files_adopted > 0);
        assert_eq!(texts(&topic(&store, 1)), expected(1, 0..60));
        assert_eq!(store.stats().topics_damaged, 0);
    }
}

#[test]
fn a_file_that_two_topics_have_taken_over_goes_with_the_last_of_them() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    for at in 0..15 {
        fill(&topic(&store, 1), at..at + 1);
        fill(&topic(&store, 2), at..at + 1);
        put(&topic(&store, 3), "small");
    }
    tend(&store);
    let taken = files(dir.path(), "frames").len();
    assert_eq!((store.stats().files_adopted, taken), (2, 2), "{:?}", store.stats());
    assert_eq!(texts(&topic(&store, 3)), ["small"; 15], "what is small was copied");
    store.forget_topic(TopicId(1));
    tend(&store);
    assert_eq!(files(dir.path(), "frames").len(), 2, "the other one needs them");
    assert_eq!(texts(&topic(&store, 2)), expected(2, 0..15));
    drop(store);
    let store = open_large(dir.path());
    store.retain(&|id| id != TopicId(1));
    assert_eq!(texts(&topic(&store, 2)), expected(2, 0..15));
    store.forget_topic(TopicId(2));
    tend(&store);
    tend(&store);
    assert_eq!(files(dir.path(), "frames"), []);
    assert_eq!(texts(&topic(&store, 3)), ["small"; 15]);
}

#[test]
fn what_is_small_or_shared_with_too_much_else_is_copied() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    let small = "y".repeat(20_000);
    for at in 0..70 {
        put(&topic(&store, 1), &small);
        if at % 3 == 0 {
            fill(&topic(&store, 2), at / 3..at / 3 + 1);
        }
    }
    tend(&store);
    let stats = store.stats();
    assert!(stats.segments > 1, "{stats:?}");
    assert_eq!((stats.files_adopted, files(dir.path(), "frames").len()), (0, 0));
    assert_eq!(texts(&topic(&store, 2)), expected(2, 0..24));
    assert_eq!(texts(&topic(&store, 1)).len(), 70);
}

#[test]
fn what_is_nearly_finished_is_written_again_and_lets_the_file_go() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    let log = topic(&store, 1);
    log.set_retention(Retention { drop_finished: true, ..Retention::FOREVER });
    log.set_subscriptions([(SubscriptionId(1), Offset(0))]);
    fill(&log, 0..25);
    tend(&store);
    assert_eq!(store.stats().files_adopted, 2, "nothing is finished yet");
    record(&log, 1, Step::Finished { first: Offset(0), end: Offset(3) }).expect("records");
    record(&log, 1, Step::Finished { first: Offset(4), end: Offset(15) }).expect("records");
    tend(&store);
    let (frames, segments) = (files(dir.path(), "frames"), files(dir.path(), "seg"));
    assert_eq!(frames.len(), 1, "the second file has more that is wanted");
    assert!(segments.iter().any(|(_, len)| *len > LARGE as u64), "{segments:?}");
    let all = expected(1, 0..25);
    let read_all = |store: &Store| {
        let first = read(&topic(store, 1), 0, ALL).expect("reads");
        assert_eq!(first.records.len(), 1, "up to the segment's end");
        assert_eq!((first.records[0].0, &first.records[0].1[..]), (Offset(3), all[3].as_bytes()));
    };
    read_all(&store);
    drop(store);
    let store = open_large(dir.path());
    read_all(&store);
    assert_eq!(files(dir.path(), "frames"), frames);
}

#[test]
fn a_little_that_is_kept_for_long_does_not_keep_the_whole_file() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    for at in 0..24 {
        let (id, own) = if at % 4 == 0 { (1, at / 4) } else { (2, at - at / 4 - 1) };
        fill(&topic(&store, id), own..own + 1);
    }
    tend(&store);
    assert_eq!((store.stats().files_adopted, files(dir.path(), "frames").len()), (2, 2));
    for id in [1, 2] {
        topic(&store, id).set_retention(Retention { drop_finished: id == 2, ..Retention::FOREVER });
        topic(&store, id).set_subscriptions([(SubscriptionId(1), Offset(0))]);
    }
    record(&topic(&store, 2), 1, Step::Finished { first: Offset(0), end: Offset(18) }).expect("");
    // The first pass lets go what is finished, the second finds that little is left.
    tend(&store);
    assert_eq!(files(dir.path(), "frames"), [], "what topic 1 has of them was written again");
    assert_eq!(texts(&topic(&store, 1)), expected(1, 0..6));
    drop(store);
    assert_eq!(texts(&topic(&open_large(dir.path()), 1)), expected(1, 0..6));
}

#[test]
fn what_is_damaged_is_not_written_again_but_kept_for_a_repair() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    let log = topic(&store, 1);
    let drops = Retention { drop_finished: true, ..Retention::FOREVER };
    log.set_retention(drops);
    log.set_subscriptions([(SubscriptionId(1), Offset(0))]);
    fill(&log, 0..25);
    put(&topic(&store, 2), "other");
    tend(&store);
    let frames = files(dir.path(), "frames");
    assert_eq!(frames.len(), 2);
    let mut bytes = fs::read(&frames[0].0).expect("reads");
    bytes[64 + 70] ^= 1;
    fs::write(&frames[0].0, &bytes).expect("writes");
    // All but the damaged one is finished, so that it would be written again.
    record(&log, 1, Step::Finished { first: Offset(1), end: Offset(9) }).expect("records");
    fill(&log, 25..40);
    tend(&store);
    assert!(log.damage().is_some_and(|damage| damage.file == frames[0].0), "{:?}", log.damage());
    assert_eq!(fs::read(&frames[0].0).expect("is there"), bytes);
    assert_eq!(store.stats().topics_damaged, 1);
    assert!(store.stats().files <= 2, "the journal does not wait for it");
    assert_eq!(texts(&topic(&store, 2)), ["other"]);
    drop(store);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let repaired = doctor::repair(&disk, dir.path()).expect("repairs");
    assert!(repaired.after.problems.is_empty(), "{repaired:?}");
    let store = open_large(dir.path());
    let left = read(&topic(&store, 1), 0, ALL).expect("reads");
    assert_eq!(left.start, Offset(10), "what the file had is in quarantine");
}

/// A real disk on which no journal file can be moved to the segments, or something happens just
/// before a file is opened.
#[derive(Clone, Default)]
struct Hooked(Arc<Hook>);

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Hook {
    no_moves: AtomicBool,
    before: Mutex<Option<(PathBuf, Action)>>,
}

impl Hooked {
    fn before_opening(&self, path: PathBuf, action: impl FnOnce() + Send + 'static) {
        *self.0.before.lock() = Some((path, Box::new(action)));
    }

    fn is_waiting(&self) -> bool {
        self.0.before.lock().is_some()
    }
}

impl Disk for Hooked {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        OsDisk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let action = self.0.before.lock().take_if(|(wanted, _)| wanted == path);
        if let Some((_, action)) = action {
            action();
        }
        OsDisk.open(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        OsDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let moves = to.extension().is_some_and(|end| end == "frames");
        if moves && self.0.no_moves.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        OsDisk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.make_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        OsDisk.lock(path)
    }
}

#[test]
fn a_reader_sees_no_gap_while_a_file_is_taken_over_and_moved() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = Hooked::default();
    let opened = Store::open_on(Arc::new(disk.clone()), large(dir.path()), &mut |_| {});
    let store = Arc::new(opened.expect("opens"));
    let log = topic(&store, 1);
    fill(&log, 0..25);
    let journal = |sequence| crate::header::journal_path(dir.path(), sequence);
    let tending = |store: &Arc<Store>| {
        let store = Arc::clone(store);
        move || tend(&store)
    };
    // It has looked up where to read, and then the file is not there any more.
    disk.before_opening(journal(0), tending(&store));
    assert_eq!(texts(&log), expected(1, 0..25));
    assert!(!disk.is_waiting() && store.stats().files_adopted == 2);
    drop((log, store));

    // It finds the file under neither name, as it is moved between two looks.
    let opened = Store::open_on(Arc::new(disk.clone()), large(dir.path()), &mut |_| {});
    let store = Arc::new(opened.expect("opens"));
    let log = topic(&store, 1);
    disk.0.no_moves.store(true, Ordering::Relaxed);
    fill(&log, 25..36);
    tend(&store);
    assert_eq!(store.stats().files_adopted, 2, "the last one of before, and a full one");
    assert!(journal(2).exists() && journal(3).exists(), "they cannot be moved");
    disk.0.no_moves.store(false, Ordering::Relaxed);
    disk.before_opening(journal(2), tending(&store));
    assert_eq!(texts(&log), expected(1, 0..36));
    assert!(!disk.is_waiting() && !journal(2).exists(), "it was moved meanwhile");
}

#[test]
fn what_a_crash_left_under_its_old_name_is_read_there_and_moved_later() {
    let dir = tempfile::tempdir().expect("directory");
    let disk = Hooked::default();
    disk.0.no_moves.store(true, Ordering::Relaxed);
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

/// Topics 1 and 2 with 15 messages each, most of them in two files that they took over.
fn shared_files(dir: &Path) {
    let store = open_large(dir);
    for at in 0..15 {
        fill(&topic(&store, 1), at..at + 1);
        fill(&topic(&store, 2), at..at + 1);
    }
    tend(&store);
    assert_eq!(files(dir, "frames").len(), 2);
}

#[test]
fn damage_in_a_file_that_was_taken_over_stops_its_topic_alone_and_can_be_repaired() {
    let dir = tempfile::tempdir().expect("directory");
    shared_files(dir.path());
    let (victim, len) = files(dir.path(), "frames").remove(0);
    let name = victim.file_name().expect("name").to_string_lossy().into_owned();
    for at in [64, 64 + 70, 300_000, len / 2] {
        let copy = tempfile::tempdir().expect("directory");
        copy_dir(dir.path(), copy.path());
        let path = copy.path().join("segments").join(&name);
        let mut bytes = fs::read(&path).expect("reads");
        bytes[at as usize] ^= 0x10;
        fs::write(&path, &bytes).expect("writes");
        // The messages take turns.
        let hit = 1 + ((at - 64) / (LARGE as u64 + 75) % 2) as u32;
        let store = open_large(copy.path());
        let mut next = 0;
        let said = loop {
            match read(&topic(&store, hit), next, ALL) {
                Ok(batch) if batch.records.is_empty() => panic!("byte {at} of topic {hit}"),
                Ok(batch) => next = batch.next.0,
                Err(error) => break error.to_string(),
            }
        };
        assert!(said.contains(&name) && said.contains("at byte "), "byte {at}: {said}");
        assert_eq!(texts(&topic(&store, 3 - hit)), expected(3 - hit, 0..15), "byte {at}");
        assert_eq!(store.stats().topics_damaged, 1);
        // It is remembered where it was, and what is whole stays.
        tend(&store);
        drop(store);

        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let repaired = doctor::repair(&disk, copy.path()).expect("repairs");
        let problems = &repaired.before.problems;
        assert!(problems.iter().all(|problem| problem.path == path), "{problems:?}");
        let lost = &problems[0].lost;
        assert_eq!((lost[0].topic, lost[0].first), (TopicId(hit), next), "{problems:?}");
        assert!(repaired.after.problems.is_empty(), "{repaired:?}");
        let kept = copy.path().join("quarantine").join(&name);
        assert_eq!(fs::read(kept).expect("is kept"), bytes);
        let store = open_large(copy.path());
        assert_eq!(texts(&topic(&store, 3 - hit)), expected(3 - hit, 0..15), "byte {at}");
        let left = texts(&topic(&store, hit));
        assert_eq!(left, expected(hit, 15 - left.len() as u64..15), "what is in the other file");
        assert_eq!(put(&topic(&store, hit), "goes on"), Offset(15));
    }
}

#[test]
fn a_file_that_was_taken_over_and_is_missing_stops_whoever_needs_it() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open_large(dir.path());
    put(&topic(&store, 3), "small");
    drop(store);
    shared_files(dir.path());
    let (victim, _) = files(dir.path(), "frames").remove(0);
    fs::remove_file(&victim).expect("removes");
    let name = victim.file_name().expect("name").to_string_lossy().into_owned();
    let store = open_large(dir.path());
    for id in [1, 2] {
        let said = topic(&store, id).damage().expect("is stopped").to_string();
        assert!(said.contains(&name) && said.contains("missing"), "{said}");
    }
    assert_eq!(texts(&topic(&store, 3)), ["small"]);
    tend(&store);
    drop(store);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let repaired = doctor::repair(&disk, dir.path()).expect("repairs");
    assert_eq!(repaired.before.problems.len(), 2, "{:?}", repaired.before.problems);
    assert!(repaired.after.problems.is_empty(), "{repaired:?}");
    let store = open_large(dir.path());
    let left = texts(&topic(&store, 1));
    assert_eq!(left, expected(1, 15 - left.len() as u64..15));
}

#[test]
fn both_checkpoints_lost_are_built_again_and_no_sequence_is_used_twice() {
    let dir = tempfile::tempdir().expect("directory");
    shared_files(dir.path());
    let before = files(dir.path(), "frames");
    for copy in [1, 2] {
        fs::remove_file(dir.path().join(format!("checkpoint.{copy}"))).expect("removes");
    }
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let repaired = doctor::repair(&disk, dir.path()).expect("repairs");
    assert!(repaired.after.problems.is_empty(), "{repaired:?}");
    let known = |note: &doctor::FileNote| note.what != "not a file of the log";
    assert!(repaired.after.files.iter().all(known), "{:?}", repaired.after.files);
    let store = open_large(dir.path());
    fill(&topic(&store, 1), 15..35);
    tend(&store);
    assert_eq!(texts(&topic(&store, 1)), expected(1, 0..35));
    assert_eq!(texts(&topic(&store, 2)), expected(2, 0..15));
    assert!(files(dir.path(), "frames").starts_with(&before));
}

/// A directory as an earlier build left it, before segments could take files over: the form is that
/// of `crate::fuzzing::open`.
#[test]
fn a_directory_of_the_version_before_opens() {
    let mut rest = &include_bytes!("../../../../fuzz/corpus/open/directory-d")[..];
    let dir = tempfile::tempdir().expect("directory");
    fs::create_dir(dir.path().join("segments")).expect("makes");
    while let Some((head, tail)) = rest.split_first_chunk::<3>() {
        let (bytes, after) = tail.split_at(u16::from_le_bytes([head[1], head[2]]).into());
        rest = after;
        let segment = |topic: u32| format!("segments/{topic:010}-{:020}-{:020}.seg", 0, 1);
        let (name, version) = match head[0] {
            0 => ("checkpoint.1".to_owned(), 2),
            1 => ("checkpoint.2".to_owned(), 2),
            2 => (segment(1), 1),
            4 => (segment(2), 1),
            6 => (format!("journal-{:020}.log", 1), 3),
            other => panic!("file {other}"),
        };
        assert_eq!(bytes[12], version, "{name}");
        fs::write(dir.path().join(name), bytes).expect("writes");
    }
    let three = "three ".repeat(50);
    let old = |store: &Store| {
        assert_eq!(texts(&topic(store, 1)), ["zero", "one", "two", &three, "four", "five"]);
        assert_eq!(texts(&topic(store, 2)), ["another topic's", "in the journal"]);
        let progress = topic(store, 1).subscription(SubscriptionId(1), Offset(0));
        assert_eq!(progress.cursor(), Offset(1));
    };
    let store = open_large(dir.path());
    assert_eq!((store.stats().segments, store.stats().topics_damaged), (2, 0));
    old(&store);
    fill(&topic(&store, 9), 0..25);
    tend(&store);
    assert_eq!(store.stats().files_adopted, 2);
    drop(store);
    let store = open_large(dir.path());
    old(&store);
    assert_eq!(texts(&topic(&store, 9)), expected(9, 0..25));
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
