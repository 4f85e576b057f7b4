//! Damaged bytes: a torn end is cut, a damaged middle stops its topic, and nothing panics.

use super::*;
use crate::OpenError;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Bytes that a clean close adds.
const MARK_LEN: usize = crate::frame::FRAME_HEADER_LEN;

/// The bytes of a journal with records 1 to 10 in turn to `topics` topics, as a process leaves
/// them that is killed: file name, bytes without reserved zeros, and where each record's frame
/// begins.
struct Sample {
    name: String,
    bytes: Vec<u8>,
    begins: Vec<usize>,
    truth: BTreeMap<u32, Vec<String>>,
}

fn sample(topics: u32) -> Sample {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let mut begins = Vec::new();
    let mut truth: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for at in 1..=10_u32 {
        let (id, text) = (1 + at % topics, format!("record {at}"));
        begins.push(64 + store.stats().bytes as usize);
        put(&topic(&store, id), &text);
        truth.entry(id).or_default().push(text);
    }
    store.close().expect("closes");
    let file = journal_files(dir.path()).remove(0);
    let name = file.file_name().expect("name").to_string_lossy().into_owned();
    let mut bytes = fs::read(file).expect("reads");
    bytes.truncate(bytes.len() - MARK_LEN);
    assert_eq!(begins.len(), 10);
    Sample { name, bytes, begins, truth }
}

impl Sample {
    fn open(&self, bytes: &[u8]) -> (tempfile::TempDir, Result<Store, OpenError>) {
        let dir = tempfile::tempdir().expect("directory");
        fs::write(dir.path().join(&self.name), bytes).expect("writes");
        let store = Store::open(options(dir.path()), &mut |_| {});
        (dir, store)
    }

    /// Which record byte `at` belongs to, from 0; `None` in the file header.
    fn record_at(&self, at: usize) -> Option<usize> {
        self.begins.iter().rposition(|begin| *begin <= at)
    }
}

#[test]
fn a_torn_end_is_cut_and_the_log_goes_on() {
    let sample = sample(1);
    let (last, len) = (sample.begins[9], sample.bytes.len());
    let flipped = {
        let mut bytes = sample.bytes.clone();
        bytes[len - 1] ^= 1;
        bytes
    };
    let zeros = [sample.bytes.clone(), vec![0; 4096]].concat();
    let garbage = [sample.bytes.clone(), b"DNF1 garbage that is no frame".repeat(9)].concat();
    let cases: [(&str, &[u8], usize); 6] = [
        ("a: within the length", &sample.bytes[..last + 13], 9),
        ("b: within the header", &sample.bytes[..last + 30], 9),
        ("c: within the payload", &sample.bytes[..len - 3], 9),
        ("d: whole with a bad checksum", &flipped, 9),
        ("e: zeros behind", &zeros, 10),
        ("garbage behind", &garbage, 10),
    ];
    for (what, bytes, expected) in cases {
        let (dir, store) = sample.open(bytes);
        let store = store.expect(what);
        let log = topic(&store, 1);
        assert_eq!(texts(&log).len(), expected, "{what}");
        assert_eq!(put(&log, "new"), Offset(expected as u64), "{what}");
        drop(store);
        assert_eq!(texts(&topic(&open(dir.path()), 1)).len(), expected + 1, "{what}");
    }
}

#[test]
fn any_flipped_byte_stops_at_most_its_own_topic() {
    let sample = sample(3);
    for at in 0..sample.bytes.len() {
        let mut bytes = sample.bytes.clone();
        bytes[at] ^= 0x40;
        let (_dir, store) = sample.open(&bytes);
        let store = store.expect("opens");
        let hit = sample.record_at(at);
        for (id, truth) in &sample.truth {
            let log = topic(&store, *id);
            let its_own = hit.is_some_and(|record| 1 + (record as u32 + 1) % 3 == *id);
            if !its_own {
                assert_eq!(texts(&log), *truth, "byte {at}, topic {id}");
            } else if hit == Some(9) {
                assert_eq!(texts(&log), truth[..truth.len() - 1], "byte {at}: cut");
            } else {
                let place = format!("byte {} of ", sample.begins[hit.expect("a record")]);
                let said = read(&log, 0, ALL).expect_err("is stopped").to_string();
                assert!(said.contains(&sample.name) && said.contains(&place), "{at}: {said}");
                let refused = append(&log, "x", WalSyncMode::Async).expect_err("is stopped");
                assert_eq!(refused.to_string(), said);
            }
        }
    }
}

