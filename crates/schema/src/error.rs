//! What can be wrong with a definition and with a payload, in words a person can act on.

use danube_core::Fault;
use danube_core::schema::SchemaType;
use std::fmt;
use thiserror::Error;

/// Why a definition was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is not in the language that the type names.
    #[error("{kind} definition does not parse: {why}")]
    Syntax {
        /// The language.
        kind: SchemaType,
        /// Where and why.
        why: String,
    },
    /// The text parses, but says something that the language forbids.
    #[error("{kind} definition is not valid at `{path}`: {why}")]
    Invalid {
        /// The language.
        kind: SchemaType,
        /// Field path or JSON pointer.
        path: String,
        /// Why, and what would be right.
        why: String,
    },
    /// It refers to something that neither it nor the registry has.
    #[error(
        "{kind} definition refers to `{name}` at `{path}`, which is neither in the definition nor in the \
         registry; register it first (nothing is ever fetched from elsewhere)"
    )]
    UnknownReference {
        /// The language.
        kind: SchemaType,
        /// Where.
        path: String,
        /// What it asked for.
        name: String,
    },
    /// One of the fixed bounds is passed.
    #[error("{kind} definition is too large: {what} is {got}, the limit is {max}")]
    TooLarge {
        /// The language.
        kind: SchemaType,
        /// Which bound.
        what: &'static str,
        /// How much it is (at least).
        got: usize,
        /// How much it may be.
        max: usize,
    },
}

impl SchemaError {
    pub(crate) fn syntax(kind: SchemaType, why: impl Into<String>) -> SchemaError {
        SchemaError::Syntax { kind, why: why.into() }
    }

    pub(crate) fn invalid(
        kind: SchemaType,
        path: impl Into<String>,
        why: impl Into<String>,
    ) -> SchemaError {
        SchemaError::Invalid { kind, path: path.into(), why: why.into() }
    }
}

impl From<SchemaError> for Fault {
    /// Whoever sent the definition has to mend it.
    fn from(error: SchemaError) -> Fault {
        Fault::invalid(error.to_string())
    }
}

/// One place where a payload does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFault {
    /// Field path or JSON pointer into the payload; empty for the payload as a whole.
    pub path: String,
    /// What is wrong there.
    pub why: String,
}

impl PayloadFault {
    pub(crate) fn new(path: impl Into<String>, why: impl Into<String>) -> PayloadFault {
        PayloadFault { path: path.into(), why: why.into() }
    }

    /// The same fault seen from one level further out: `outer` is put before the path.
    pub(crate) fn under(mut self, outer: &str) -> PayloadFault {
        self.path.insert_str(0, outer);
        self
    }
}

impl fmt::Display for PayloadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "payload: {}", self.why)
        } else {
            write!(f, "payload at `{}`: {}", self.path, self.why)
        }
    }
}
