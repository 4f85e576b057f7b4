//! Bytes of segments: pinned, whole, and never a panic.

use super::*;
use crate::batch::{RecordBatch, RecordBatchBuilder};
use crate::disk::{Disk, OsDisk};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, NO_TOPIC};
use crate::header::{FILE_HEADER_LEN, journal_path};
use crate::topic::Batch;
use expect_test::expect_file;
use proptest::prelude::*;
use std::fmt::Write as _;

fn id() -> SegmentId {
    SegmentId { topic: TopicId(5), base: 3, generation: 9 }
}

fn one(record: &[u8]) -> RecordBatch {
    let mut builder = RecordBatchBuilder::default();
    builder.push(|out| out.extend_from_slice(record));
    builder.build().expect("has a record")
}

/// Messages 3, 4, 6 and 7 of topic 5, the last one a second later.
fn sample(dir: &Path) -> (SegmentRef, Vec<u8>) {
    OsDisk.make_dir(&dir.join(SEGMENT_DIR)).expect("makes");
    let mut writer = SegmentWriter::begin(&OsDisk, dir, id(), 0).expect("begins");
    for (offset, time, record) in
        [(3, 1000, "three"), (4, 1000, ""), (6, 1000, "six"), (7, 2000, "seven")]
    {
        writer.push(offset, time, &one(record.as_bytes()), 0..1).expect("takes it");
    }
    let segment = writer.finish(&OsDisk).expect("finishes");
    (segment, std::fs::read(id().path(dir)).expect("reads"))
}

fn read(dir: &Path, segment: &SegmentRef, from: u64) -> Result<Vec<(u64, String)>, SegmentFault> {
    let mut open = OpenSegment::open(&OsDisk, dir, id(), segment)?;
    let mut found = Vec::new();
    open.read(from, &mut |block| {
        let texts = block.batch.records().map(|it| String::from_utf8_lossy(&it).into_owned());
        found.extend((block.header.first..).zip(texts).filter(|(offset, _)| *offset >= from));
        true
    })?;
    Ok(found)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", line.join(" ")).expect("writes to a string");
    }
    text
}

#[test]
fn a_segments_bytes_are_pinned() {
    let dir = tempfile::tempdir().expect("directory");
    let (segment, bytes) = sample(dir.path());
    expect_file!["testdata/segment.hex"].assert_eq(&hex(&bytes));
    assert_eq!(segment.bytes, bytes.len() as u64);
    assert_eq!((segment.base, segment.end, segment.records), (3, 8, 4));
    assert_eq!((segment.first_time, segment.last_time), (1000, 2000));
}

#[test]
fn what_was_written_is_read_from_any_offset_and_found_by_time() {
    let dir = tempfile::tempdir().expect("directory");
    let (segment, _) = sample(dir.path());
    let all = [(3, "three"), (4, ""), (6, "six"), (7, "seven")];
    for from in 0..9 {
        let expected: Vec<(u64, String)> = all
            .iter()
            .filter(|(offset, _)| *offset >= from)
            .map(|(offset, text)| (*offset, (*text).to_owned()))
            .collect();
        assert_eq!(read(dir.path(), &segment, from).expect("reads"), expected, "from {from}");
    }
    let mut open = OpenSegment::open(&OsDisk, dir.path(), id(), &segment).expect("opens");
    for (time, offset) in [(0, Some(3)), (1000, Some(3)), (1001, Some(7)), (2001, None)] {
        assert_eq!(open.offset_at(time).expect("reads"), offset, "at {time}");
    }
}

#[test]
fn large_segments_are_found_by_their_index() {
    let dir = tempfile::tempdir().expect("directory");
    OsDisk.make_dir(&dir.path().join(SEGMENT_DIR)).expect("makes");
    let mut writer = SegmentWriter::begin(&OsDisk, dir.path(), id(), 0).expect("begins");
    for offset in 3..4000 {
        let record = vec![offset as u8; (offset % 1500) as usize];
        writer.push(offset, offset / 10, &one(&record), 0..1).expect("takes it");
    }
    let segment = writer.finish(&OsDisk).expect("finishes");
    let mut open = OpenSegment::open(&OsDisk, dir.path(), id(), &segment).expect("opens");
    // Forward in steps, as a reader of old history does, then anywhere.
    for from in (3..4000).step_by(77).chain([3999, 3, 2000, 17]) {
        let mut first = None;
        let mut left = 100;
        open.read(from, &mut |block| {
            for (offset, record) in (block.header.first..).zip(block.batch.records()) {
                if offset >= from {
                    first.get_or_insert(offset);
                    assert_eq!(record.len() as u64, offset % 1500);
                    left -= 1;
                }
            }
            left > 0
        })
        .expect("reads");
        assert_eq!(first, Some(from));
        let at = open.offset_at(from / 10).expect("reads");
        assert_eq!(at, Some((from / 10 * 10).max(3)), "{from}");
    }
}

