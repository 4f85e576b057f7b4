//! Damaged segments of either kind: what is said to be lost is what a repair loses, and no more.

use super::*;
use crate::ReadLimit;
use crate::frame::FRAME_HEADER_LEN;
use crate::segment::{BlockHeader, FOOTER_LEN, HEADER_LEN, decode_taken, frames_path, survey};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

const MESSAGES: u64 = 60;

fn text(id: u32, at: u64) -> String {
    format!("{id}: {at}: {}", "x".repeat(20_000 + (at as usize * 3700) % 9000))
}

/// A stopped data directory with topics 1 and 2 in segments, one of them of topic 1 chosen.
struct Ward {
    dir: tempfile::TempDir,
    /// The chosen segment's file.
    path: PathBuf,
    /// The file that has its messages.
    messages: PathBuf,
    /// Its blocks or frames: bytes of that file, and offsets.
    places: Vec<(Range<usize>, Range<u64>)>,
}

fn sample(place: In) -> &'static Ward {
    static SAMPLES: [OnceLock<Ward>; 2] = [OnceLock::new(), OnceLock::new()];
    SAMPLES[usize::from(place == In::Taken)].get_or_init(|| Ward::make(place))
}

impl Ward {
    fn make(place: In) -> Ward {
        let dir = tempfile::tempdir().expect("directory");
        let options = StoreOptions {
            background: false,
            journal_files_keep: 0,
            spare_files_max: 0,
            file_bytes_max: 1 << 20,
            adopt_frame_bytes_min: if place == In::Taken { 0 } else { 32 << 10 },
            ..StoreOptions::new(dir.path(), Incarnation(1))
        };
        let store = Store::open(options, &mut |_| {}).expect("opens");
        for at in 0..MESSAGES {
            for id in [1, 2] {
                let appended = put(&store.topic(TopicId(id), Epoch(1)), &text(id, at));
                assert_eq!(appended, Ok(at));
            }
        }
        store.tend().expect("tends");
        store.tend().expect("tends");
        drop(store);
        Ward::of(dir)
    }

    fn of(dir: tempfile::TempDir) -> Ward {
        let listed = fs::read_dir(dir.path().join("segments")).expect("lists");
        let ids = listed.filter_map(|entry| SegmentId::parse(&entry.expect("entry").path()));
        let ids = ids.filter(|id| id.topic == TopicId(1));
        let id = ids.min_by_key(|id| id.base).expect("has segments");
        let segment = survey(&OsDisk, dir.path(), id).expect("holds");
        let path = id.path(dir.path());
        let bytes = fs::read(&path).expect("reads");
        let (messages, places): (PathBuf, Vec<_>) = if let Some(sequence) = segment.journal {
            let index = &bytes[HEADER_LEN..bytes.len() - FOOTER_LEN];
            let batches = decode_taken(index, sequence).expect("is an index");
            let places = batches.iter().map(|batch| {
                let at = batch.position as usize;
                (at..at + FRAME_HEADER_LEN + batch.payload_len as usize, batch.first..batch.end())
            });
            (frames_path(dir.path(), sequence), places.collect())
        } else {
            let (mut at, mut places) = (HEADER_LEN, Vec::new());
            while let Some(header) =
                bytes[at..].first_chunk().and_then(|bytes| BlockHeader::decode(bytes, &id))
            {
                let end = at + header.block_len() as usize;
                places.push((at..end, header.first..header.first + u64::from(header.count)));
                at = end;
            }
            (path.clone(), places)
        };
        assert!(places.len() > 5, "{places:?}");
        Ward { dir, path, messages, places }
    }

    fn copy(&self) -> Ward {
        let dir = tempfile::tempdir().expect("directory");
        copy_dir(self.dir.path(), dir.path());
        Ward::of(dir)
    }

    fn end(&self) -> u64 {
        self.places.last().expect("has some").1.end
    }

    /// Offsets in the block or frame `at`.
    fn offsets(&self, at: usize) -> Range<u64> {
        self.places[at].1.clone()
    }

