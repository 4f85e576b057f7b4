//! `danube bench log`: the engine without a network, against what the machine can do at most.
//!
//! Each figure of the engine is put beside its limit, measured in the same run on the same disk:
//! a bare write with `fdatasync`, a bare sequential write with the same checksum, `cat` of the
//! same files. The two take turns, so that a disk that changes its mood changes it for both.
//!
//! Law: a row says what was measured against what, and the target that the project has set
//! itself; it never leaves out a row because it looks bad.

mod idle;
mod limit;
mod report;
mod segments;
mod stream;
mod sync;

use crate::failure::Failure;
use crate::output::Format;
use clap::ValueEnum;
use danube_core::Incarnation;
use danube_store::{Store, StoreOptions};
use report::{Report, Row};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use idle::Arguments as IdleArguments;
pub use idle::run as idle;

/// Measure the log engine without a network, against the disk's own limits
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where to work; a new directory is made in it and removed at the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// A tenth of the work: for a first impression, not for a figure to quote
    #[arg(long)]
    quick: bool,
    /// Only this part of it; may be given several times
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// How to print the report
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// What is measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Appends that wait for a sync
    Sync,
    /// A backlog written, and read back
    Stream,
    /// Appends while segments are written
    Segments,
    /// Many topics that nobody uses
    Idle,
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Syncs of each kind.
    syncs: u32,
    /// Rounds over a thousand topics.
    rounds: u32,
    /// Bytes written in one round of a stream.
    stream_bytes: usize,
    /// Topics that lie idle.
    idle_topics: u32,
}

impl Scale {
    fn new(quick: bool) -> Scale {
        if quick {
            Scale { syncs: 100, rounds: 10, stream_bytes: 32 << 20, idle_topics: 2_000 }
        } else {
            Scale { syncs: 1_000, rounds: 100, stream_bytes: 256 << 20, idle_topics: 20_000 }
        }
    }
}

/// A directory of its own, removed when it goes out of scope.
struct Scratch(PathBuf);

impl Scratch {
    fn make(dir: &Path) -> Result<Scratch, Failure> {
        let path = dir.join(format!("danube-bench-log-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| {
            Failure::usage(format!("--dir: `{}` cannot be made: {error}", path.display()))
                .help("give a directory on the disk to measure that you may write to")
        })?;
        Ok(Scratch(path))
    }

    fn sub(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it; what is left can be seen and removed by hand.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs everything and prints the report.
///
/// # Errors
/// When the directory cannot be used, or the log refuses something.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let format = arguments.output;
    let measured = tokio::task::spawn_blocking(move || measure(&arguments));
    let report = measured.await.map_err(|error| Failure::refused(error.to_string()))??;
    report.print(format)
}

fn measure(arguments: &Arguments) -> Result<Report, Failure> {
    let scale = Scale::new(arguments.quick);
    let scratch = Scratch::make(&arguments.dir)?;
    let mut rows: Vec<Row> = Vec::new();
    for part in Part::value_variants() {
        if !arguments.only.is_empty() && !arguments.only.contains(part) {
            continue;
        }
        rows.extend(match part {
            Part::Sync => sync::measure(&scratch, scale)?,
            Part::Stream => stream::measure(&scratch, scale)?,
            Part::Segments => segments::measure(&scratch, scale)?,
            Part::Idle => idle::measure(&scratch, scale)?,
        });
    }
    Ok(Report { dir: arguments.dir.display().to_string(), rows })
}

/// Says on stderr what is going on.
fn doing(what: &str) {
    eprintln!("measuring {what}");
}

/// A store in `dir`, for process start number `start`.
fn open(dir: &Path, start: u32) -> Result<Store, Failure> {
    let options = StoreOptions::new(dir, Incarnation(start));
    Store::open(options, &mut |_| {}).map_err(|error| Failure::refused(error.to_string()))
}

fn close(store: &Store) -> Result<(), Failure> {
    store.close().map_err(|error| Failure::refused(error.to_string()))
}

fn io(what: &str) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::refused(format!("{what}: {error}"))
}

/// The middle one of `times`, which are sorted by this.
fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
