//! What a message costs in a broker alone: time and allocations, without a network.
//!
//! `cargo bench -p danube-broker --bench path` prints a line per path; `danube_broker::measured` says
//! what each of them runs. A message that goes to several subscriptions counts once for each. Times
//! are of one serving thread and one batch under way; they are the best of several rounds, since
//! whatever else runs on a machine only ever makes them longer. Allocations are those of the whole
//! process in the median round. One that grows counts with what it grows by, and a buffer that is used
//! again does not count: so one copy of every payload that is kept shows as 1, and one that goes
//! through a buffer of the connection hardly shows.

use danube_broker::measured::{Delivering, FanningOut, Gathering, Load, Publishing, Round, Stand};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rounds that are measured.
const ROUNDS: u32 = 9;

fn main() {
    println!(
        "| path | batch | payload | subscriptions | ns/message | allocations/message | \
         bytes allocated/payload byte |"
    );
    println!("|---|---|---|---|---|---|---|");
    // A round is small, so that all of them fit the first file of a log: nothing is copied beside.
    for (batch, len, messages) in [(1, 1024, 2_000), (100, 1024, 2_000), (1_000, 100, 20_000)] {
        let load = Load { batch, len, messages };
        measure("gRPC alone", &load, 0, |stand| Box::new(Gathering::new(stand, &load)));
        measure("publish", &load, 0, |stand| Box::new(Publishing::new(stand, &load)));
        for count in [1, 10] {
            measure("deliver and ack", &load, count, |stand| {
                Box::new(Delivering::new(stand, &load, count))
            });
        }
        for count in [1, 10] {
            measure("publish and deliver, in memory", &load, count, |stand| {
                Box::new(FanningOut::new(stand, &load, count))
            });
        }
    }
}

fn measure(
    path: &str,
    load: &Load,
    subscriptions: u32,
    open: impl FnOnce(&Stand) -> Box<dyn Round + '_>,
) {
    let dir = tempfile::tempdir().expect("a directory");
    let stand = Stand::start(dir.path());
    let (mut allocations, mut bytes, mut best) = (Vec::new(), Vec::new(), Duration::MAX);
    let mut round = open(&stand);
    round.prepare();
    round.run();
    for _ in 0..ROUNDS {
        round.prepare();
        let region = Region::new(COUNTING);
        let started = Instant::now();
        round.run();
        best = best.min(started.elapsed());
        let stats = region.change();
        allocations.push(stats.allocations + stats.reallocations);
        bytes.push(stats.bytes_allocated);
    }
    drop(round);
    stand.stop();
    let Load { len, messages, batch } = *load;
    let messages = f64::from(messages) * f64::from(subscriptions.max(1));
    let ns = best.as_secs_f64() * 1e9 / messages;
    let each = median(allocations) / messages;
    let per_byte = median(bytes) / (messages * len as f64);
    println!(
        "| {path} | {batch} | {len} | {subscriptions} | {ns:.0} | {each:.3} | {per_byte:.3} |"
    );
}

fn median(mut of_rounds: Vec<usize>) -> f64 {
    of_rounds.sort_unstable();
    of_rounds[of_rounds.len() / 2] as f64
}