    /// Flips a byte of the block or frame `at`, `within` bytes behind its beginning.
    fn flip(&self, at: usize, within: usize) {
        change(&self.messages, |bytes| bytes[self.places[at].0.start + within] ^= 0x20);
    }

    /// What is said to be lost, what is lost by a repair, and that this is the same.
    fn check(&self, what: &str, lost: &[Range<u64>]) {
        let dir = self.dir.path();
        let before = examine(&disk(), dir).expect("can be looked at");
        assert!(!before.is_healthy(), "{what}");
        let said: Vec<Lost> = before.problems.iter().flat_map(|it| it.lost.clone()).collect();
        let topic = TopicId(1);
        let expected = lost.iter().map(|it| Lost { topic, first: it.start, end: it.end });
        assert_eq!(said, expected.collect::<Vec<_>>(), "{what}: {:?}", before.problems);
        let damaged: Vec<_> = before.problems.iter().map(|it| it.path.clone()).collect();
        let originals = everything(dir);

        let repaired = repair(&disk(), dir).expect("repairs");
        assert!(repaired.after.problems.is_empty(), "{what}: {:?}", repaired.after.problems);
        assert!(repaired.left.is_empty(), "{what}: {:?}", repaired.left);
        for (path, bytes) in originals.iter().filter(|(path, _)| damaged.contains(path)) {
            let kept = dir.join("quarantine").join(path.file_name().expect("name"));
            assert_eq!(&fs::read(kept).expect("is kept"), bytes, "{what}");
        }
        let again = repair(&disk(), dir).expect("repairs");
        assert!(again.before.problems.is_empty() && again.done.is_empty(), "{what}: {again:?}");

        for start in [2, 3] {
            let store = open(dir, start);
            let all = |id, is_lost: &dyn Fn(&u64) -> bool| {
                let offsets = (0..MESSAGES).filter(|at| !is_lost(at));
                offsets.map(|at| (at, text(id, at))).collect::<Vec<_>>()
            };
            let one = store.topic(topic, Epoch(1));
            let mut found = texts(&one).expect("reads");
            found.truncate(found.len() - (start - 2) as usize);
            let is_lost = |at: &u64| lost.iter().any(|lost| lost.contains(at));
            assert_eq!(found, all(1, &is_lost), "{what}");
            assert_eq!(
                texts(&store.topic(TopicId(2), Epoch(1))).expect("reads"),
                all(2, &|_| false),
                "{what}"
            );
            // Who had not finished what is lost goes on behind it.
            for at in lost.iter().flat_map(Clone::clone) {
                let next = found.iter().find(|(offset, _)| *offset > at).expect("follows").0;
                assert_eq!(first_from(&one, at), next, "{what}: from {at}");
            }
            let next = MESSAGES + u64::from(start - 2);
            assert_eq!(put(&one, "goes on"), Ok(next), "{what}");
            store.tend().expect("tends");
        }
    }
}

/// The offset at which a read from `from` on begins.
fn first_from(log: &TopicLog, mut from: u64) -> u64 {
    loop {
        let (tell, answer) = mpsc::sync_channel(1);
        let limit = ReadLimit { records_max: 1, bytes_max: 1 };
        log.read(Offset(from), limit, move |it| tell.send(it).expect("somebody waits"));
        let batch = answer.recv().expect("answers").expect("reads");
        if let Some((offset, _)) = batch.records.first() {
            assert_eq!(batch.start, *offset, "what was passed over is told");
            return offset.0;
        }
        assert!(batch.next.0 > from, "it does not wait for what does not come");
        from = batch.next.0;
    }
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("reads");
    change(&mut bytes);
    fs::write(path, bytes).expect("writes");
}

/// What happens to a copy, and what is lost by it.
type Harm = fn(&Ward) -> Vec<Range<u64>>;

