//! Skeleton.
pub mod progress;
pub use progress::{Attempts, Progress, ProgressRecord, Step};
