//! A disk that is full, for as long as it takes: what is small goes on, and so does everything
//! once there is room.

use crate::sim::disk::SimDisk;
use crate::sim::faults::{Crash, Fault, Plan};
use crate::sim::random::Random;
use bytes::Bytes;
use danube_core::subscription::progress::{ProgressRecord, Step};
use danube_core::{Epoch, Incarnation, Offset, Retention, SubscriptionId, TopicId, WalSyncMode};
use danube_store::{AppendError, ReadLimit, Store, StoreOptions, TopicLog};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;

const BIG: TopicId = TopicId(1);
const SMALL: TopicId = TopicId(2);
const READER: SubscriptionId = SubscriptionId(1);

/// A store on a disk that fills up, and what it has acknowledged.
struct Tight {
    random: Random,
    disk: SimDisk,
    options: StoreOptions,
    store: Option<Store>,
    kept: BTreeMap<(TopicId, u64), Bytes>,
    finished: u64,
}

impl Tight {
    fn new(seed: u64) -> Tight {
        let mut random = Random::new(seed, 3);
        let options = StoreOptions {
            file_bytes_max: random.pick(&[64 << 10, 100 << 10]),
            journal_files_keep: random.below(3) as usize,
            spare_files_max: random.below(2) as usize,
            adopt_frame_bytes_min: random.pick(&[0, 1000, 32 << 10]),
            background: false,
            ..StoreOptions::new("/data", Incarnation(0))
        };
        let disk = SimDisk::new(seed, false);
        let kept = BTreeMap::new();
        let mut tight = Tight { random, disk, options, store: None, kept, finished: 0 };
        tight.start(Plan::default());
        tight
    }

    fn start(&mut self, plan: Plan) {
        self.disk.begin(plan);
        self.options.incarnation.0 += 1;
        let disk = Arc::new(self.disk.clone());
        let store = Store::open_on(disk, self.options.clone(), &mut |_| {});
        self.store = Some(store.expect("a full disk keeps nobody from starting"));
    }

    fn end(&mut self, crash: Crash) {
        self.disk.end();
        self.store = None;
        self.disk.settle(crash);
    }

    fn log(&self, id: TopicId) -> TopicLog {
        self.store.as_ref().expect("open").topic(id, Epoch(1))
    }

    fn append(&mut self, id: TopicId, len: usize) -> Result<(), AppendError> {
        let record = Bytes::from(vec![self.kept.len() as u8; len]);
        let mode = self.random.pick(&[WalSyncMode::OsCacheFlush, WalSyncMode::FsyncBatch]);
        let (tell, answer) = mpsc::sync_channel(1);
        self.log(id).append(vec![record.clone()], mode, move |outcome| {
            tell.send(outcome).expect("somebody waits");
        });
        let first = answer.recv().expect("an answer")?.first.0;
        assert!(self.kept.insert((id, first), record).is_none(), "offset {first} twice");
        Ok(())
    }

    fn finish(&mut self) -> Result<(), AppendError> {
        let step = Step::Finished { first: Offset(0), end: Offset(self.finished + 1) };
        let (tell, answer) = mpsc::sync_channel(1);
        let record = ProgressRecord { subscription: READER, step };
        self.log(BIG).record(vec![record], WalSyncMode::FsyncBatch, move |outcome| {
            tell.send(outcome).expect("somebody waits");
        });
        answer.recv().expect("an answer")?;
        self.finished += 1;
        Ok(())
    }

    fn tend(&self) {
        // It may well fail for want of room, but nothing may come of that.
        let _ = self.store.as_ref().expect("open").tend();
    }

    /// Appends until there is no room, and a good while longer.
    fn fill(&mut self) {
        let mut refused = 0;
        while refused < 20 {
            let len = self.random.pick(&[20 << 10, 30 << 10, 50 << 10]);
            if let Err(error) = self.append(BIG, len) {
                assert_eq!(error.kind(), danube_core::FaultKind::Retry, "{error}");
                refused += 1;
            }
            if self.random.chance(10) {
                self.tend();
            }
        }
    }

