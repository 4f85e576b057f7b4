//! What the engine knows of the open streams: queue, room, and how much each client holds.
//!
//! Law: queue length plus room is what the stream was opened with, whatever becomes of the
//! messages: one that is settled or void while queued keeps its place until it is drained.

use super::slot::{SlotId, StreamNo};
use crate::ids::ConsumerId;
use std::collections::{BTreeMap, VecDeque};

/// One open stream.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub consumer: ConsumerId,
    room: u32,
    /// Placed and not drained, in delivery order: slot and ticket.
    queue: VecDeque<(SlotId, u64)>,
    /// How many are drained and neither settled nor failed.
    pub in_flight: u32,
    /// What a client that reads ahead has taken and its application may not have seen, in
    /// delivery order; `None` for a client that does not read ahead.
    pub ahead: Option<VecDeque<(SlotId, u64)>>,
}

impl Stream {
    pub fn has_room(&self) -> bool {
        self.room > 0
    }

    pub fn push(&mut self, id: SlotId, ticket: u64) {
        self.room = self.room.saturating_sub(1);
        self.queue.push_back((id, ticket));
    }

    /// The connection took one; `None` when it claims more than there was.
    pub fn pop(&mut self) -> Option<(SlotId, u64)> {
        let drained = self.queue.pop_front()?;
        self.room = self.room.saturating_add(1);
        Some(drained)
    }

    /// What has not begun, in delivery order: taken ahead, then queued.
    pub fn queued(&self) -> impl Iterator<Item = (SlotId, u64)> {
        self.ahead.iter().flatten().chain(&self.queue).copied()
    }

    /// Takes the oldest message that was taken ahead, if its ticket is at most `ticket`.
    pub fn next_ahead(&mut self, ticket: u64) -> Option<(SlotId, u64)> {
        self.ahead.as_mut()?.pop_front_if(|(_, oldest)| *oldest <= ticket)
    }

    /// How many messages are queued or with the client.
    pub fn held(&self) -> u64 {
        let ahead = self.ahead.as_ref().map_or(0, VecDeque::len);
        (self.queue.len() + ahead) as u64 + u64::from(self.in_flight)
    }
}

/// All open streams.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    numbers: BTreeMap<ConsumerId, StreamNo>,
    list: Vec<Option<Stream>>,
}

impl Streams {
    /// The number of a consumer's stream.
    pub fn number(&self, consumer: ConsumerId) -> Option<StreamNo> {
        self.numbers.get(&consumer).copied()
    }

    pub fn get(&self, stream: StreamNo) -> Option<&Stream> {
        self.list.get(stream as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, stream: StreamNo) -> Option<&mut Stream> {
        self.list.get_mut(stream as usize)?.as_mut()
    }

    pub fn of(&self, consumer: ConsumerId) -> Option<&Stream> {
        self.get(self.number(consumer)?)
    }

    pub fn has_room(&self, stream: StreamNo) -> bool {
        self.get(stream).is_some_and(Stream::has_room)
    }

    /// Opens a stream of a consumer that has none.
    pub fn open(&mut self, consumer: ConsumerId, room: u32) -> StreamNo {
        let unused = self.list.iter().position(Option::is_none);
        let place = unused.unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() - 1
        });
        self.list[place] =
            Some(Stream { consumer, room, queue: VecDeque::new(), in_flight: 0, ahead: None });
        self.numbers.insert(consumer, place as StreamNo);
        place as StreamNo
    }

    /// Takes a consumer's stream out.
    pub fn close(&mut self, consumer: ConsumerId) -> Option<(StreamNo, Stream)> {
        let number = self.numbers.remove(&consumer)?;
        let stream = self.list.get_mut(number as usize)?.take()?;
        Some((number, stream))
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }
}