#[test]
fn what_holds_of_a_segment_outlives_damage_of_the_rest() {
    let table: [(&str, Harm); 12] = [
        ("a payload in the middle", |it| {
            it.flip(3, 90);
            vec![it.offsets(3)]
        }),
        ("a header in the middle", |it| {
            it.flip(3, 9);
            vec![it.offsets(3)]
        }),
        ("the first payload", |it| {
            it.flip(0, 90);
            vec![it.offsets(0)]
        }),
        ("the first header", |it| {
            it.flip(0, 20);
            vec![it.offsets(0)]
        }),
        ("the last payload", |it| {
            it.flip(it.places.len() - 1, 90);
            vec![it.offsets(it.places.len() - 1)]
        }),
        ("the last header", |it| {
            it.flip(it.places.len() - 1, 1);
            vec![it.offsets(it.places.len() - 1)]
        }),
        ("two places", |it| {
            it.flip(1, 90);
            it.flip(4, 5);
            vec![it.offsets(1), it.offsets(4)]
        }),
        ("two places side by side", |it| {
            it.flip(2, 70);
            it.flip(3, 5);
            vec![it.offsets(2).start..it.offsets(3).end]
        }),
        ("the footer", |it| {
            change(&it.path, |bytes| *bytes.last_mut().expect("has some") ^= 1);
            vec![]
        }),
        ("the index", |it| {
            let behind = FOOTER_LEN + 3;
            change(&it.path, |bytes| *bytes.iter_mut().nth_back(behind).expect("has one") ^= 1);
            vec![]
        }),
        ("the header, and a payload", |it| {
            it.flip(2, 90);
            change(&it.path, |bytes| bytes[9] ^= 1);
            vec![it.offsets(2)]
        }),
        ("header, footer, and two headers of messages", |it| {
            it.flip(0, 3);
            it.flip(3, 30);
            change(&it.path, |bytes| {
                bytes[20] ^= 1;
                *bytes.last_mut().expect("has some") ^= 1;
            });
            vec![it.offsets(0), it.offsets(3)]
        }),
    ];
    for place in [In::Segments, In::Taken] {
        for (what, harm) in table {
            let ward = sample(place).copy();
            let lost = harm(&ward);
            ward.check(&format!("{place:?}: {what}"), &lost);
        }
    }
}

#[test]
fn a_segment_that_is_cut_short_keeps_what_comes_before_and_one_that_is_gone_goes() {
    for place in [In::Segments, In::Taken] {
        let ward = sample(place).copy();
        let cut = ward.places[4].0.end as u64 - 1;
        fs::File::options()
            .write(true)
            .open(&ward.messages)
            .expect("opens")
            .set_len(cut)
            .expect("");
        let lost = ward.offsets(4).start..ward.end();
        if place == In::Segments {
            ward.check("cut within a block", &[lost]);
        } else {
            // What topic 2 has behind the cut is gone, too.
            let report = examine(&disk(), ward.dir.path()).expect("can be looked at");
            let found = report.problems.iter().flat_map(|it| it.lost.clone());
            let found: Vec<Lost> = found.filter(|it| it.topic == TopicId(1)).collect();
            assert_eq!(found, [Lost { topic: TopicId(1), first: lost.start, end: lost.end }]);
            let repaired = repair(&disk(), ward.dir.path()).expect("repairs");
            assert!(repaired.after.problems.is_empty(), "{:?}", repaired.after.problems);
        }
        // Of topic 2's frames in the same file nothing is hit.
        for zeros in [false, true] {
            let ward = sample(place).copy();
            for (bytes, _) in &ward.places {
                change(&ward.messages, |all| all[bytes.clone()].fill(0));
            }
            if zeros {
                change(&ward.path, |bytes| bytes.fill(0));
            }
            ward.check("nothing of it holds", &[0..ward.end()]);
        }
        let ward = sample(place).copy();
        fs::remove_file(&ward.path).expect("removes");
        let lost = if place == In::Taken { vec![] } else { vec![0..ward.end()] };
        ward.check("its file is missing", &lost);
    }
}

