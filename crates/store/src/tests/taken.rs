//! Journal files that segments take over: whole, shared, finished, beside what earlier builds left.

mod damaged;
mod moving;

use super::*;
use danube_core::Retention;

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
