//! The replicated catalog: every broker holds a [`Catalog`](danube_core::catalog::Catalog), and
//! all hold the same one.
//!
//! [`Meta`] puts changes in an order, keeps them, applies them and shows the result. What a change
//! means is decided in `danube-core`; who acts on it is left to the broker. No message and no
//! state of a message ever goes through here. This is the only crate that names the consensus
//! library and the database under it, and neither shows in its face.
//!
//! ```text
//!  propose ─▶ queue ─▶ batch ─▶ raft ─▶ log (fsync) ─▶ apply ─▶ view, watch ─▶ outcome
//! ```
//!
//! Law: a change whose outcome was returned is on the device and in [`Meta::view`].

mod error;
mod file;
mod handle;
mod log;
mod machine;
mod network;
mod node;
mod published;
#[cfg(test)]
mod tests;
mod types;

pub use error::MetaError;
pub use handle::{Meta, MetaOptions};
pub use published::MetaStats;

/// Under which name the consensus library logs, for whoever sets log levels: it is noisy at
/// `info`.
pub const CONSENSUS_LOG_TARGET: &str = "openraft";

/// The name of the catalog's file in its directory, for whoever looks at a directory from outside.
pub const FILE_NAME: &str = file::FILE;
