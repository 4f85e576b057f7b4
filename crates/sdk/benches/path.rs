//! What a message costs in this library alone: time and allocations, without a network.
//!
//! `cargo bench -p danube-sdk` prints a line per path. Times are of one thread; they are the best of
//! several rounds, since whatever else runs on a machine only ever makes them longer.

use bytes::Bytes;
use danube_sdk::measured::{Publishing, Receiving};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Messages of a round.
const MESSAGES: u32 = 100_000;
/// Rounds of which the best counts.
const ROUNDS: u32 = 10;

fn main() {
    println!("| path | batch | payload | ns/message | messages/s | allocations/message |");
    println!("|---|---|---|---|---|---|");
    for (batch, len) in [(1, 1024), (100, 1024), (100, 100), (1_000, 100)] {
        let payload = Bytes::from(vec![b'd'; len]);
        let mut publishing = Publishing::new(batch);
        measure("publish", batch, len, || {
            publishing.round(&payload);
        });
        let mut receiving = Receiving::new(batch, &payload);
        measure("receive and ack", batch, len, || {
            receiving.round();
        });
    }
}

fn measure(path: &str, batch: u32, len: usize, mut round: impl FnMut()) {
    let mut run = || {
        let started = Instant::now();
        (0..MESSAGES / batch).for_each(|_| round());
        started.elapsed()
    };
    run();
    let region = Region::new(COUNTING);
    let times: Vec<Duration> = (0..ROUNDS).map(|_| run()).collect();
    let stats = region.change();
    let allocations = stats.allocations + stats.reallocations;
    let best = times.into_iter().min().unwrap_or_default();
    let ns = best.as_secs_f64() * 1e9 / f64::from(MESSAGES);
    let each = allocations as f64 / f64::from(MESSAGES * ROUNDS);
    println!("| {path} | {batch} | {len} | {ns:.0} | {:.2} M | {each:.3} |", 1e3 / ns);
}
