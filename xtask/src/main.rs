//! The house's own tools: `cargo xtask verify` proves the tree, `cargo xtask fix` mends it.
//!
//! A step of `verify` is a file in [`step`], a rule of the house is a file in [`house`], and each
//! of the two folders holds one closed list. What this crate leaves to others: everything that
//! ships. It depends on no crate of the product, so that it can judge all of them.
//!
//! Law: `verify` changes nothing in the tree; what a reviewer saw stays as it was.

mod fix;
mod ground;
mod house;
mod report;
mod step;
mod verify;

use clap::{Parser, Subcommand};
use ground::Ground;
use std::process::ExitCode;

/// The house's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Prove everything that can be proved here; changes nothing in the tree.
    Verify(verify::Options),
    /// Mend what a machine can mend: format, clippy's safe suggestions, expected texts.
    Fix,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = Ground::find().and_then(|ground| match arguments.task {
        Task::Verify(options) => verify::run(&ground, &options),
        Task::Fix => fix::run(&ground),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
