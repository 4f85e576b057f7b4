//! What goes to stdout, where pipes read it. Everything else goes to stderr.
//!
//! Law: a line is written whole and flushed before the command goes on, so that a reader sees it
//! while the command still runs.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};

/// How a command prints its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Writes `text` and a line end to stdout.
///
/// # Errors
/// [`Exit::PipeClosed`](crate::failure::Exit::PipeClosed) when nobody reads any more;
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the disk behind stdout is full.
pub fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written =
        stdout.write_all(format!("{}\n", text.as_ref()).as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::pipe_closed(),
        _ => Failure::refused(format!("stdout cannot be written: {error}")),
    })
}

/// Writes a JSON document, indented, and a line end to stdout.
///
/// # Errors
/// As [`line`].
pub fn json(document: &serde_json::Value) -> Result<(), Failure> {
    line(format!("{document:#}"))
}

/// Writes a YAML document to stdout.
///
/// # Errors
/// As [`line`].
pub fn yaml(document: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_norway::to_string(document)
        .map_err(|error| Failure::refused(format!("the result has no form in YAML: {error}")))?;
    line(text.trim_end())
}
