//! Publishing at full speed: a fixed number of messages in flight on each connection.
//!
//! One task per connection drives all its messages, so that the client costs little on a machine
//! it shares with the broker. Broker and echo server are driven by the very same code.

use super::load::{Load, Pace};
use super::outlet::Outlet;
use super::report::{Latencies, Progress};
use super::source::Source;
use crate::failure::Failure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tonic::Status;

/// When no call at all is answered for this long, the run has failed.
pub const STALL_MAX: Duration = Duration::from_secs(30);

/// What a run gave.
#[derive(Debug)]
pub struct Measured {
    /// From call to answer.
    pub latencies: Latencies,
    /// From the first call to the last answer.
    pub elapsed: Duration,
}

/// Runs all outlets until the pace ends and the last answer is in.
///
/// # Errors
/// The first refused message.
pub async fn drive(
    outlets: &[Arc<Outlet>],
    load: &Load,
    pace: Pace,
    progress: &Progress,
) -> Result<Measured, Failure> {
    let pace = Arc::new(pace);
    drive_from(outlets, load, |_| Source::new(Arc::clone(&pace), load.payload()), progress).await
}

/// As [`drive`], each outlet from a source of its own.
///
/// # Errors
/// The first refused message.
pub async fn drive_from(
    outlets: &[Arc<Outlet>],
    load: &Load,
    source: impl Fn(u32) -> Source,
    progress: &Progress,
) -> Result<Measured, Failure> {
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for (index, outlet) in (0..).zip(outlets) {
        let (outlet, progress) = (Arc::clone(outlet), progress.clone());
        let (mut source, in_flight) = (source(index), load.in_flight_of(index));
        tasks.spawn(async move {
            let mut latencies = Latencies::new();
            outlet.run(in_flight, &mut source, &mut latencies, &progress).await?;
            Ok::<_, Failure>(latencies)
        });
    }
    let mut latencies = Latencies::new();
    while let Some(ended) = tasks.join_next().await {
        latencies.add(&ended.expect("an outlet does not panic")?);
    }
    Ok(Measured { latencies, elapsed: started.elapsed() })
}

/// Nothing was answered for [`STALL_MAX`].
pub fn stalled() -> Status {
    Status::deadline_exceeded(format!("no answer to any call for {STALL_MAX:?}"))
}
