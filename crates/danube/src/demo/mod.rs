//! `danube demo`: a task queue with a flaky worker, told in the terminal step by step.
//!
//! A broker runs inside this process, on free ports and in a directory that goes away at the end.
//! All that is shown happens through the client and the operations that everybody has.
//!
//! Law: it ends by itself, with exit code 0 only if every job was done exactly as it was told.

mod stage;
mod story;
mod temporary;
mod worker;

use crate::failure::Failure;
use crate::signals::Signals;
use stage::Stage;
use temporary::TemporaryBroker;

/// Watch redelivery, dead letters and replay at work: a short story with a broker of its own
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Make no pauses for a reader; there are none anyway when stdout is not a terminal
    #[arg(long)]
    fast: bool,
}

/// Plays the story.
///
/// # Errors
/// That the broker cannot start, or what did not happen as the story tells it.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let broker = TemporaryBroker::start().await?;
    let stage = Stage::set(arguments.fast, &broker);
    let played = tokio::select! {
        played = story::play(&stage, &broker) => played,
        name = signals.next() => Err(Failure::refused(format!("the demo was stopped by {name}"))),
    };
    let stopped = broker.stop().await;
    played.and(stopped)
}
