//! What can go wrong, sorted by what the caller should do about it.
//!
//! Every refusal that leaves the product is a [`Fault`]: a kind and a sentence. The kind becomes a
//! status code in the `wire` crate and nowhere else; the sentence names what failed, on which
//! topic or file, why, and what to do next.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the caller should do about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Try again, here or elsewhere: moving, loading, shutting down, an internal time-out.
    Retry,
    /// Try again later, there is too much of something now: memory, disk, quota.
    Exhausted,
    /// Mend the request: a bad name, a missing field, an oversize or rejected message.
    Invalid,
    /// The thing named does not exist.
    NotFound,
    /// The thing to be made exists.
    AlreadyExists,
    /// The request is fine but the state of the system forbids it; somebody must change that.
    Precondition,
    /// No or bad credentials.
    Unauthenticated,
    /// Known, but not allowed.
    Denied,
    /// This broker does not offer the operation in its mode.
    Unsupported,
    /// A failure on our side that a retry may not mend: a damaged file, a broken promise of ours.
    Internal,
}

/// A refusal: what to do about it, and a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What the caller should do.
    pub kind: FaultKind,
    /// Lower case, no final dot, wrong values in back-quotes.
    pub message: String,
}

impl Fault {
    /// A fault of `kind` saying `message`.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault { kind, message: message.into() }
    }

    /// [`FaultKind::Invalid`]: mend the request.
    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Invalid, message)
    }

    /// [`FaultKind::NotFound`]: no such thing.
    pub fn not_found(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::NotFound, message)
    }

    /// [`FaultKind::AlreadyExists`]: it is there already.
    pub fn already_exists(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::AlreadyExists, message)
    }

    /// [`FaultKind::Precondition`]: the state of the system forbids it.
    pub fn precondition(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Precondition, message)
    }

    /// [`FaultKind::Retry`]: try again.
    pub fn retry(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Retry, message)
    }

    /// [`FaultKind::Exhausted`]: try again later.
    pub fn exhausted(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Exhausted, message)
    }

    /// [`FaultKind::Internal`]: a failure on our side.
    pub fn internal(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Internal, message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
