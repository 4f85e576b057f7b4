//! `danube`: the one binary. A broker, its clients for the command line, its operators' tool and
//! its benchmarks.
//!
//! This crate translates: flags and files into options, messages into lines of text, faults into
//! exit codes. It leaves every decision about a message to the broker.
//!
//! Law: stdout is for pipes and carries results only; everything else goes to stderr.

mod bench;
mod channel;
mod compat;
mod config;
mod consume;
mod ctl;
mod demo;
mod doctor;
mod failure;
mod health;
mod manual;
mod mcp;
mod notify;
mod output;
mod produce;
mod schema;
mod signals;
mod start;
mod traces;
mod version;
mod wire;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

/// Small and quick for many short-lived messages; also gives memory back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A message broker: durable queues and streams, ready with one command
#[derive(Debug, Parser)]
#[command(name = "danube", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a broker
    Start(start::Arguments),
    /// Publish messages to a topic
    Produce(produce::Arguments),
    /// Receive messages of a topic and print them
    Consume(consume::Arguments),
    /// Create, describe and change topics, namespaces and metadata
    Ctl(ctl::Arguments),
    /// Watch redelivery, dead letters and replay at work, with a broker of its own
    Demo(demo::Arguments),
    /// Explain the files of a stopped data directory, find damage and repair it
    Doctor(doctor::Arguments),
    /// Measure a broker
    Bench(bench::Arguments),
    /// Let AI agents and assistants operate a broker (Model Context Protocol)
    Mcp(mcp::Arguments),
    /// Print a script that completes commands in a shell
    Completions(manual::Completions),
    /// Write man pages
    Man(manual::Manual),
    /// Ask a broker whether it is ready; exit code 0 says yes
    Health(health::Arguments),
    /// Print the version
    Version(version::Arguments),
}

fn main() -> ExitCode {
    do_without_huge_pages();
    let cli = Cli::parse();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if let Command::Start(_) | Command::Bench(_) = cli.command {
        threads.worker_threads(workers());
    }
    let runtime = match threads.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failure::refused(format!("no threads can be started: {error}")).report();
        }
    };
    let ended = runtime.block_on(run(cli.command));
    // A second signal, or a call that hangs, must not be waited for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Threads that serve, or that publish and receive as fast as they can: all processors but one. On
/// two processors that is one thread, and it is quicker than two, which would wake each other for
/// every message.
fn workers() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    processors.saturating_sub(1).max(1)
}

/// Memory grows by small pages: the kernel clears a huge one at its first touch, and on a virtual
/// machine that may take milliseconds in which the thread that touched it serves nobody.
fn do_without_huge_pages() {
    // Where that is refused all works the same, only less evenly.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Start(arguments) => start::run(arguments).await,
        Command::Produce(arguments) => produce::run(arguments).await,
        Command::Consume(arguments) => consume::run(arguments).await,
        Command::Ctl(arguments) => ctl::run(arguments).await,
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments).await,
        Command::Mcp(arguments) => mcp::run(arguments).await,
        Command::Completions(arguments) => manual::completions(&arguments, Cli::command()),
        Command::Man(arguments) => manual::pages(&arguments, Cli::command()),
        Command::Health(arguments) => health::run(arguments).await,
        Command::Version(arguments) => version::run(&arguments),
    }
}
