//! What the engine knows of one open stream: its queue, its room, and what its client holds.
//!
//! Law: queue length plus room is what the stream was opened with, whatever becomes of the
//! messages: one that is settled or void while queued keeps its place until it is drained.

use crate::ids::Offset;
use std::collections::{BTreeSet, VecDeque};

/// One open stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    room: u32,
    /// Placed and not drained, in delivery order: offset and ticket.
    queue: VecDeque<(Offset, u64)>,
    /// Drained and neither settled nor failed.
    pub in_flight: BTreeSet<Offset>,
}

impl Stream {
    pub fn with_room(room: u32) -> Stream {
        Stream { room, ..Stream::default() }
    }

    pub fn has_room(&self) -> bool {
        self.room > 0
    }

    pub fn push(&mut self, offset: Offset, ticket: u64) {
        self.room = self.room.saturating_sub(1);
        self.queue.push_back((offset, ticket));
    }

    /// The connection took one; `None` when it claims more than there was.
    pub fn pop(&mut self) -> Option<(Offset, u64)> {
        let drained = self.queue.pop_front()?;
        self.room = self.room.saturating_add(1);
        Some(drained)
    }

    /// What is queued, in delivery order.
    pub fn queued(&self) -> impl Iterator<Item = (Offset, u64)> {
        self.queue.iter().copied()
    }
}
