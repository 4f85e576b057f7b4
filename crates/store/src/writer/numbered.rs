//! Batches that their producers number: whether one is written is decided here, where it is known
//! what was written before it.
//!
//! Law: nothing of a producer overtakes what was refused before it.

use crate::error::AppendError;
use crate::shared::{Open, Work, Write, answer};
use crate::topic_log::Appended;
use danube_core::sequence::{Admission, Origin};

/// Opens a producer anew.
pub(super) fn open_producer(open: Open) {
    let mut state = open.topic.state.lock();
    let opened = match &state.damage {
        _ if state.forgotten => Err(AppendError::Forgotten(open.topic.id)),
        Some(damage) => Err(AppendError::Damaged(damage.clone())),
        None => Ok(state.sequences.open(open.producer)),
    };
    drop(state);
    answer(Some(open.done), opened);
}

/// The write, if it is not of a numbered batch that must not be written; else its caller is told.
pub(super) fn in_sequence(mut write: Write) -> Option<Write> {
    let Some(origin) = origin_of(&write.work) else { return Some(write) };
    let Work::Append { batch, done, .. } = &mut write.work else { return Some(write) };
    // The queue's limits keep the count far below 2^32.
    let count = batch.len() as u32;
    let admission = write.topic.state.lock().sequences.admit(&origin, count);
    match admission {
        Admission::Append => Some(write),
        Admission::Duplicate(first) => {
            answer(done.take(), Ok(Appended { first, count }));
            None
        }
        Admission::Refused(why) => {
            write.work.refuse(AppendError::Sequence { topic: write.topic.id, why });
            None
        }
    }
}

/// Who numbered the messages, if anybody did.
pub(super) fn origin_of(work: &Work) -> Option<Origin> {
    match work {
        Work::Append { batch, .. } => batch.origin().copied(),
        Work::Record { .. } => None,
    }
}
