//! Many histories of the power-loss model, on all cores, with a report.
//!
//! `cargo run --release -p danube-store --example power_loss -- --histories 100000 --seed 1`
//! runs them and prints the seeds that are wrong; `--story SEED` tells one of them, and `--lie N`
//! plants bug number N of the harness's own first.
//!
//! Law: what it prints is enough to see the same again on any machine.

#[path = "../tests/it/sim/mod.rs"]
mod sim;

use sim::history::{self, Counts};
use sim::lies::Lie;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Wrong seeds that are told; a broken engine has more than anybody reads.
const TOLD_MAX: usize = 20;

fn main() -> ExitCode {
    let (mut histories, mut first, mut story, mut lie) = (10_000, 1, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().and_then(|text| text.parse::<u64>().ok());
        match (flag.as_str(), value) {
            ("--histories", Some(value)) => histories = value,
            ("--seed", Some(value)) => first = value,
            ("--story", Some(value)) => story = Some(value),
            ("--lie", Some(value)) => lie = Lie::ALL.get(value as usize).copied(),
            _ => {
                eprintln!(
                    "usage: power_loss [--histories COUNT] [--seed FIRST] [--story SEED] [--lie N]"
                );
                return ExitCode::from(2);
            }
        }
    }
    match story {
        Some(seed) => tell(seed, lie),
        None => run(first, histories, lie),
    }
}

fn tell(seed: u64, lie: Option<Lie>) -> ExitCode {
    let outcome = history::run(seed, lie, true);
    outcome.story.iter().for_each(|line| println!("{line}"));
    match outcome.violation {
        Some(violation) => {
            println!("seed {seed} is wrong: {violation}");
            ExitCode::from(1)
        }
        None => ExitCode::SUCCESS,
    }
}

fn run(first: u64, histories: u64, lie: Option<Lie>) -> ExitCode {
    let next = AtomicU64::new(first);
    let total = Mutex::new((Counts::default(), 0_u64, Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + histories {
                        return;
                    }
                    let outcome = history::run(seed, lie, false);
                    let mut total = total.lock().unwrap_or_else(|broken| broken.into_inner());
                    total.0.add(&outcome.counts);
                    total.1 += outcome.trace.operations;
                    if let Some(violation) = outcome.violation {
                        total.2.push((seed, violation));
                    }
                    let done = seed + 1 - first;
                    if done.is_multiple_of(5000) {
                        eprintln!("{done} histories, {} wrong", total.2.len());
                    }
                }
            });
        }
    });
    let (counts, operations, mut wrong) =
        total.into_inner().unwrap_or_else(|broken| broken.into_inner());
    println!(
        "{histories} histories from seed {first}: {} lives, {} kills, {} power losses, {} crashes \
         during recovery, {} bits flipped, {} groups past the cache, {} files ready early, {} acknowledged, {} refused, {operations} operations; \
         {} histories are wrong",
        counts.lives,
        counts.kills,
        counts.power_losses,
        counts.during_recovery,
        counts.flips,
        counts.direct,
        counts.prepared,
        counts.acknowledged,
        counts.refused,
        wrong.len(),
    );
    println!(
        "{} histories took {} journal files over; {} starts found such files, {} were moved late, {} \
         went, {} of their segments were written again, {} bits of them were flipped",
        counts.adopting,
        counts.adopted,
        counts.adopted_found,
        counts.adopted_late,
        counts.adopted_gone,
        counts.adopted_rewritten,
        counts.flips_taken,
    );
    wrong.sort();
    for (seed, violation) in wrong.iter().take(TOLD_MAX) {
        println!("seed {seed}: {violation}");
    }
    ExitCode::from(u8::from(!wrong.is_empty()))
}
