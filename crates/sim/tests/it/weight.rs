//! What a subscription weighs: bytes on the heap per message, counted by the allocator.
//!
//! The counter is the whole process's; what the tests beside this one hold is nothing against a
//! million messages.

use super::HEAP;
use danube_core::subscription::{Config, Effect, Event, Item, Progress, Subscription};
use danube_core::{ConsumerId, FailurePolicy, Offset, SubscriptionType, Tick};
use std::sync::Arc;

const MILLION: u64 = 1_000_000;

/// An engine that has taken in everything, with as much as its window out and drained.
fn load(kind: SubscriptionType, window_max: u32, total: u64, keys: &[Arc<str>]) -> Subscription {
    let config = Config {
        lookahead_max: u32::MAX,
        body_bytes_max: u64::MAX,
        ..Config::new(kind, FailurePolicy::default(), window_max)
    };
    let mut engine = Subscription::new(config, Progress::default(), Offset(total));
    // The first messages may have been out when the broker died; a seek lays that suspicion.
    let mut effects = Vec::new();
    engine.step(Tick(0), Event::Seek { to: Offset(0) }, &mut effects);
    let consumer = ConsumerId(1);
    engine.step(Tick(0), Event::Opened { consumer, room: u32::MAX }, &mut effects);
    let mut now = 0;
    while !effects.is_empty() {
        now += 7;
        let mut events = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Fetch { from, max } => {
                    let next = Offset((from.0 + u64::from(max)).min(total));
                    let key = |offset: u64| keys[(offset % keys.len() as u64) as usize].clone();
                    let item = |offset| Item { offset: Offset(offset), key: key(offset), len: 1 };
                    let items = (from.0..next.0).map(item).collect();
                    events.push(Event::Fetched { items, next });
                }
                Effect::Deliver { .. } => events.push(Event::Drained { consumer, count: 1 }),
                _ => {}
            }
        }
        for event in events {
            engine.step(Tick(now), event, &mut effects);
        }
    }
    engine
}

/// Bytes on the heap per message of what `build` makes.
fn weigh<T>(messages: u64, build: impl FnOnce() -> T) -> (u64, T) {
    let before = HEAP.current_usage();
    let built = build();
    let bytes = HEAP.current_usage().saturating_sub(before) as u64;
    (bytes / messages, built)
}

#[test]
fn a_message_that_is_not_settled_weighs_less_than_64_bytes() {
    let keys: Vec<Arc<str>> = (0..10_000).map(|n| Arc::from(format!("key-{n}"))).collect();
    let window_max = MILLION as u32;
    let (bytes, mut engine) =
        weigh(MILLION, || load(SubscriptionType::Shared, window_max, MILLION, &keys));
    println!("in flight, Shared: {bytes} bytes a message");
    assert_eq!(engine.stats(Tick(0)).in_flight, MILLION);
    assert!(bytes < 64, "{bytes} bytes for a message in flight");

    // Every second one is acknowledged: half a million are out, as many are holes.
    let mut effects = Vec::new();
    for offset in (1..MILLION).step_by(2) {
        let event = Event::Acked { offset: Offset(offset), attempt: None };
        engine.step(Tick(0), event, &mut effects);
        effects.clear();
    }
    let (bytes, restarted) = weigh(MILLION / 2, || engine.progress().clone());
    println!("acknowledged out of order: {bytes} bytes a message");
    assert_eq!(restarted.finished_above_cursor().count() as u64, MILLION / 2);
    assert!(bytes < 64, "{bytes} bytes for a hole");
    drop((engine, restarted));

    let (bytes, engine) =
        weigh(MILLION, || load(SubscriptionType::KeyShared, window_max, MILLION, &keys));
    println!("held behind 10,000 keys, KeyShared: {bytes} bytes a message");
    assert_eq!(engine.stats(Tick(0)).ready, MILLION - 10_000);
    assert!(bytes < 64, "{bytes} bytes for a message that waits for its key");
}