/// Messages 3, 4 and 6 of topic 5 in journal file 2, the last one a second later.
fn taken_sample(dir: &Path) -> (SegmentRef, Vec<u8>) {
    OsDisk.make_dir(&dir.join(SEGMENT_DIR)).expect("makes");
    let mut bytes = vec![0; FILE_HEADER_LEN];
    let mut batches = Vec::new();
    for (first, time, records) in
        [(3, 1000, &[&b"three"[..], b"four"][..]), (6, 2000, &[&b"six"[..]])]
    {
        let mut batch = RecordBatchBuilder::default();
        records.iter().for_each(|record| batch.push(|out| out.extend_from_slice(record)));
        let batch = batch.build().expect("has a record");
        let (count, payload_len) = (batch.len() as u32, batch.byte_len() as u32);
        let position = bytes.len() as u64;
        batches.push(Batch { first, file: 2, position, time, count, payload_len });
        let header = FrameHeader {
            payload_crc: batch.crc(),
            payload_len,
            lsn: first,
            first,
            topic: 5,
            epoch: 1,
            count,
            previous: NO_TOPIC,
            kind: FrameKind::Messages,
            jump: false,
            synced_mode: true,
            extras: false,
            previous_extras: false,
            unsynced: 0,
            time,
        };
        bytes.extend(header.encode(2));
        bytes.extend(batch.payload());
        // What is another topic's.
        bytes.extend([7; 100]);
    }
    std::fs::write(frames_path(dir, 2), bytes).expect("writes");
    let segment = write_taken(&OsDisk, dir, id(), 2, &batches).expect("writes");
    (segment, std::fs::read(id().path(dir)).expect("reads"))
}

#[test]
fn the_bytes_of_a_segment_that_took_a_file_over_are_pinned_and_it_is_read() {
    let dir = tempfile::tempdir().expect("directory");
    let (segment, bytes) = taken_sample(dir.path());
    expect_file!["testdata/taken.hex"].assert_eq(&hex(&bytes));
    assert_eq!((segment.base, segment.end, segment.records), (3, 7, 3));
    assert_eq!((segment.first_time, segment.last_time, segment.journal), (1000, 2000, Some(2)));
    let frames = 2 * FRAME_HEADER_LEN + 4 + 5 + 4 + 4 + 4 + 3;
    assert_eq!(segment.bytes, (bytes.len() + frames) as u64);
    assert_eq!(survey(&OsDisk, dir.path(), id()).expect("is whole"), segment);
    let all = [(3, "three"), (4, "four"), (6, "six")];
    for from in 0..9 {
        let expected = all.iter().filter(|(offset, _)| *offset >= from);
        let expected: Vec<_> = expected.map(|(at, text)| (*at, (*text).to_owned())).collect();
        assert_eq!(read(dir.path(), &segment, from).expect("reads"), expected, "from {from}");
    }
    let mut open = OpenSegment::open(&OsDisk, dir.path(), id(), &segment).expect("opens");
    for (time, offset) in [(0, Some(3)), (1000, Some(3)), (1001, Some(6)), (2001, None)] {
        assert_eq!(open.offset_at(time).expect("reads"), offset, "at {time}");
    }
    // Under its other name, and under none.
    std::fs::rename(frames_path(dir.path(), 2), journal_path(dir.path(), 2)).expect("moves");
    assert_eq!(read(dir.path(), &segment, 0).expect("reads").len(), 3);
    std::fs::remove_file(journal_path(dir.path(), 2)).expect("removes");
    let fault = read(dir.path(), &segment, 0).expect_err("is missing");
    assert_eq!(fault.path(dir.path(), &id()), frames_path(dir.path(), 2));
}

