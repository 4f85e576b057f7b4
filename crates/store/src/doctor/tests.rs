//! Case U13 as a table, on real files: what is torn, what is damaged, what is rebuilt.

use super::*;
use crate::disk::OsDisk;
use crate::{Store, StoreOptions, TopicLog};
use bytes::Bytes;
use danube_core::{Epoch, Offset, WalSyncMode};
use std::fs;
use std::sync::mpsc;

mod segments;
mod ward;

const RECORDS: u64 = 10;

fn disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk)
}

fn open(dir: &Path, start: u32) -> Store {
    let options = StoreOptions { background: false, ..StoreOptions::new(dir, Incarnation(start)) };
    Store::open(options, &mut |_| {}).expect("opens")
}

fn put(log: &TopicLog, text: &str) -> Result<u64, String> {
    let (tell, answer) = mpsc::sync_channel(1);
    log.append(vec![Bytes::copy_from_slice(text.as_bytes())], WalSyncMode::FsyncBatch, move |it| {
        tell.send(it).expect("somebody waits");
    });
    answer.recv().expect("answers").map(|it| it.first.0).map_err(|error| error.to_string())
}

fn texts(log: &TopicLog) -> Result<Vec<(u64, String)>, String> {
    let (mut from, mut all) = (Offset(0), Vec::new());
    loop {
        let (tell, answer) = mpsc::sync_channel(1);
        let limit = crate::ReadLimit { records_max: 100, bytes_max: 1 << 20 };
        log.read(from, limit, move |it| tell.send(it).expect("somebody waits"));
        let batch = answer.recv().expect("answers").map_err(|error| error.to_string())?;
        if batch.records.is_empty() {
            return Ok(all);
        }
        from = batch.next;
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        all.extend(batch.records.iter().map(|(offset, bytes)| (offset.0, text(bytes))));
    }
}

/// A stopped data directory: topic 1 with records 0 to 9, topic 2 with one record in the middle,
/// and where each frame of topic 1 begins.
struct Case {
    dir: tempfile::TempDir,
    begins: Vec<usize>,
}

/// Where the messages of a [`Case`] are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum In {
    Journal,
    Segments,
    /// Journal files that segments have taken over.
    Taken,
}

impl Case {
    /// With `segments`, all of it is in segments.
    fn new(segments: bool) -> Case {
        Case::with(if segments { In::Segments } else { In::Journal })
    }

    fn with(place: In) -> Case {
        let dir = tempfile::tempdir().expect("directory");
        let options = StoreOptions {
            background: false,
            journal_files_keep: 0,
            spare_files_max: 0,
            file_bytes_max: match place {
                In::Journal => 1 << 20,
                In::Segments => 300,
                In::Taken => 1400,
            },
            adopt_frame_bytes_min: if place == In::Taken { 0 } else { 32 << 10 },
            ..StoreOptions::new(dir.path(), Incarnation(1))
        };
        let store = Store::open(options, &mut |_| {}).expect("opens");
        let (one, two) = (store.topic(TopicId(1), Epoch(1)), store.topic(TopicId(2), Epoch(1)));
        let mut begins = Vec::new();
        for at in 0..RECORDS {
            begins.push(64 + store.stats().bytes as usize);
            let rest = if place == In::Taken { 200 } else { 0 };
            put(&one, &format!("record {at}{}", "x".repeat(rest))).expect("appends");
            if at == 5 {
                put(&two, "another topic").expect("appends");
            }
        }
        if place != In::Journal {
            store.tend().expect("tends");
        }
        assert_eq!(store.stats().files_adopted > 0, place == In::Taken);
        // As a kill leaves it: no mark, no cut.
        let copy = tempfile::tempdir().expect("directory");
        copy_dir(dir.path(), copy.path());
        drop(store);
        Case { dir: copy, begins }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn journal(&self) -> PathBuf {
        crate::header::journal_path(self.path(), 0)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.journal()).expect("reads");
        change(&mut bytes);
        fs::write(self.journal(), bytes).expect("writes");
    }

