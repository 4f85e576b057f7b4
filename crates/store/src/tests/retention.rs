//! What goes by age and size, and finding offsets by time.

use super::*;
use crate::Clock;
use danube_core::{Retention, Tick, WallMs};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A clock that a test moves.
#[derive(Default)]
struct Hand {
    wall: AtomicU64,
    tick: AtomicU64,
}

impl Hand {
    fn pass(&self, ms: u64) {
        self.wall.fetch_add(ms, Ordering::Relaxed);
        self.tick.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn wall(&self) -> WallMs {
        WallMs(self.wall.load(Ordering::Relaxed))
    }

    fn tick(&self) -> Tick {
        Tick(self.tick.load(Ordering::Relaxed))
    }
}

fn open_at(dir: &Path, hand: &Arc<Hand>) -> Store {
    let options = StoreOptions {
        journal_files_keep: 0,
        cache_bytes_max: 0,
        segment_bytes_max: 30_000,
        clock: Arc::<Hand>::clone(hand),
        ..options(dir)
    };
    Store::open(options, &mut |_| {}).expect("opens")
}

fn offset_at(log: &TopicLog, time: u64) -> u64 {
    let (tell, answers) = mpsc::sync_channel(1);
    log.offset_at(WallMs(time), move |outcome| tell.send(outcome).expect("somebody waits"));
    wait(&answers).expect("answers").0
}

/// 60 messages, one a second from 1,000,000 on; the last ones are in the journal.
fn filled(dir: &Path) -> (Arc<Hand>, Store, TopicLog) {
    let hand = Arc::new(Hand::default());
    hand.pass(1_000_000);
    let store = open_at(dir, &hand);
    let log = topic(&store, 1);
    for at in 0..60 {
        put(&log, &format!("{at} {}", "x".repeat(5_000)));
        hand.pass(1_000);
    }
    store.tend().expect("tends");
    assert!(store.stats().segments > 5);
    (hand, store, log)
}

#[test]
fn offsets_are_found_by_time_in_segments_and_journal_and_after_a_restart() {
    let dir = tempfile::tempdir().expect("directory");
    let (hand, store, log) = filled(dir.path());
    let check = |log: &TopicLog| {
        assert_eq!(offset_at(log, 0), 0);
        for at in 0..60 {
            assert_eq!(offset_at(log, 1_000_000 + at * 1_000), at);
            assert_eq!(offset_at(log, 1_000_001 + at * 1_000), at + 1);
        }
    };
    check(&log);
    drop(store);
    let store = open_at(dir.path(), &hand);
    check(&topic(&store, 1));
    // A clock that was set back never makes times fall.
    hand.wall.store(5, Ordering::Relaxed);
    put(&topic(&store, 1), "late");
    assert_eq!(offset_at(&topic(&store, 1), 1_059_000), 59);
    assert_eq!(offset_at(&topic(&store, 1), 1_059_001), 61);
}

#[test]
fn age_takes_what_every_subscription_has_finished_and_reads_tell_the_gap() {
    let dir = tempfile::tempdir().expect("directory");
    let (hand, store, log) = filled(dir.path());
    log.set_retention(Retention { time_ms: Some(100_000), ..Retention::FOREVER });
    let tend_at_start = |store: &Store, log: &TopicLog| {
        store.tend().expect("tends");
        log.bounds().start.0
    };
    hand.pass(70_000);
    assert_eq!(tend_at_start(&store, &log), 0, "nobody has said who reads it");
    log.set_subscriptions([(SubscriptionId(1), Offset(12))]);
    let start = tend_at_start(&store, &log);
    assert!((5..=12).contains(&start), "{start}");
    log.set_subscriptions([]);
    let start = tend_at_start(&store, &log);
    assert!((20..=30).contains(&start), "{start}");
    let batch = read(&log, 3, ReadLimit { records_max: 1, bytes_max: 1 }).expect("reads");
    assert_eq!((batch.start.0, batch.records[0].0.0), (start, start));
    drop(store);
    let store = open_at(dir.path(), &hand);
    assert_eq!(topic(&store, 1).bounds().start.0, start);
    assert_eq!(texts(&topic(&store, 1)).len() as u64, 60 - start);
}

#[test]
fn a_clock_that_jumps_takes_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let (hand, store, log) = filled(dir.path());
    log.set_retention(Retention { time_ms: Some(500_000), ..Retention::FOREVER });
    log.set_subscriptions([]);
    hand.wall.fetch_add(1 << 40, Ordering::Relaxed);
    store.tend().expect("tends");
    assert_eq!(log.bounds().start, Offset(0));
}

#[test]
fn size_takes_the_oldest_segments() {
    let dir = tempfile::tempdir().expect("directory");
    let (_hand, store, log) = filled(dir.path());
    log.set_subscriptions([]);
    log.set_retention(Retention { bytes: Some(100_000), ..Retention::FOREVER });
    store.tend().expect("tends");
    let stats = store.stats();
    let start = log.bounds().start.0;
    assert!((30..=45).contains(&start), "{start} {stats:?}");
    log.set_subscriptions([(SubscriptionId(1), Offset(50))]);
    log.set_retention(Retention { bytes: Some(0), past_unfinished: true, ..Retention::FOREVER });
    store.tend().expect("tends");
    assert_eq!(store.stats().segments, 0, "the policy says so");
    assert_eq!(texts(&log).len() as u64, 60 - log.bounds().start.0);
}