#[test]
fn a_segment_of_the_other_kind_is_not_the_one_that_is_meant() {
    let dir = tempfile::tempdir().expect("directory");
    let (blocks, _) = sample(dir.path());
    let (taken, _) = taken_sample(dir.path());
    assert!(read(dir.path(), &taken, 0).is_ok());
    for other in [blocks, SegmentRef { journal: Some(3), ..taken }, SegmentRef { end: 8, ..taken }]
    {
        let fault = read(dir.path(), &other, 0).expect_err("is another");
        assert!(matches!(fault, SegmentFault::Damaged { journal: None, .. }), "{fault:?}");
    }
}

#[test]
fn an_entry_that_no_frame_can_have_is_refused() {
    let batch = Batch { first: 3, file: 2, position: 64, time: 1, count: 2, payload_len: 20 };
    let next = Batch { first: 5, position: 148, ..batch };
    let table = [
        (vec![batch, next], true),
        (vec![], false),
        (vec![Batch { count: 0, ..batch }], false),
        (vec![Batch { position: 63, ..batch }], false),
        (vec![Batch { position: u64::MAX, ..batch }], false),
        (vec![Batch { first: u64::MAX, ..batch }], false),
        (vec![Batch { payload_len: u32::MAX, ..batch }], false),
        (vec![batch, Batch { first: 4, ..next }], false),
        (vec![batch, Batch { position: 147, ..next }], false),
        (vec![next, batch], false),
    ];
    for (batches, holds) in table {
        let bytes = encode_taken(&batches);
        assert_eq!(decode_taken(&bytes, 2), holds.then_some(batches));
        assert_eq!(decode_taken(&[&bytes[..], &[0]].concat(), 2), None);
    }
}

proptest! {
    #[test]
    fn no_bytes_of_what_was_taken_over_make_it_panic_or_lie(
        cuts in prop::collection::vec((0.0..1.0_f64, 1_usize..40, any::<u8>()), 0..4),
        keep in 0.0..1.1_f64,
        frames in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().expect("directory");
        let (segment, mut bytes) = taken_sample(dir.path());
        let path = if frames { frames_path(dir.path(), 2) } else { id().path(dir.path()) };
        if frames {
            bytes = std::fs::read(&path).expect("reads");
        }
        for (at, len, seed) in cuts {
            let at = (at * bytes.len() as f64) as usize;
            bytes.iter_mut().skip(at).take(len).for_each(|byte| *byte = byte.wrapping_mul(31) ^ seed);
        }
        bytes.truncate((keep * bytes.len() as f64) as usize);
        std::fs::write(&path, &bytes).expect("writes");
        if let Ok(found) = read(dir.path(), &segment, 0) {
            prop_assert_eq!(found.len(), 3);
        }
        let _ = survey(&OsDisk, dir.path(), id());
        let _ = decode_taken(&bytes, 2);
    }

    #[test]
    fn no_bytes_make_it_panic_or_lie(
        cuts in prop::collection::vec((0.0..1.0_f64, 1_usize..40, any::<u8>()), 0..4),
        keep in 0.0..1.1_f64,
    ) {
        let dir = tempfile::tempdir().expect("directory");
        let (segment, mut bytes) = sample(dir.path());
        for (at, len, seed) in cuts {
            let at = (at * bytes.len() as f64) as usize;
            bytes.iter_mut().skip(at).take(len).for_each(|byte| *byte = byte.wrapping_mul(31) ^ seed);
        }
        bytes.truncate((keep * bytes.len() as f64) as usize);
        std::fs::write(id().path(dir.path()), &bytes).expect("writes");
        if let Ok(found) = read(dir.path(), &segment, 0) {
            prop_assert_eq!(found.len(), 4);
        }
        let mut block = [0; BLOCK_HEADER_LEN];
        block.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        prop_assert_eq!(BlockHeader::decode(&block, &id()), None);
        let _ = decode_index(&bytes);
    }
}

#[test]
fn names_and_segments_belong_together() {
    let dir = Path::new("/d");
    assert_eq!(SegmentId::parse(&id().path(dir)), Some(id()));
    for other in ["LOCK", "5-3-9.seg", "0000000005-00000000000000000003-0000000000000000000x.seg"] {
        assert_eq!(SegmentId::parse(&dir.join(other)), None, "{other}");
    }
    for sequence in [0, 7, u64::MAX] {
        assert_eq!(frames_sequence(&frames_path(dir, sequence)), Some(sequence));
    }
    for other in ["7.frames", "0000000000000000000x.frames", "00000000000000000007.log", ".frames"]
    {
        assert_eq!(frames_sequence(&dir.join(other)), None, "{other}");
    }
}