#[test]
fn damage_in_a_file_that_is_not_the_last_is_no_torn_end() {
    let sample = sample(1);
    let dir = tempfile::tempdir().expect("directory");
    fs::write(dir.path().join(&sample.name), &sample.bytes).expect("writes");
    let store = open(dir.path());
    put(&topic(&store, 2), "in the second file");
    drop(store);
    for len in [0, 40, 64, sample.begins[5], sample.bytes.len() - 1] {
        fs::write(dir.path().join(&sample.name), &sample.bytes[..len]).expect("writes");
        let store = open(dir.path());
        assert!(topic(&store, 1).damage().is_some(), "cut to {len}");
        assert_eq!(texts(&topic(&store, 2)), ["in the second file"], "cut to {len}");
    }
}

/// A directory with the sample's journal file and an empty one behind it, as a process leaves them
/// that has just gone on to its next file.
fn with_a_next_file(sample: &Sample, bytes: &[u8], last_topic: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("directory");
    fs::write(dir.path().join(&sample.name), bytes).expect("writes");
    let next = crate::header::FileHeader {
        version: crate::header::FORMAT_VERSION,
        sequence: 1,
        incarnation: 1,
        start_lsn: 10,
        checkpoint: 0,
        previous: last_topic,
        previous_extras: false,
        boot: [0; 16],
    };
    fs::write(dir.path().join("journal-00000000000000000001.log"), next.encode()).expect("writes");
    dir
}

#[test]
fn the_last_frame_of_a_file_has_a_witness_in_the_next_one() {
    let sample = sample(3);
    for at in [0, 9, 30, 63] {
        let mut bytes = sample.bytes.clone();
        bytes[sample.begins[9] + at] ^= 0x10;
        let last_topic = 1 + 10 % 3;
        let dir = with_a_next_file(&sample, &bytes, last_topic);
        let store = open(dir.path());
        let place = topic(&store, last_topic).damage().expect("is stopped").position;
        assert_eq!(place, sample.begins[9] as u64, "byte {at}");
        assert_eq!(store.stats().topics_damaged, 1, "byte {at}");
        assert_eq!(store.lost_progress(), None, "it is known whose it was");
    }
}

#[test]
fn a_topic_that_only_lost_frames_can_have_had_is_stopped_and_lost_progress_is_told() {
    let sample = sample(10);
    let mut bytes = sample.bytes.clone();
    bytes[sample.begins[3]..sample.begins[6]].fill(0);
    let (_dir, store) = sample.open(&bytes);
    let store = store.expect("opens");
    let place = store.lost_progress().expect("three frames are gone");
    assert!(place.contains(&format!("byte {} of ", sample.begins[3])), "{place}");
    store.adopt((1..=11).map(TopicId));
    // Record n is the one of topic 1 + n % 10; records 4 to 6 are gone.
    let stopped: Vec<u32> = (1..=11).filter(|id| topic(&store, *id).damage().is_some()).collect();
    let before = [2, 3, 4];
    let lost = [5, 6, 7];
    assert_eq!(stopped, [&before[..], &lost[..], &[11][..]].concat(), "11 may have been there too");
    assert_eq!(texts(&topic(&store, 8)), sample.truth[&8]);
}

#[test]
fn a_topic_first_seen_behind_a_hole_by_its_progress_is_stopped() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    put(&topic(&store, 1), "before");
    let begin = 64 + store.stats().bytes as usize;
    put(&topic(&store, 2), "lost");
    put(&topic(&store, 1), "lost too");
    let end = 64 + store.stats().bytes as usize;
    record(&topic(&store, 2), 1, Step::Finished { first: Offset(0), end: Offset(0) }).expect("");
    store.close().expect("closes");
    let file = journal_files(dir.path()).remove(0);
    let mut bytes = fs::read(&file).expect("reads");
    bytes[begin..end].fill(0);
    fs::write(&file, bytes).expect("writes");
    let store = open(dir.path());
    assert!(topic(&store, 2).damage().is_some(), "its only message is gone");
}

