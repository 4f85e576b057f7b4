//! What one frame, read back, does to its topic.
//!
//! Law: a frame either changes the topic as it did when it was written, or says why it cannot.

use crate::extras::{self, Also, Extras};
use crate::frame::{FrameHeader, messages_are_whole};
use crate::recovery::Place;
use crate::step;
use crate::topic::{Batch, TopicState};
use danube_core::Offset;

/// Takes the messages of a frame at `place`; returns the progress that belongs to them.
pub(crate) fn take_messages(
    state: &mut TopicState,
    place: Place,
    header: &FrameHeader,
    payload: &[u8],
) -> Result<Vec<Also>, String> {
    let (extras, messages) = match header.extras {
        true => extras::split(payload).ok_or("what is beside a frame's records does not fit")?,
        false => (&[][..], payload),
    };
    if !messages_are_whole(messages, header.count) {
        return Err("a frame's records do not fit".to_owned());
    }
    let extras = match header.extras {
        true => Extras::decode(extras).ok_or("what is beside a frame's records is not known")?,
        false => Extras::default(),
    };
    let first = header.first;
    let batch = Batch {
        first,
        file: place.file,
        position: place.position,
        time: header.time,
        count: header.count,
        payload_len: header.payload_len,
    };
    if let Some(origin) = extras.origin {
        state.sequences.stored(&origin, header.count, Offset(first));
    }
    if batch.end() <= state.settled {
        return Ok(extras.also);
    }
    if first > state.next && !header.jump {
        return Err(format!("offsets {} to {} are missing before it", state.next, first - 1));
    }
    if first < state.next {
        // Only a sync that failed and a header that is gone make this: the later one counts.
        tracing::warn!(first, next = state.next, "offsets in the journal twice; the later count");
        while state.index.back().is_some_and(|batch| batch.end() > first) {
            state.index.pop_back();
        }
    }
    state.next = batch.end();
    state.time = state.time.max(header.time);
    state.synced_mode = header.synced_mode;
    state.tail_lost = false;
    state.index.push_back(batch);
    Ok(extras.also)
}

/// Takes the progress records of a frame.
pub(crate) fn take_progress(
    state: &mut TopicState,
    header: &FrameHeader,
    payload: &[u8],
) -> Result<(), String> {
    let records = step::decode(payload, header.count)
        .ok_or_else(|| "a frame's progress records do not fit".to_owned())?;
    records.iter().for_each(|record| state.apply(record));
    Ok(())
}