    fn examine(&self) -> Report {
        examine(&disk(), self.path()).expect("can be looked at")
    }
}

fn copy_dir(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("lists") {
        let path = entry.expect("entry").path();
        let place = to.join(path.file_name().expect("name"));
        if path.is_dir() {
            fs::create_dir(&place).expect("makes");
            copy_dir(&path, &place);
        } else {
            fs::copy(&path, &place).expect("copies");
        }
    }
}

fn everything(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(everything(&path));
        } else {
            all.push((path.clone(), fs::read(path).expect("reads")));
        }
    }
    all.sort();
    all
}

#[test]
fn a_whole_directory_is_healthy_and_every_file_is_explained() {
    for place in [In::Journal, In::Segments, In::Taken] {
        let case = Case::with(place);
        let before = everything(case.path());
        let report = case.examine();
        assert!(report.problems.is_empty() && report.is_healthy(), "{:?}", report.problems);
        assert!(report.files.iter().all(|file| file.what != "not a file of the log"), "{report:?}");
        let (one, two) = (&report.topics[0], &report.topics[1]);
        assert_eq!((one.id, one.start, one.next), (TopicId(1), 0, RECORDS));
        assert_eq!((two.id, two.start, two.next), (TopicId(2), 0, 1));
        assert_eq!(one.segments > 0, place != In::Journal);
        let after = everything(case.path());
        let lock = |(path, _): &&(PathBuf, Vec<u8>)| !path.ends_with("LOCK");
        assert!(
            before.iter().filter(lock).eq(after.iter().filter(lock)),
            "looking changes nothing"
        );
    }
}

/// What happens to a file's bytes, given where its last frame begins.
type Change = fn(&mut Vec<u8>, usize);

#[test]
fn a_torn_end_is_no_damage_and_is_cut() {
    let last = |case: &Case| case.begins[9];
    let table: [(&str, Change, u64); 5] = [
        ("a: within the length", |bytes, last| bytes.truncate(last + 13), 9),
        ("b: within the header", |bytes, last| bytes.truncate(last + 30), 9),
        ("c: within the payload", |bytes, last| bytes.truncate(last + 70), 9),
        ("d: whole with a bad checksum", |bytes, last| bytes[last + 70] ^= 1, 9),
        ("e: zeros behind", |bytes, _| bytes.extend([0; 4096]), 10),
    ];
    for (what, change, left) in table {
        let case = Case::new(false);
        let at = last(&case);
        case.change(|bytes| change(bytes, at));
        let report = case.examine();
        assert!(report.is_healthy(), "{what}: {:?}", report.problems);
        assert_eq!(report.topics[0].next, left, "{what}");
        assert_eq!(report.problems.len(), usize::from(left < RECORDS), "{what}");
        let repaired = repair(&disk(), case.path()).expect("repairs");
        assert!(repaired.after.problems.is_empty(), "{what}: {:?}", repaired.after.problems);
        let store = open(case.path(), 2);
        let log = store.topic(TopicId(1), Epoch(1));
        assert_eq!(texts(&log).expect("reads").len() as u64, left, "{what}");
        assert_eq!(put(&log, "goes on"), Ok(left), "{what}");
    }
}

#[test]
fn a_flipped_byte_is_named_and_its_topic_goes_on_after_a_repair() {
    // In the payload, and in the header.
    for within in [70, 20] {
        let case = Case::new(false);
        let at = case.begins[4];
        case.change(|bytes| bytes[at + within] ^= 0x40);
        let report = case.examine();
        assert!(!report.is_healthy());
        let problem = &report.problems[0];
        assert_eq!(
            (problem.position, &problem.path),
            (Some(at as u64), &case.journal()),
            "{report:?}"
        );
        assert_eq!(problem.lost, [Lost { topic: TopicId(1), first: 4, end: 5 }], "{report:?}");
        assert!(report.topics[0].stopped.is_some() && report.topics[1].stopped.is_none());

        let original = fs::read(case.journal()).expect("reads");
        let repaired = repair(&disk(), case.path()).expect("repairs");
        assert!(repaired.after.problems.is_empty(), "{:?}", repaired.after.problems);
        assert!(repaired.left.is_empty(), "{:?}", repaired.left);
        let kept = case.path().join("quarantine").join(case.journal().file_name().expect("name"));
        assert_eq!(fs::read(kept).expect("kept"), original);
        let store = open(case.path(), 2);
        let log = store.topic(TopicId(1), Epoch(1));
        let offsets: Vec<u64> = texts(&log).expect("reads").iter().map(|(at, _)| *at).collect();
        assert_eq!(offsets, [0, 1, 2, 3, 5, 6, 7, 8, 9], "only what is lost is gone");
        assert_eq!(put(&log, "goes on"), Ok(RECORDS));
        assert_eq!(texts(&store.topic(TopicId(2), Epoch(1))).expect("reads").len(), 1);
    }
}

