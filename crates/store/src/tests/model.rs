//! Random histories against the simplest model: a vector per topic.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Op {
    Append { topic: u32, sizes: Vec<usize>, sync: WalSyncMode },
    Read { topic: u32, from: u64, records_max: usize, bytes_max: usize },
    Finish { topic: u32, first: u64, count: u64 },
    Forget { topic: u32 },
    Tend,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let topic = || 0_u32..4;
    let sync = prop_oneof![
        Just(WalSyncMode::Async),
        Just(WalSyncMode::OsCacheFlush),
        Just(WalSyncMode::FsyncBatch)
    ];
    let sizes = prop::collection::vec(prop_oneof![0_usize..60, 15_000_usize..18_000], 1..5);
    prop_oneof![
        8 => (topic(), sizes, sync).prop_map(|(topic, sizes, sync)| Op::Append { topic, sizes, sync }),
        6 => (topic(), 0_u64..40, 0_usize..9, 0_usize..9000).prop_map(
            |(topic, from, records_max, bytes_max)| Op::Read { topic, from, records_max, bytes_max }
        ),
        2 => (topic(), 0_u64..40, 0_u64..9)
            .prop_map(|(topic, first, count)| Op::Finish { topic, first, count }),
        1 => topic().prop_map(|topic| Op::Forget { topic }),
        2 => Just(Op::Tend),
        1 => Just(Op::Reopen),
    ]
}

#[derive(Default)]
struct Model {
    /// Life of each topic: a forgotten one comes back under another id.
    lives: BTreeMap<u32, u32>,
    records: BTreeMap<TopicId, Vec<Bytes>>,
    progress: BTreeMap<TopicId, danube_core::subscription::progress::Progress>,
}

impl Model {
    fn id(&self, topic: u32) -> TopicId {
        TopicId(topic + 10 * self.lives.get(&topic).copied().unwrap_or(0))
    }

    fn check(&self, log: &TopicLog, from: u64, limit: ReadLimit) {
        let records = self.records.get(&log.id()).map_or(&[][..], Vec::as_slice);
        assert_eq!(log.bounds().next.0, records.len() as u64);
        let batch = read(log, from, limit).expect("reads");
        assert!(batch.records.len() <= limit.records_max.max(1));
        assert_eq!(batch.records.is_empty(), from >= records.len() as u64);
        for ((offset, record), at) in batch.records.iter().zip(from..) {
            assert_eq!(offset.0, at);
            assert_eq!(*record, records[at as usize]);
        }
        assert_eq!(batch.next.0, from + batch.records.len() as u64);
    }
}

fn run(ops: Vec<Op>, cache_bytes_max: usize) {
    let dir = tempfile::tempdir().expect("directory");
    let options = || StoreOptions {
        cache_bytes_max,
        journal_files_keep: 0,
        spare_files_max: 1,
        segment_bytes_max: 90_000,
        ..options(dir.path())
    };
    let reopen = || Store::open(options(), &mut |_| {}).expect("opens");
    let mut store = Some(reopen());
    let mut model = Model::default();
    let mut fill = 0_u8;
    for op in ops {
        let log = |topic| store.as_ref().expect("open").topic(model.id(topic), Epoch(1));
        match op {
            Op::Append { topic, sizes, sync } => {
                let records: Vec<Bytes> = sizes
                    .into_iter()
                    .map(|size| {
                        fill = fill.wrapping_add(1);
                        Bytes::from(vec![fill; size])
                    })
                    .collect();
                let log = log(topic);
                let appended = wait(&start_append(&log, records.clone(), sync)).expect("appends");
                let known = model.records.entry(log.id()).or_default();
                assert_eq!(appended.first.0, known.len() as u64);
                known.extend(records);
                // An `async` append is visible only after the write that comes next.
                record(&log, 7, Step::Moved { cursor: Offset(0) }).expect("records");
            }
            Op::Read { topic, from, records_max, bytes_max } => {
                model.check(&log(topic), from, ReadLimit { records_max, bytes_max });
            }
            Op::Finish { topic, first, count } => {
                let log = log(topic);
                let known = model.records.get(&log.id()).map_or(0, Vec::len) as u64;
                let (first, end) = (Offset(first.min(known)), Offset((first + count).min(known)));
                record(&log, 1, Step::Finished { first, end }).expect("records");
                let progress = model.progress.entry(log.id()).or_default();
                progress.apply(&Step::Finished { first, end });
                assert_eq!(log.subscriptions().get(&SubscriptionId(1)), Some(&*progress));
            }
            Op::Forget { topic } => {
                store.as_ref().expect("open").forget_topic(model.id(topic));
                *model.lives.entry(topic).or_default() += 1;
            }
            Op::Tend => store.as_ref().expect("open").tend().expect("tends"),
            Op::Reopen => {
                drop(store.take());
                store = Some(reopen());
            }
        }
    }
    drop(store.take());
    let store = reopen();
    for topic in 0..4 {
        let log = store.topic(model.id(topic), Epoch(1));
        for from in 0..40 {
            model.check(&log, from, ReadLimit { records_max: 3, bytes_max: 20_000 });
        }
        let progress = model.progress.get(&log.id());
        assert_eq!(log.subscriptions().get(&SubscriptionId(1)), progress);
    }
    // A deleted topic may have lost a file to the deletion; the catalog says that it is gone.
    store.retain(&|id| (0..4).any(|topic| model.id(topic) == id));
    assert_eq!(store.stats().topics_damaged, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_vector_per_topic(
        ops in prop::collection::vec(op(), 1..40),
        cache in prop_oneof![Just(0), Just(2_000), Just(40_000), Just(1_usize << 24)],
    ) {
        run(ops, cache);
    }
}