#[test]
fn damage_found_by_a_read_stops_the_topic() {
    let sample = sample(2);
    let (dir, store) = sample.open(&sample.bytes);
    let store = store.expect("opens");
    let mut bytes = sample.bytes.clone();
    bytes[sample.begins[4] + 60] ^= 1;
    fs::write(dir.path().join(&sample.name), &bytes).expect("writes");
    let log = topic(&store, 2);
    let good = read(&log, 0, ALL).expect("what comes before is good");
    assert_eq!(good.records.len(), 2);
    let error = read(&log, good.next.0, ALL).expect_err("is damaged");
    assert!(matches!(error, ReadError::Damaged(_)), "{error}");
    assert_eq!(store.stats().topics_damaged, 1);
    assert_eq!(texts(&topic(&store, 1)), sample.truth[&1]);
}

#[test]
fn a_newer_format_and_a_wrong_name_are_refused_by_name() {
    let sample = sample(1);
    let header = crate::header::FileHeader {
        version: 9,
        sequence: 0,
        incarnation: 1,
        start_lsn: 0,
        checkpoint: 0,
        previous: 0,
        previous_extras: false,
        boot: [0; 16],
    };
    let newer = [&header.encode()[..], &sample.bytes[64..]].concat();
    let (_dir, store) = sample.open(&newer);
    let said = store.map(|_| ()).expect_err("is newer").to_string();
    assert!(said.contains(&sample.name) && said.contains("format 9"), "{said}");

    let dir = tempfile::tempdir().expect("directory");
    fs::write(dir.path().join("journal-00000000000000000005.log"), &sample.bytes).expect("writes");
    let error = Store::open(options(dir.path()), &mut |_| {}).map(|_| ()).expect_err("misnamed");
    assert!(matches!(error, OpenError::Misnamed { sequence: 0, .. }), "{error}");
}

#[test]
fn the_journal_of_another_catalog_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let starts = |number| StoreOptions { incarnation: Incarnation(number), ..options(dir.path()) };
    let store = Store::open(starts(7), &mut |_| {}).expect("opens");
    append(&topic(&store, 1), "kept", WalSyncMode::OsCacheFlush).expect("appends");
    store.close().expect("closes");
    for start in [1, 7] {
        let error = Store::open(starts(start), &mut |_| {}).map(|_| ()).expect_err("is foreign");
        let said = error.to_string();
        assert!(
            said.contains("process start 7") && said.contains(&format!("number {start}")),
            "{said}"
        );
    }
    let store = Store::open(starts(8), &mut |_| {}).expect("opens");
    assert_eq!(texts(&topic(&store, 1)), ["kept"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic_and_a_topic_that_runs_has_no_gap(
        cuts in prop::collection::vec((0.0..1.0_f64, 0_usize..200, any::<u8>(), any::<bool>()), 1..5),
        keep in 0.0..1.3_f64,
        tail in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let sample = sample(3);
        let mut bytes = sample.bytes.clone();
        for (at, len, seed, zero) in cuts {
            let at = (at * bytes.len() as f64) as usize;
            for (step, byte) in bytes.iter_mut().skip(at).take(len).enumerate() {
                *byte = if zero { 0 } else { byte.wrapping_mul(31).wrapping_add(seed) ^ step as u8 };
            }
        }
        bytes.truncate((keep * bytes.len() as f64) as usize);
        bytes.extend(tail);
        let (_dir, store) = sample.open(&bytes);
        if let Ok(store) = store {
            for (id, truth) in &sample.truth {
                let log = topic(&store, *id);
                if log.damage().is_none() {
                    let found = texts(&log);
                    prop_assert_eq!(&found[..], &truth[..found.len()]);
                    put(&log, "goes on");
                }
            }
        }
    }
}