#[test]
fn a_lost_checkpoint_is_written_again_or_rebuilt() {
    for (copies, place) in [(1, In::Segments), (2, In::Segments), (1, In::Taken), (2, In::Taken)] {
        for how in ["removed", "zeros", "flipped"] {
            let case = Case::with(place);
            for copy in 0..copies {
                let path = crate::checkpoint::path(case.path(), copy);
                let mut bytes = fs::read(&path).expect("reads");
                match how {
                    "removed" => fs::remove_file(&path).expect("removes"),
                    "zeros" => fs::write(&path, vec![0; bytes.len()]).expect("writes"),
                    _ => {
                        bytes[40] ^= 1;
                        fs::write(&path, bytes).expect("writes");
                    }
                }
            }
            let report = case.examine();
            let noticed = copies == 2 || how != "removed";
            assert_eq!(report.is_healthy(), !noticed, "{copies} {how}: {:?}", report.problems);
            let repaired = repair(&disk(), case.path()).expect("repairs");
            assert!(repaired.after.problems.is_empty(), "{how}: {:?}", repaired.after.problems);
            let store = open(case.path(), 2);
            let log = store.topic(TopicId(1), Epoch(1));
            assert_eq!(texts(&log).expect("reads").len() as u64, RECORDS, "{copies} {how}");
            assert_eq!(texts(&store.topic(TopicId(2), Epoch(1))).expect("reads").len(), 1);
            assert_eq!(put(&log, "goes on"), Ok(RECORDS));
        }
    }
}

#[test]
fn a_directory_in_use_is_refused_and_one_that_is_not_there_is_not_made() {
    let case = Case::new(false);
    let store = open(case.path(), 2);
    let error = examine(&disk(), case.path()).map(|_| ()).expect_err("is locked");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(store);
    let missing = case.path().join("missing");
    examine(&disk(), &missing).map(|_| ()).expect_err("is not there");
    assert!(!missing.exists());
}

#[test]
fn hostile_bytes_never_make_it_panic() {
    for place in [In::Journal, In::Segments, In::Taken] {
        let case = Case::with(place);
        let files = everything(case.path());
        for (number, (path, bytes)) in files.iter().enumerate() {
            for round in 0..16_usize {
                let mut hostile = bytes.clone();
                let at = (round * 7919 + number * 31) % hostile.len().max(1);
                match (round % 4, hostile.len()) {
                    (_, 0) => hostile = vec![round as u8; round],
                    (0, _) => hostile.truncate(at),
                    (1, _) => hostile[at] ^= 1 << (round % 8),
                    (2, len) => hostile[at..len.min(at + 90)].fill(round as u8),
                    _ => hostile.extend(bytes.iter().take(200)),
                }
                let copy = tempfile::tempdir().expect("directory");
                copy_dir(case.path(), copy.path());
                let place = copy.path().join(path.strip_prefix(case.path()).expect("within"));
                fs::write(place, hostile).expect("writes");
                let Ok(before) = examine(&disk(), copy.path()) else { continue };
                if let Ok(repaired) = repair(&disk(), copy.path()) {
                    let worse = repaired.after.problems.len() > before.problems.len();
                    assert!(!worse, "{path:?}, {round}: {before:?}\n{repaired:?}");
                }
            }
        }
    }
}
