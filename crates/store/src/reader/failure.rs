//! Why something could not be read, and what that means for its topic.
//!
//! Law: only bytes that should be there and are not stop a topic; what moves is read again.

use crate::error::{Damage, ReadError};
use crate::segment::{SegmentFault, SegmentId};
use crate::shared::Shared;
use crate::topic::Topic;
use danube_core::Offset;
use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be read just now that a failed sync has left in doubt.
pub(super) const MOVING: &str = "it is being written again elsewhere";

/// Why something could not be read, and where.
pub(crate) struct Failure {
    pub(super) offset: u64,
    pub(super) path: PathBuf,
    pub(super) position: u64,
    pub(super) what: What,
}

/// Kinds of [`Failure`].
pub(crate) enum What {
    /// The disk refused.
    Io(io::Error),
    /// The bytes are not those that were written.
    Damaged(&'static str),
}

impl Failure {
    /// That of segment `id` in data directory `dir`, met at `offset`.
    pub(crate) fn of_segment(
        dir: &Path,
        id: &SegmentId,
        offset: u64,
        fault: SegmentFault,
    ) -> Failure {
        let path = fault.path(dir, id);
        let (position, what) = match fault {
            // A segment that is not there any more is damage, and no state of the disk.
            SegmentFault::Io { journal, error } if error.kind() == io::ErrorKind::NotFound => {
                let what = match journal {
                    Some(_) => "the journal file that has the segment's messages is missing",
                    None => "the segment is missing",
                };
                (0, What::Damaged(what))
            }
            SegmentFault::Io { error, .. } => (0, What::Io(error)),
            SegmentFault::Damaged { position, what, .. } => (position, What::Damaged(what)),
        };
        Failure { offset, path, position, what }
    }

    /// What the disk said, if it is its fault.
    pub(crate) fn io(&self) -> Option<(&PathBuf, &io::Error)> {
        match &self.what {
            What::Io(error) => Some((&self.path, error)),
            What::Damaged(_) => None,
        }
    }
}

/// Tells why, and stops the topic if its bytes are damaged.
pub(crate) fn explain(shared: &Shared, topic: &Topic, failure: Failure) -> ReadError {
    let Failure { offset, path, position, what } = failure;
    let mut state = topic.state.lock();
    if state.forgotten {
        return ReadError::Forgotten(topic.id);
    }
    let what = match what {
        What::Damaged(_) if shared.is_unsafe(&path) || !state.is_at(offset, &path, position) => {
            // After a failed sync the kernel may have dropped what is in memory and elsewhere.
            What::Io(io::Error::other(MOVING))
        }
        what => what,
    };
    match what {
        What::Io(error) => ReadError::Io {
            topic: topic.id,
            offset: Offset(offset),
            path,
            error: error.to_string(),
        },
        What::Damaged(what) => {
            let what = format!("{what}, offset {offset}");
            let damage = Damage { topic: topic.id, file: path, position, what };
            tracing::error!(%damage, "damage found in the log");
            state.damage.get_or_insert(damage.clone());
            ReadError::Damaged(damage)
        }
    }
}
