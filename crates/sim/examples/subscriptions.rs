//! Plays histories of the subscription engine until one breaks an invariant.
//!
//! `cargo run --release -p danube-sim --example subscriptions -- [SEED [HISTORIES [OPERATIONS]]]`;
//! without HISTORIES it goes on until it is stopped. A failure prints its seed; the same seed with
//! HISTORIES 1 and the same OPERATIONS plays it again.

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let first = numbers.first().copied().unwrap_or(1);
    let histories = numbers.get(1).copied().unwrap_or(u64::MAX);
    let operations = numbers.get(2).map_or(2_000, |n| *n as u32);
    let began = Instant::now();
    let (mut steps, mut deliveries, mut restarts, mut read_again) = (0, 0, 0, 0);
    for seed in first..first.saturating_add(histories) {
        match danube_sim::run(seed, operations, None) {
            Ok(report) => {
                steps += report.steps;
                deliveries += report.deliveries;
                restarts += report.restarts;
                read_again += report.read_again;
            }
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        if (seed - first + 1).is_multiple_of(1_000) || seed - first + 1 == histories {
            let minutes = began.elapsed().as_secs_f64() / 60.0;
            println!(
                "{} histories, {steps} steps ({:.1} million a minute), {deliveries} deliveries, \
                 {restarts} restarts, {read_again} read again",
                seed - first + 1,
                steps as f64 / minutes / 1e6
            );
        }
    }
    ExitCode::SUCCESS
}
