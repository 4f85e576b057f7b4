//! A stopped data directory with a segment to be damaged, and what is held against a repair of it.

use super::*;
use crate::ReadLimit;
use crate::frame::FRAME_HEADER_LEN;
use crate::segment::{BlockHeader, FOOTER_LEN, HEADER_LEN, decode_taken, frames_path, survey};
use std::ops::Range;
use std::sync::OnceLock;

pub(super) const MESSAGES: u64 = 60;

pub(super) fn text(id: u32, at: u64) -> String {
    format!("{id}: {at}: {}", "x".repeat(20_000 + (at as usize * 3700) % 9000))
}

/// A stopped data directory with topics 1 and 2 in segments, one of them of topic 1 chosen.
pub(super) struct Ward {
    pub dir: tempfile::TempDir,
    /// The chosen segment's file.
    pub path: PathBuf,
    /// The file that has its messages.
    pub messages: PathBuf,
    /// Its blocks or frames: bytes of that file, and offsets.
    pub places: Vec<(Range<usize>, Range<u64>)>,
}

pub(super) fn sample(place: In) -> &'static Ward {
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

    pub fn copy(&self) -> Ward {
        let dir = tempfile::tempdir().expect("directory");
        copy_dir(self.dir.path(), dir.path());
        Ward::of(dir)
    }

    pub fn end(&self) -> u64 {
        self.places.last().expect("has some").1.end
    }

    /// Offsets in the block or frame `at`.
    pub fn offsets(&self, at: usize) -> Range<u64> {
        self.places[at].1.clone()
    }

    /// Flips a byte of the block or frame `at`, `within` bytes behind its beginning.
    pub fn flip(&self, at: usize, within: usize) {
        change(&self.messages, |bytes| bytes[self.places[at].0.start + within] ^= 0x20);
    }

    /// What is said to be lost, what is lost by a repair, and that this is the same.
    pub fn check(&self, what: &str, lost: &[Range<u64>]) {
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

pub(super) fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("reads");
    change(&mut bytes);
    fs::write(path, bytes).expect("writes");
}
