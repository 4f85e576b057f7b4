//! Journal files that segments have taken over, damaged or lost, and what a repair makes of it.

use super::super::history::copy_dir;
use super::*;
use crate::disk::{Disk, OsDisk};
use crate::doctor;
use std::sync::Arc;

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

fn texts_with_gaps(log: &TopicLog) -> Vec<String> {
    let (mut next, mut all) = (0, Vec::new());
    loop {
        let batch = read(log, next, ALL).expect("reads");
        if batch.records.is_empty() {
            return all;
        }
        next = batch.next.0;
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).expect("text");
        all.extend(batch.records.iter().map(|(_, bytes)| text(bytes)));
    }
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
        let lost = doctor::Lost { topic: TopicId(hit), first: next, end: next + 1 };
        assert_eq!(problems[0].lost, [lost], "{problems:?}");
        assert!(repaired.after.problems.is_empty(), "{repaired:?}");
        let kept = copy.path().join("quarantine").join(&name);
        assert_eq!(fs::read(kept).expect("is kept"), bytes);
        let store = open_large(copy.path());
        assert_eq!(texts(&topic(&store, 3 - hit)), expected(3 - hit, 0..15), "byte {at}");
        let mut left = expected(hit, 0..15);
        left.remove(next as usize);
        assert_eq!(texts_with_gaps(&topic(&store, hit)), left, "only what was hit is gone");
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
    assert_eq!(left.start, Offset(1), "what does not hold is in quarantine, and no more");
    assert_eq!(texts_with_gaps(&topic(&store, 1)), expected(1, 1..40));
}
