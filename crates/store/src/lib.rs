//! The log: one journal per data directory, shared by all topics, with group commit.
//!
//! [`Store`] owns the directory, one writer thread and one reader thread; a [`TopicLog`] is the
//! handle of one topic on it. Here live the bytes on disk (`docs/formats/journal.md`), their
//! recovery after a crash, and the memory of recent batches. What this crate leaves to others:
//! which topics exist (the catalog), who receives a message (the engine of `danube-core`), what a
//! record means (the wire), and any async runtime: everything here answers through callbacks.
//!
//! Law: what was acknowledged is readable, in order, after whatever its durability mode promises
//! to survive; what cannot be read is named and stops its own topic alone, never skipped silently.
//!
//! | question | look in |
//! |---|---|
//! | what a frame looks like, byte by byte | `frame`, `step`, `extras`, `header` |
//! | how the records of an append are laid out | `batch` |
//! | what is gathered for direct writes | `aligned`, `journal` (`direct`), `segment` |
//! | how a group is laid out and written | `gather`, `group`, `writer`, `journal` |
//! | what happens when the disk refuses, or is full | `writer`, `journal`, `room` |
//! | what is cut, and what is quarantined | `listing`, `recovery`, `replay`, `scan` |
//! | what `danube doctor` sees and repairs | `doctor` |
//! | how a read finds its bytes | `topic`, `reader`, `runs`, `cache` |
//! | how old messages are read ahead | `reader` (`ahead`), `large`, `disk` (`past_cache`) |
//! | what becomes of full journal files | `tend`, `archive`, `segment` |

mod aligned;
mod archive;
mod batch;
mod cache;
mod checkpoint;
mod clock;
pub mod disk;
pub mod doctor;
mod error;
mod extras;
mod flush_times;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod group;
mod header;
mod input;
mod journal;
mod large;
mod listing;
mod lock;
mod options;
mod queue;
mod read_batch;
mod reader;
mod recovery;
mod replay;
mod restore;
mod room;
mod runs;
mod scan;
mod secure;
mod segment;
mod shared;
mod step;
mod store;
mod tend;
mod topic;
mod topic_log;
mod torn;
mod trim;
mod wake;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{RecordBatch, RecordBatchBuilder};
pub use checkpoint::CHECKPOINT_VERSION;
pub use clock::{Clock, NoClock};
pub use error::{AppendError, CloseError, Damage, OpenError, ReadError, TendError};
pub use flush_times::{FLUSH_BOUNDS_US, FlushTimes};
pub use frame::FRAME_PAYLOAD_MAX;
pub use header::FORMAT_VERSION as JOURNAL_VERSION;
pub use options::{RecoveryProgress, StoreOptions, StoreStats};
pub use read_batch::{ReadBatch, ReadLimit};
pub use segment::SEGMENT_VERSION;
pub use store::Store;
pub use topic_log::{Appended, Bounds, TopicLog};