#[test]
fn damage_that_the_checkpoint_remembers_goes_with_the_damage() {
    for place in [In::Segments, In::Taken] {
        let ward = sample(place).copy();
        let whole = fs::read(&ward.messages).expect("reads");
        ward.flip(2, 90);
        let store = open(ward.dir.path(), 2);
        texts(&store.topic(TopicId(1), Epoch(1))).expect_err("is damaged");
        store.tend().expect("tends");
        put(&store.topic(TopicId(2), Epoch(1)), "another topic's").expect("goes on");
        store.tend().expect("tends");
        drop(store);
        // Somebody put a good copy in its place.
        fs::write(&ward.messages, whole).expect("writes");
        let repaired = repair(&disk(), ward.dir.path()).expect("repairs");
        assert!(repaired.after.problems.is_empty(), "{:?}", repaired.after.problems);
        let store = open(ward.dir.path(), 3);
        let found = texts(&store.topic(TopicId(1), Epoch(1))).expect("reads");
        assert_eq!(found.len() as u64, MESSAGES, "nothing is lost");
    }
}

#[test]
fn without_a_checkpoint_what_holds_of_blocks_is_found_and_the_rest_is_in_quarantine() {
    let ward = sample(In::Segments).copy();
    ward.flip(2, 90);
    change(&ward.path, |bytes| *bytes.last_mut().expect("has some") ^= 1);
    for copy in [1, 2] {
        fs::remove_file(ward.dir.path().join(format!("checkpoint.{copy}"))).expect("removes");
    }
    let damaged = fs::read(&ward.path).expect("reads");
    let repaired = repair(&disk(), ward.dir.path()).expect("repairs");
    assert!(repaired.after.problems.is_empty(), "{:?}", repaired.after.problems);
    let store = open(ward.dir.path(), 2);
    let found = texts(&store.topic(TopicId(1), Epoch(1))).expect("reads");
    let kept = (0..MESSAGES).filter(|at| !ward.offsets(2).contains(at));
    assert_eq!(found, kept.map(|at| (at, text(1, at))).collect::<Vec<_>>());
    let quarantine = everything(&ward.dir.path().join("quarantine"));
    assert!(quarantine.iter().any(|(_, bytes)| *bytes == damaged));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_was_not_hit_is_read_after_a_repair(
        taken in any::<bool>(),
        hits in prop::collection::vec((0.0..1.0_f64, 1_usize..30_000, any::<u8>()), 1..6),
        index in any::<bool>(),
    ) {
        let ward = sample(if taken { In::Taken } else { In::Segments }).copy();
        let original = fs::read(&ward.messages).expect("reads");
        let mut bytes = original.clone();
        for (at, len, seed) in hits {
            let at = (at * bytes.len() as f64) as usize;
            let hit = bytes.iter_mut().skip(at).take(len);
            hit.for_each(|byte| *byte = byte.wrapping_mul(31) ^ seed);
        }
        fs::write(&ward.messages, &bytes).expect("writes");
        if index {
            change(&ward.path, |bytes| *bytes.last_mut().expect("has some") ^= 1);
        }
        let before = examine(&disk(), ward.dir.path()).expect("can be looked at");
        let repaired = repair(&disk(), ward.dir.path()).expect("repairs");
        prop_assert!(repaired.after.problems.is_empty(), "{:?}", repaired.after.problems);
        let store = open(ward.dir.path(), 2);
        let found = texts(&store.topic(TopicId(1), Epoch(1))).expect("reads");
        prop_assert!(found.iter().all(|(at, it)| *it == text(1, *at)));
        let lost = before.problems.iter().flat_map(|it| it.lost.clone());
        let lost: Vec<Lost> = lost.filter(|it| it.topic == TopicId(1)).collect();
        for at in 0..MESSAGES {
            let said = lost.iter().any(|lost| lost.first <= at && at < lost.end);
            let there = found.iter().any(|(offset, _)| *offset == at);
            prop_assert!(said != there, "offset {at}: {lost:?}");
            let place = ward.places.iter().find(|(_, offsets)| offsets.contains(&at));
            let whole = place.is_none_or(|(at, _)| bytes[at.clone()] == original[at.clone()]);
            prop_assert_eq!(there, whole, "offset {}", at);
        }
    }
}
