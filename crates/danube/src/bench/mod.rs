//! `danube bench`: drives a broker over either wire and says how fast it was.
//!
//! Publishes are pipelined: a fixed number is in flight on each connection, with the client library
//! on the native wire and the plain generated client on the compatible one. `suite` runs all
//! workloads and prints a table. `echo` measures a bare gRPC server in a process of its own with the same
//! messages, so that a broker can be held against what the wire alone costs on this machine.
//! `log` measures the log engine without a network, against the disk's own limits.
//!
//! Law: what is not measured (connecting, warm-up, filling a topic) is over before the clock
//! starts, and a run with a refused call gives an error, not a number.

mod consume;
mod drive;
mod e2e;
mod echo;
mod fanout;
mod inlet;
mod lane;
mod load;
mod log;
mod outlet;
mod process;
mod publish;
mod queue;
mod report;
mod schema;
mod source;
mod stream_echo;
mod subscriber;
mod suite;
mod topics;

use crate::failure::Failure;

/// Measure a broker
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, clap::Subcommand)]
enum Workload {
    /// Publish, and measure until the acknowledgement
    Publish(publish::Arguments),
    /// Fill a subscription, then measure how fast it is received and acknowledged
    Consume(consume::Arguments),
    /// Publish and receive at the same time, and measure from one end to the other
    E2e(e2e::Arguments),
    /// Publish once, receive many times, and measure deliveries
    Fanout(fanout::Arguments),
    /// Publish and work at the same time, each message to one of several workers
    Queue(queue::Arguments),
    /// Publish one message to each of many topics, again and again
    Topics(topics::Arguments),
    /// Run all workloads and print a table of them
    Suite(suite::Arguments),
    /// Measure a bare gRPC echo with the same messages, for comparison
    Echo(echo::Arguments),
    /// Measure the log engine without a network, against the disk's own limits
    Log(log::Arguments),
    /// The server of `echo`
    #[command(hide = true)]
    EchoServer,
    /// A part of `log` that wants a process of its own
    #[command(hide = true)]
    LogIdle(log::IdleArguments),
}

/// Runs one workload and prints its report.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.workload {
        Workload::Publish(arguments) => publish::run(arguments).await,
        Workload::Consume(arguments) => consume::run(arguments).await,
        Workload::E2e(arguments) => e2e::run(arguments).await,
        Workload::Fanout(arguments) => fanout::run(arguments).await,
        Workload::Queue(arguments) => queue::run(arguments).await,
        Workload::Topics(arguments) => topics::run(arguments).await,
        Workload::Suite(arguments) => suite::run(arguments).await,
        Workload::Echo(arguments) => echo::run(arguments).await,
        Workload::Log(arguments) => log::run(arguments).await,
        Workload::EchoServer => echo::serve().await,
        Workload::LogIdle(arguments) => log::idle(&arguments),
    }
}
