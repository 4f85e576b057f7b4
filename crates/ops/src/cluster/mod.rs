//! Operations on the cluster: one file per verb.

mod status;

pub use status::Status;
