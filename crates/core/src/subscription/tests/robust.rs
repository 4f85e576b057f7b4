//! Size and hostility: big windows stay cheap, and any event with any numbers is survived.

use super::super::*;
use super::script::config;
use proptest::prelude::*;
use std::sync::Arc;

/// Runs a subscription over `total` messages; `settle` acks the oldest or the newest first.
/// Anything quadratic in the window or the look-ahead would take minutes here.
fn run(setup: &str, total: u64, keys: u64, consumers: u64, newest_first: bool) -> Vec<u64> {
    let mut subscription = Subscription::new(config(setup), Progress::default(), Offset(total));
    let mut events: Vec<Event> = Vec::new();
    for id in 1..=consumers {
        events.push(Event::Opened { consumer: ConsumerId(id), room: 20_000 });
    }
    let mut received = vec![0; consumers as usize];
    let mut with_clients: std::collections::VecDeque<Offset> = std::collections::VecDeque::new();
    let mut effects = Vec::new();
    loop {
        for event in std::mem::take(&mut events) {
            subscription.step(Tick(0), event, &mut effects);
        }
        for effect in std::mem::take(&mut effects) {
            match effect {
                Effect::Fetch { from, max } => {
                    let next = Offset((from.0 + u64::from(max)).min(total));
                    let item = |offset: u64| Item {
                        offset: Offset(offset),
                        key: Arc::from(format!("k{}", offset % keys)),
                        len: 100,
                    };
                    let items = (from.0..next.0).map(item).collect();
                    events.push(Event::Fetched { items, next });
                }
                Effect::Deliver { consumer, offset, .. } => {
                    received[consumer.0 as usize - 1] += 1;
                    with_clients.push_back(offset);
                    events.push(Event::Drained { consumer, count: 1 });
                }
                _ => {}
            }
        }
        if events.is_empty() {
            let oldest =
                if newest_first { with_clients.pop_back() } else { with_clients.pop_front() };
            match oldest {
                Some(offset) => events.push(Event::Acked { offset, attempt: None }),
                None => break,
            }
        }
    }
    assert_eq!(subscription.why(Tick(0)), Why::Drained);
    received
}

const BIG: &str = "5,30000,1000,60000,block window=10000 lookahead=65536";

#[test]
fn thirty_six_messages_are_twelve_for_each_of_three() {
    assert_eq!(run("shared", 36, 1, 3, false), [12, 12, 12]);
}

#[test]
fn a_big_shared_window_is_cheap() {
    run(&format!("shared {BIG}"), 100_000, 1, 3, true);
}

#[test]
fn a_big_window_of_many_keys_is_cheap() {
    run(&format!("keyshared {BIG}"), 100_000, 30_000, 3, true);
}

#[test]
fn a_look_ahead_full_of_one_key_is_cheap() {
    run(&format!("keyshared {BIG}"), 70_000, 1, 3, false);
}

fn offsets() -> impl Strategy<Value = Offset> {
    prop_oneof![(0_u64..10).prop_map(Offset), any::<u64>().prop_map(Offset), Just(Offset(u64::MAX))]
}

fn consumers() -> impl Strategy<Value = ConsumerId> {
    prop_oneof![(0_u64..4).prop_map(ConsumerId), any::<u64>().prop_map(ConsumerId)]
}

fn events() -> impl Strategy<Value = Event> {
    let item = || {
        (offsets(), "[ab]?").prop_map(|(offset, key)| Item { offset, key: key.into(), len: 100 })
    };
    let attempt = || {
        let attempt = (1_u32..4, consumers(), 0_u32..2);
        prop::option::of(attempt.prop_map(|(number, consumer, epoch)| AttemptId {
            number,
            consumer,
            epoch,
        }))
    };
    let number = prop_oneof![0_u32..5, Just(u32::MAX)];
    prop_oneof![
        offsets().prop_map(|next| Event::Tail { next }),
        (prop::collection::vec(item(), 0..6), offsets())
            .prop_map(|(items, next)| Event::Fetched { items, next }),
        Just(Event::FetchFailed),
        (offsets(), prop::collection::vec(item(), 0..6), offsets())
            .prop_map(|(from, items, next)| Event::Refetched { from, items, next }),
        offsets().prop_map(|from| Event::RefetchFailed { from }),
        (consumers(), prop::collection::vec("[ab*?]{0,3}", 0..3))
            .prop_map(|(consumer, key_filters)| Event::Attached { consumer, key_filters }),
        (consumers(), number.clone()).prop_map(|(consumer, room)| Event::Opened { consumer, room }),
        consumers().prop_map(|consumer| Event::ReadsAhead { consumer }),
        (consumers(), number.clone())
            .prop_map(|(consumer, count)| Event::Drained { consumer, count }),
        (consumers(), any::<bool>())
            .prop_map(|(consumer, clean)| Event::Closed { consumer, clean }),
        consumers().prop_map(|consumer| Event::Detached { consumer }),
        (offsets(), attempt()).prop_map(|(offset, attempt)| Event::Acked { offset, attempt }),
        (offsets(), attempt(), any::<Option<u64>>()).prop_map(|(offset, attempt, delay_ms)| {
            Event::Nacked { offset, attempt, delay_ms, reason: None }
        }),
        (offsets(), attempt(), prop_oneof![0_u64..3_000, Just(u64::MAX)])
            .prop_map(|(offset, attempt, by_ms)| Event::Extended { offset, attempt, by_ms }),
        offsets().prop_map(|offset| Event::DeadLettered { offset }),
        offsets().prop_map(|offset| Event::DeadLetterFailed { offset, reason: "no".to_owned() }),
        number.clone().prop_map(Event::RateChanged),
        number.prop_map(Event::WindowChanged),
        offsets().prop_map(|to| Event::Seek { to }),
        Just(Event::Deadline),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_event_panics(
        kind in prop::sample::select(vec!["exclusive", "failover", "shared", "keyshared"]),
        poison in prop::sample::select(vec!["block", "dlq", "drop"]),
        start in offsets(),
        steps in prop::collection::vec((events(), 0_u64..5_000), 0..60),
    ) {
        let setup = format!("{kind} 1,1000,100,1000,{poison} window=3 lookahead=5 bytes=250");
        let mut subscription = Subscription::new(config(&setup), Progress::at(start), Offset(0));
        let mut now = Tick(0);
        let mut effects = Vec::new();
        for (event, pause_ms) in steps {
            now = now.after_ms(pause_ms);
            subscription.step(now, event, &mut effects);
            let _ = (subscription.why(now), subscription.stats(now), subscription.stall(now));
            let _ = subscription.next_deadline();
            prop_assert!(subscription.slots.counts().window_used() as usize <= subscription.slots.len());
        }
    }
}
