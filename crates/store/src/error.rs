//! What can go wrong in the log, one enum per operation.
//!
//! Law: each sentence names the file or the topic, says why, and what to do next; each error says
//! through [`Fault`] what a caller should do about it.

use danube_core::sequence::SequenceRefusal;
use danube_core::{Epoch, Fault, FaultKind, Offset, TopicId};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A place in the journal that cannot be read, and the topic it stopped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "topic {topic} is stopped: {what} at byte {position} of {}; restore the file from a copy, or \
     let `danube doctor --repair` go on without what is lost",
    file.display()
)]
pub struct Damage {
    /// The topic.
    pub topic: TopicId,
    /// The journal file.
    pub file: PathBuf,
    /// Where in it the damaged frame begins, in bytes.
    pub position: u64,
    /// What is wrong there.
    pub what: String,
}

/// Why a store could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has the directory.
    #[error("{} is in use by another process; stop it, or choose another directory", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {error}; check that the disk is there and writable", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        error: String,
    },
    /// The file was written by another version.
    #[error(
        "{} has format {version}, this version reads {supported}; start the version that wrote \
         it, or give this one an empty directory", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format version.
        version: u32,
        /// What this version reads.
        supported: u32,
    },
    /// A later start of the process wrote the file than the one that now opens it, so the catalog
    /// that granted this start is not the one that the journal belongs to.
    #[error(
        "{} was written by process start {theirs}, and the catalog grants this one number {ours}: \
         it is not the catalog of this journal; put the right catalog back, or give this one an \
         empty journal directory", path.display()
    )]
    OtherCatalog {
        /// The file.
        path: PathBuf,
        /// The process start that wrote it.
        theirs: u32,
        /// The process start that opens it.
        ours: u32,
    },
    /// The checkpoint that the journal builds upon cannot be read in any copy. What is in the
    /// segments cannot be told from leftovers without it, nor how far subscriptions have come.
    #[error(
        "{} cannot be read, nor can its copy: checkpoint {needed} is needed and {found} is what \
         there is; restore either file from a copy, or run `danube doctor` to rebuild it from the \
         segments", path.display()
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// Number of the checkpoint that is needed at least; 0 when any would do.
        needed: u64,
        /// Number of the newest one that can be read; 0 when there is none.
        found: u64,
    },
    /// The file's name and its header say different sequence numbers.
    #[error("{} says it is journal file {sequence}; give it its name back", path.display())]
    Misnamed {
        /// The file.
        path: PathBuf,
        /// What its header says.
        sequence: u64,
    },
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: &Path, error: &io::Error) -> OpenError {
        OpenError::Io { action, path: path.to_path_buf(), error: error.to_string() }
    }
}

/// Why an append (or a recording of progress) did not happen. Nothing of it is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Too many appends are waiting for the disk.
    #[error("the journal's queue is full; try again in a moment")]
    Full,
    /// The disk refused. Appends go on by themselves once the cause is gone.
    #[error(
        "cannot {action} {}: {error}; free space or mend the disk, then try again",
        path.display()
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        error: String,
    },
    /// The store is closing.
    #[error("the journal is closed; try again when the broker is up")]
    Closed,
    /// More bytes than one append may have.
    #[error("append of {bytes} bytes is above the limit of {max}; send smaller batches")]
    TooLarge {
        /// Bytes of the append, with its framing.
        bytes: usize,
        /// Most bytes allowed.
        max: usize,
    },
    /// No record given.
    #[error("append without a record; give at least one")]
    Empty,
    /// The handle belongs to an earlier assignment of the topic.
    #[error("topic {topic} is at epoch {current}, not {epoch}; look it up again")]
    Fenced {
        /// The topic.
        topic: TopicId,
        /// Epoch of the handle.
        epoch: Epoch,
        /// Highest epoch seen.
        current: Epoch,
    },
    /// A numbered batch is not the one that comes next.
    #[error("topic {topic}: {why}")]
    Sequence {
        /// The topic.
        topic: TopicId,
        /// What is wrong with its number.
        why: SequenceRefusal,
    },
    /// The topic was deleted.
    #[error("topic {0} is deleted")]
    Forgotten(TopicId),
    /// The topic's last offsets are used up.
    #[error("topic {0} has no offsets left; make a new topic")]
    Exhausted(TopicId),
    /// Progress of a topic of another store was to be recorded with the append.
    #[error("topic {0} is kept in another directory; record its progress by itself")]
    Elsewhere(TopicId),
    /// Damage in the journal has stopped the topic.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

impl AppendError {
    pub(crate) fn io(action: &'static str, path: &Path, error: &io::Error) -> AppendError {
        AppendError::Io { action, path: path.to_path_buf(), error: error.to_string() }
    }

    /// What a caller should do about it.
    pub fn kind(&self) -> FaultKind {
        match self {
            AppendError::Full => FaultKind::Exhausted,
            AppendError::Io { .. } | AppendError::Closed | AppendError::Fenced { .. } => {
                FaultKind::Retry
            }
            AppendError::TooLarge { .. } | AppendError::Empty | AppendError::Elsewhere(_) => {
                FaultKind::Invalid
            }
            AppendError::Sequence { .. } => FaultKind::Precondition,
            AppendError::Forgotten(_) => FaultKind::NotFound,
            AppendError::Exhausted(_) => FaultKind::Precondition,
            AppendError::Damaged(_) => FaultKind::Internal,
        }
    }
}

impl From<AppendError> for Fault {
    fn from(error: AppendError) -> Fault {
        Fault::new(error.kind(), error.to_string())
    }
}

/// Why a read did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Too many reads are waiting for the disk.
    #[error("too many reads are waiting for the disk; try again in a moment")]
    Busy,
    /// The disk refused.
    #[error("cannot read offset {offset} of topic {topic} from {}: {error}; try again, then check the disk", path.display())]
    Io {
        /// The topic.
        topic: TopicId,
        /// First offset that could not be read.
        offset: Offset,
        /// The journal file.
        path: PathBuf,
        /// What the operating system said.
        error: String,
    },
    /// The store is closing.
    #[error("the journal is closed; try again when the broker is up")]
    Closed,
    /// The topic was deleted.
    #[error("topic {0} is deleted")]
    Forgotten(TopicId),
    /// Damage in the journal has stopped the topic.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

impl ReadError {
    /// What a caller should do about it.
    pub fn kind(&self) -> FaultKind {
        match self {
            ReadError::Busy => FaultKind::Exhausted,
            ReadError::Io { .. } | ReadError::Closed => FaultKind::Retry,
            ReadError::Forgotten(_) => FaultKind::NotFound,
            ReadError::Damaged(_) => FaultKind::Internal,
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Fault {
        Fault::new(error.kind(), error.to_string())
    }
}

/// Why a pass of background work stopped. What it did not finish is done by a later one; nothing
/// that was acknowledged is touched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TendError {
    /// The file system refused.
    #[error("cannot {action} {}: {error}; free space or mend the disk, it is tried again", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        error: String,
    },
    /// The journal could not be made durable.
    #[error("no checkpoint: {0}")]
    Journal(AppendError),
}

impl TendError {
    pub(crate) fn io(action: &'static str, path: &Path, error: &io::Error) -> TendError {
        TendError::Io { action, path: path.to_path_buf(), error: error.to_string() }
    }
}

/// Why closing could not make everything durable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "cannot sync {}: {error}; what was acknowledged as `async` or `os_cache_flush` may not \
     survive a power loss", path.display()
)]
pub struct CloseError {
    /// The journal file.
    pub path: PathBuf,
    /// What the operating system said.
    pub error: String,
}
