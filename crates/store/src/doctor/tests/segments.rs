//! Damaged segments of either kind: what is said to be lost is what a repair loses, and no more.

use super::ward::{MESSAGES, Ward, change, sample, text};
use super::*;
use crate::segment::FOOTER_LEN;
use proptest::prelude::*;
use std::ops::Range;

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
            let both = it.offsets(2).start..it.offsets(3).end;
            vec![both]
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
            let all = 0..ward.end();
            ward.check("nothing of it holds", &[all]);
        }
        let ward = sample(place).copy();
        fs::remove_file(&ward.path).expect("removes");
        let all = 0..ward.end();
        let lost = if place == In::Taken { vec![] } else { vec![all] };
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
    let Range { start: first, end } = ward.offsets(2);
    let told = repaired.before.problems.iter().flat_map(|it| &it.lost).collect::<Vec<_>>();
    assert_eq!(told, [&Lost { topic: TopicId(1), first, end }]);
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
