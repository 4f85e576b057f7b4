//! Bytes of checkpoints: pinned, whole, and never a panic.

use super::*;
use danube_core::sequence::{Origin, Sequences};
use danube_core::subscription::progress::{Progress, Step};
use danube_core::{Offset, ProducerId};
use expect_test::expect_file;
use proptest::prelude::*;
use std::fmt::Write as _;

fn sample() -> Checkpoint {
    let mut progress = Progress::at(Offset(4));
    progress.apply(&Step::Finished { first: Offset(6), end: Offset(9) });
    let (offset, reason) = (Offset(5), "no".to_owned());
    progress.apply(&Step::Failed { offset, attempt: 2, blocked: true, reason });
    let segment = SegmentRef {
        base: 3,
        end: 8,
        generation: 9,
        bytes: 400,
        records: 4,
        first_time: 1000,
        last_time: 2000,
        journal: None,
    };
    let taken = SegmentRef { base: 8, end: 20, generation: 10, journal: Some(5), ..segment };
    let mut sequences = Sequences::default();
    let mut origin = Origin { producer: ProducerId(77), epoch: 2, after: 0, first_sequence: 500 };
    sequences.stored(&origin, 2, Offset(3));
    origin.first_sequence = 502;
    sequences.stored(&origin, 2, Offset(6));
    let busy = TopicPoint {
        epoch: 2,
        settled: 8,
        floor: 7,
        time: 2000,
        tail_lost: true,
        synced_mode: false,
        segments: vec![segment, taken],
        sequences,
        progress: BTreeMap::from([(SubscriptionId(3), Tracked { progress, anchored: true })]),
        damage: None,
    };
    let damage = Some(("journal-1.log".to_owned(), 64, "gone".to_owned()));
    let stopped = TopicPoint { epoch: 1, synced_mode: true, damage, ..TopicPoint::default() };
    let topics = BTreeMap::from([(TopicId(5), busy), (TopicId(6), stopped)]);
    Checkpoint { id: 11, incarnation: 7, journal_from: 12, journal_lsn: 345, topics }
}

#[test]
fn a_checkpoints_bytes_are_pinned_and_decode_to_the_same() {
    let bytes = encode(&sample());
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", line.join(" ")).expect("writes to a string");
    }
    expect_file!["testdata/checkpoint.hex"].assert_eq(&text);
    assert_eq!(decode(&bytes), Some((CHECKPOINT_VERSION, Some(sample()))));
}

#[test]
fn a_checkpoint_of_the_version_before_opens() {
    let text = include_str!("testdata/checkpoint-2.hex");
    let bytes = text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex"));
    let mut before = sample();
    for point in before.topics.values_mut() {
        point.segments.retain(|segment| segment.journal.is_none());
    }
    assert_eq!(decode(&bytes.collect::<Vec<u8>>()), Some((2, Some(before))));
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let bytes = encode(&sample());
    let content = |bytes: &[u8]| decode(bytes).and_then(|(_, content)| content);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(content(&damaged), None, "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert_eq!(content(&bytes[..len]), None, "cut to {len}");
    }
}

proptest! {
    /// Bodies whose checksum is right, as only a fault of ours would make them.
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), count in 0_u32..4) {
        let mut bytes = encode(&sample());
        bytes.truncate(64);
        bytes[44..48].copy_from_slice(&count.to_le_bytes());
        bytes[48..56].copy_from_slice(&(body.len() as u64).to_le_bytes());
        bytes[56..60].copy_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[12..64]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes.extend(&body);
        prop_assert!(decode(&bytes).is_some());
    }
}
