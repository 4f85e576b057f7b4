//! The steps of `cargo xtask verify`, one per file under one closed list.
//!
//! A step says in one line what it proves, and proves it by running what a person would run.
//! Cheap steps come first. A new step is a file here and a line in [`STEPS`].

mod book;
mod clients;
mod clippy;
mod fmt;
mod fuzz;
mod newcomer;
mod observability;
mod package;
mod test;
pub mod tour;

use crate::ground::Ground;
use anyhow::Result;

/// One step: a name to ask for it by, what it proves, and how.
pub struct Step {
    /// As in `cargo xtask verify NAME`.
    pub name: &'static str,
    /// What holds when it passes.
    pub about: &'static str,
    /// Fails with a sentence that says what does not hold.
    pub run: fn(&Ground) -> Result<()>,
}

/// All steps, in the order they run.
pub const STEPS: &[Step] = &[
    Step { name: "house", about: "the rules of the house itself", run: crate::house::run },
    Step { name: "fmt", about: "every Rust file is laid out by rustfmt", run: fmt::run },
    Step { name: "clippy", about: "no lint fires, fences included", run: clippy::run },
    Step { name: "fence", about: "each line of the pure crates' fence bites", run: clippy::fence },
    Step { name: "test", about: "unit, property and process tests", run: test::run },
    Step { name: "binary", about: "the danube binary builds", run: clients::binary },
    Step { name: "rust-client", about: "the published Rust client works", run: clients::rust },
    Step {
        name: "python-client",
        about: "the published Python client works",
        run: clients::python,
    },
    Step { name: "mcp-client", about: "the official MCP client works", run: clients::mcp },
    Step {
        name: "observability",
        about: "a real Prometheus, the alerts and the dashboard work",
        run: observability::run,
    },
    Step { name: "browser", about: "the console works in a browser", run: clients::browser },
    Step {
        name: "deploy",
        about: "chart and image are as their tools want them",
        run: clients::deploy,
    },
    Step { name: "fuzz", about: "no fuzz target finds anything in seconds", run: fuzz::run },
    Step { name: "book", about: "every command in docs/ does what its page says", run: book::run },
    Step { name: "newcomer", about: "README's tour works in a clean clone", run: newcomer::run },
    Step {
        name: "package",
        about: "the Debian package installs, runs and goes; the binary runs on Debian 12",
        run: package::run,
    },
];
