//! Why the catalog could not be opened.
//!
//! Once it is open, what goes wrong is a [`Fault`] of a proposal.

use danube_core::Fault;
use std::path::PathBuf;

/// Why the catalog could not be opened. Every variant says which file, why, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum MetaError {
    /// The directory or a file in it cannot be made, read or written.
    #[error("cannot {doing} `{}`: {why}; check that the path is right and may be written", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system or the database says.
        why: String,
    },
    /// Another process has it open.
    #[error(
        "the catalog in `{}` is in use by another process; stop it, or give this one another data \
         directory",
        dir.display()
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// The file is not what this product wrote.
    #[error("the catalog file `{}` is damaged: {why}; restore it from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A later version wrote it, or it holds a change that this version cannot read.
    #[error("the catalog in `{}` cannot be used: {fault}", dir.display())]
    Unreadable {
        /// The directory.
        dir: PathBuf,
        /// Which level is needed, or what is wrong.
        fault: Fault,
    },
    /// The consensus engine did not come up.
    #[error("the catalog in `{}` did not start: {why}", dir.display())]
    NotStarted {
        /// The directory.
        dir: PathBuf,
        /// What it says.
        why: String,
    },
}
