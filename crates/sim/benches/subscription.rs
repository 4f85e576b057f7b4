//! How fast the subscription engine is by itself: pairs of a delivery and its ack, per second and
//! core, with no log, no stream and no network.
//!
//! `cargo bench -p danube-sim --bench subscription [-- NAME]`. A case takes the clock along (a
//! millisecond per 1,000 pairs), drains what streams were given turn by turn, and acks in the order
//! of delivery. Times are those of the processor (where Linux tells them), so that a busy machine
//! does not spoil them; for instruction counts run a case with `--profile-time` under callgrind.
//!
//! Law: nothing is asserted about time here; the figures are read by people.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use danube_core::subscription::{Config, Effect, Event, Item, Progress, Subscription};
use danube_core::{ConsumerId, FailurePolicy, Offset, SubscriptionType, Tick};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Pairs of one measured run; long enough for what each begins with not to count.
const PAIRS: u64 = 300_000;
/// Room of each stream, as in the broker.
const ROOM: u32 = 32;

/// What is measured.
struct Case {
    name: &'static str,
    kind: SubscriptionType,
    keys: usize,
    consumers: u64,
    window_max: u32,
    /// How many deliveries a connection takes before the engine hears of it.
    turn: usize,
}

const CASES: &[Case] = &[
    case("shared", SubscriptionType::Shared, 1, 3, 256, 32),
    case("shared_one_by_one", SubscriptionType::Shared, 1, 3, 256, 1),
    case("shared_wide_window", SubscriptionType::Shared, 1, 400, 10_000, 32),
    case("exclusive", SubscriptionType::Exclusive, 1, 1, 256, 32),
    case("key_shared_10k_keys", SubscriptionType::KeyShared, 10_000, 3, 256, 32),
    case("key_shared_one_by_one", SubscriptionType::KeyShared, 10_000, 3, 256, 1),
    case("key_shared_hot_keys", SubscriptionType::KeyShared, 100, 3, 256, 32),
    case("key_shared_400_consumers", SubscriptionType::KeyShared, 10_000, 400, 10_000, 32),
    // More keys can go than the window lets out: all consumers have something to wait for.
    case("key_shared_400_narrow", SubscriptionType::KeyShared, 10_000, 400, 256, 32),
];

const fn case(
    name: &'static str,
    kind: SubscriptionType,
    keys: usize,
    consumers: u64,
    window_max: u32,
    turn: usize,
) -> Case {
    Case { name, kind, keys, consumers, window_max, turn }
}

fn subscription(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("subscription");
    group.sample_size(10).throughput(Throughput::Elements(PAIRS));
    for case in CASES {
        group.bench_function(case.name, |bencher| {
            bencher.iter_custom(|times| {
                let began = clock();
                (0..times).for_each(|_| assert_eq!(run(case, black_box(PAIRS)), PAIRS));
                clock() - began
            });
        });
    }
    group.finish();
}

criterion_group!(benches, subscription);
criterion_main!(benches);

/// Time that this thread has had a processor; else time.
fn clock() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = spent.and_then(|text| text.split_whitespace().next()?.parse().ok());
    spent.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// Takes `total` messages through the engine; how many were acked.
fn run(case: &Case, total: u64) -> u64 {
    let keys: Vec<Arc<str>> = (0..case.keys).map(|n| Arc::from(format!("key-{n}"))).collect();
    let config = Config::new(case.kind, FailurePolicy::default(), case.window_max);
    let mut subscription = Subscription::new(config, Progress::default(), Offset(total));
    let mut effects = Vec::new();
    // The first messages may have been out when the broker died; a seek lays that suspicion.
    subscription.step(Tick(0), Event::Seek { to: Offset(0) }, &mut effects);
    for id in 1..=case.consumers {
        let consumer = ConsumerId(id);
        subscription.step(Tick(0), Event::Opened { consumer, room: ROOM }, &mut effects);
    }
    let mut taken: Vec<u32> = vec![0; case.consumers as usize + 1];
    let mut out: VecDeque<Offset> = VecDeque::new();
    let mut turn: Vec<Event> = Vec::new();
    let mut done = 0;
    while done < total {
        let now = Tick(done / 1_000);
        let mut fetch = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Deliver { consumer, offset, .. } => {
                    taken[consumer.0 as usize] += 1;
                    out.push_back(offset);
                }
                Effect::Fetch { from, max } => fetch = Some((from, max)),
                _ => {}
            }
        }
        if let Some((from, max)) = fetch {
            let next = Offset((from.0 + u64::from(max)).min(total));
            // Neighbours in the log have different keys, as from many producers.
            let key = |offset: u64| {
                keys[(offset.wrapping_mul(7_919) % case.keys as u64) as usize].clone()
            };
            let items = (from.0..next.0)
                .map(|offset| Item { offset: Offset(offset), key: key(offset), len: 100 })
                .collect();
            turn.push(Event::Fetched { items, next });
        }
        for (id, count) in taken.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            let consumer = ConsumerId(id as u64);
            turn.push(Event::Drained { consumer, count: std::mem::take(count) });
        }
        for offset in out.drain(..out.len().min(case.turn)) {
            turn.push(Event::Acked { offset, attempt: None });
            done += 1;
        }
        for event in turn.drain(..) {
            subscription.step(now, event, &mut effects);
        }
    }
    assert_eq!(subscription.progress().cursor(), Offset(total));
    done
}
