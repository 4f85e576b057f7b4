//! Administrative operations, each defined once: its arguments and their help, the permission it
//! needs, what it may change, an example, what it does, its result and how that is shown.
//!
//! Every face takes them from [`OPS`]: `danube ctl` today. One folder per noun, one file per verb;
//! a new operation is a file and a line. What is left to others: where output goes and how the
//! process exits (the binary), every decision (the broker).
//!
//! Law: an operation prints nothing and decides nothing that the broker could; it turns arguments
//! into requests, and answers into a value.

pub mod args;
pub mod brokers;
pub mod channel;
pub mod cluster;
mod command_line;
mod contract;
mod error;
mod list;
pub mod manifest;
pub mod metadata;
pub mod namespaces;
mod operation;
mod overview;
mod reference;
pub mod schemas;
mod session;
pub mod tools;
pub mod topics;
pub mod view;

pub use error::{ErrorKind, OpError};
pub use list::{NOUNS, OPS, commands, find};
pub use operation::{Call, Effect, Op, Operation, Output, Permission, Reply, Spec};
pub use reference::reference;
pub use session::Session;