    fn go_on_with_what_is_small(&mut self) {
        for _ in 0..8 {
            self.append(SMALL, 100).expect("a small message has room");
            self.finish().expect("progress has room");
            // A large one has none, unless a file was given back.
            let _ = self.append(BIG, 25 << 10);
            if self.random.chance(30) {
                self.tend();
            }
        }
    }

    fn check(&self) {
        for id in [BIG, SMALL] {
            let log = self.log(id);
            let mut seen = BTreeMap::new();
            while seen.len() < self.kept.range((id, 0)..=(id, u64::MAX)).count() {
                let from = seen.last_key_value().map_or(0, |((_, last), _)| last + 1);
                let (tell, answer) = mpsc::sync_channel(1);
                let limit = ReadLimit { records_max: usize::MAX, bytes_max: usize::MAX };
                log.read(Offset(from), limit, move |outcome| {
                    tell.send(outcome).expect("somebody waits");
                });
                let batch = answer.recv().expect("an answer").expect("reads");
                assert!(!batch.records.is_empty(), "{id:?}: nothing from {from} on");
                seen.extend(batch.records.into_iter().map(|(at, bytes)| ((id, at.0), bytes)));
            }
            assert!(self.kept.range((id, 0)..=(id, u64::MAX)).eq(&seen), "{id:?}");
            assert_eq!(log.damage(), None);
        }
        let progress = self.log(BIG).subscription(READER, Offset(0));
        assert_eq!(progress.first_unfinished(Offset(0)), Offset(self.finished));
    }
}

fn full(from: u64, room: u64) -> Plan {
    Plan { faults: vec![(from..u64::MAX, Fault::Full(room))], ..Plan::default() }
}

#[test]
fn a_full_disk_refuses_what_is_large_and_takes_what_is_small() {
    for seed in 0..60 {
        let mut tight = Tight::new(seed);
        tight.append(SMALL, 100).expect("there is room");
        let room = tight.random.below(600 << 10);
        // At once, or after the first file is made.
        let from = tight.random.pick(&[0, 30]);
        tight.end(Crash::Kill);
        tight.start(full(from, room));
        tight.fill();
        tight.go_on_with_what_is_small();
        tight.check();
        if tight.random.chance(50) {
            // Not even a start needs room, and what is small goes on again.
            let crash = tight.random.pick(&[Crash::Kill, Crash::Power]);
            tight.end(crash);
            tight.kept.clear();
            tight.start(full(0, 0));
            tight.finish().expect("progress has room");
        } else {
            tight.disk.mend();
            for _ in 0..4 {
                tight.append(BIG, 50 << 10).expect("there is room again, without a restart");
                tight.tend();
            }
            tight.check();
            tight.end(Crash::Kill);
            tight.start(Plan::default());
            tight.check();
        }
    }
}

#[test]
fn what_is_finished_gives_its_room_back_on_a_full_disk() {
    for seed in 0..40 {
        let mut tight = Tight::new(seed);
        // Several full files, or one that cannot be reserved as a whole.
        let (file, room) = tight.random.pick(&[(100 << 10, 500 << 10), (8 << 20, 3 << 20)]);
        tight.end(Crash::Kill);
        tight.options.file_bytes_max = file;
        tight.start(full(0, room));
        let log = tight.log(BIG);
        log.set_retention(Retention { drop_finished: true, ..Retention::FOREVER });
        log.set_subscriptions([(READER, Offset(0))]);
        let other = tight.log(SMALL);
        other.set_retention(Retention::FOREVER);
        other.set_subscriptions([]);
        tight.fill();
        while tight.finished < tight.log(BIG).bounds().next.0 {
            tight.finish().expect("progress has room");
        }
        for _ in 0..4 {
            tight.tend();
            // A pass may leave something to the writer.
            tight.store.as_ref().expect("open").settle();
        }
        for _ in 0..4 {
            let outcome = tight.append(BIG, 50 << 10);
            outcome.unwrap_or_else(|error| panic!("seed {seed}: nothing was given back: {error}"));
        }
    }
}
