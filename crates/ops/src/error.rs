//! How an operation fails: what kind of failure, one clear sentence, and what to do about it.

use danube_core::{Fault, FaultKind};
use std::fmt;

/// What kind of failure, as far as a caller can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The broker said no.
    Refused,
    /// An argument is wrong.
    Usage,
    /// No broker answers.
    Unreachable,
}

/// Why an operation did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What failed, on what, and why: lower case, no final dot.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
    /// Whether the broker said no because it does not have what this was about.
    pub not_found: bool,
}

impl OpError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> OpError {
        OpError { kind, message: message.into(), help: None, not_found: false }
    }

    /// [`ErrorKind::Refused`].
    pub fn refused(message: impl Into<String>) -> OpError {
        OpError::new(ErrorKind::Refused, message)
    }

    /// [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> OpError {
        OpError::new(ErrorKind::Usage, message)
    }

    /// [`ErrorKind::Unreachable`].
    pub fn unreachable(message: impl Into<String>) -> OpError {
        OpError::new(ErrorKind::Unreachable, message)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> OpError {
        OpError { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpError {}

/// A name or a word that somebody typed and that cannot be.
impl From<Fault> for OpError {
    fn from(fault: Fault) -> OpError {
        match fault.kind {
            FaultKind::Invalid => OpError::usage(fault.message),
            _ => OpError::refused(fault.message),
        }
    }
}
