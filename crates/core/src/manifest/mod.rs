//! Manifests: what a cluster is to look like, declared in a file.
//!
//! [`read`] turns text into a tree whose every node knows its line, [`Manifest::parse`] the tree
//! into declared objects, [`plan`] the declared objects and a catalog into steps, [`drift`] says
//! what has moved away from what was declared, [`export`] writes what there is as a manifest. Files,
//! sockets and parsers of schemas are left to others.
//!
//! Law: a dry run and a real run have the same plan, for both are the value that [`plan`] returns;
//! and it is tried on a copy of the catalog, so what the catalog would refuse is told before
//! anything is written.

mod declare;
mod drift;
mod export;
mod json_schema;
mod live;
mod node;
mod plan;
mod quantity;
mod read;
#[cfg(test)]
mod tests;

pub use declare::{Declared, Manifest, SchemaSource};
pub use drift::{Drift, Drifted, drift};
pub use export::export;
pub use json_schema::json_schema;
pub use live::{fields, revision};
pub use node::{Mark, Node, NodeValue};
pub use plan::{Action, FieldChange, Item, Options, Plan, SchemaFacts, candidates, plan};
pub use quantity::{duration_ms, size};
pub use read::read;

/// What is wrong at some place of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where; `None` for the whole.
    pub at: Option<Mark>,
    /// Which entry, such as ``topic `/agents/events` ``; empty for none.
    pub entry: String,
    /// What is wrong and what to do: lower case, no final dot.
    pub why: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        if !self.entry.is_empty() {
            write!(f, "{}: ", self.entry)?;
        }
        f.write_str(&self.why)
    }
}
