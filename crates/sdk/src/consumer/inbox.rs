//! What was received and the application has not taken yet, of all partitions of a consumer.
//!
//! Law: what is in here is bounded by the credit that was given, and its leases are kept.

use super::message::Message;
use super::partition::Partition;
use super::ranges::{Range, Ranges, first_common};
use crate::error::Error;
use danube_wire::proto::stream::Extension;
use danube_wire::stream::Delivered;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A lease is extended when this part of it is over, so the application gets at least the rest.
const EXTENDED_AFTER: u32 = 3;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    chunks: VecDeque<Chunk>,
    errors: VecDeque<Error>,
    /// Partitions that may still receive something.
    live: usize,
    wakers: Vec<Waker>,
}

/// Deliveries that came together.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) partition: Arc<Partition>,
    pub(super) session: u64,
    pub(super) epoch: u32,
    /// Zero where nothing is acknowledged.
    pub(super) lease: Duration,
    pub(super) extend_at: Instant,
    pub(super) deliveries: VecDeque<Delivered>,
    taken: Room,
}

/// Room that the application made: messages and encoded bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    pub(super) messages: u32,
    pub(super) bytes: u64,
}

impl Room {
    fn add(&mut self, delivered: &Delivered) {
        self.messages += 1;
        self.bytes += delivered.encoded_len() as u64;
    }
}

impl Chunk {
    pub(super) fn new(
        partition: Arc<Partition>,
        session: u64,
        epoch: u32,
        lease: Duration,
        deliveries: Vec<Delivered>,
    ) -> Chunk {
        Chunk {
            partition,
            session,
            epoch,
            lease,
            extend_at: Instant::now() + lease / EXTENDED_AFTER,
            deliveries: deliveries.into(),
            taken: Room::default(),
        }
    }

    fn is_of(&self, partition: &Partition) -> bool {
        std::ptr::eq(&*self.partition, partition)
    }

    fn range(&self, delivered: &Delivered) -> Range {
        let (first, attempt) = (delivered.offset.0, delivered.attempt);
        Range { first, count: 1, attempt, epoch: self.epoch }
    }

    fn take(&mut self) -> Option<Message> {
        let delivered = self.deliveries.pop_front()?;
        self.taken.add(&delivered);
        Some(Message {
            partition: Arc::clone(&self.partition),
            session: self.session,
            epoch: self.epoch,
            is_leased: !self.lease.is_zero(),
            offset: delivered.offset.0,
            attempt: delivered.attempt,
            record: delivered.record,
        })
    }
}

impl Inbox {
    /// An inbox of `live` partitions.
    pub(super) fn new(live: usize) -> Inbox {
        Inbox(Mutex::new(State { live, ..State::default() }))
    }

    /// Takes the next message; `None` when there will be none any more.
    pub(super) fn poll_next(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Message, Error>>> {
        let mut state = self.0.lock();
        if let Some(taken) = state.take() {
            drop(state);
            return Poll::Ready(Some(taken.map(Taken::give_back)));
        }
        if state.live == 0 {
            return Poll::Ready(None);
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Takes up to `max` messages that are here.
    pub(super) fn take_ready(&self, max: usize, into: &mut Vec<Message>) {
        while into.len() < max {
            let mut state = self.0.lock();
            // An error waits for its turn.
            if state.chunks.is_empty() {
                return;
            }
            let Some(Ok(taken)) = state.take() else { return };
            drop(state);
            into.push(taken.give_back());
        }
    }

    pub(super) fn push(&self, chunk: Chunk) {
        self.change(|state| state.chunks.push_back(chunk));
    }

    /// A partition is over: `error` says why, if it is not what the application wanted.
    pub(super) fn over(&self, error: Option<Error>) {
        self.change(|state| {
            state.live -= 1;
            state.errors.extend(error);
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock();
        change(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Forgets what is here of `partition`: its stream is over, and all of it comes again.
    pub(super) fn forget(&self, partition: &Partition) {
        self.0.lock().chunks.retain(|chunk| !chunk.is_of(partition));
    }

    /// Forgets deliveries that went to somebody else, and says how much room that made.
    pub(super) fn forget_stale(&self, partition: &Partition, stale: &[Range]) -> Room {
        let mut room = Room::default();
        let mut state = self.0.lock();
        for chunk in state.chunks.iter_mut().filter(|chunk| chunk.is_of(partition)) {
            let mut deliveries = std::mem::take(&mut chunk.deliveries);
            deliveries.retain(|delivered| {
                let range = chunk.range(delivered);
                let is_stale = stale.iter().any(|stale| first_common(stale, &range).is_some());
                if is_stale {
                    room.add(delivered);
                }
                !is_stale
            });
            chunk.deliveries = deliveries;
        }
        room
    }

    /// The deliveries of `partition` whose leases are to be extended now, for how long, and when
    /// to ask again.
    pub(super) fn due(
        &self,
        partition: &Partition,
        now: Instant,
    ) -> (Vec<Extension>, Option<Instant>) {
        let mut extensions = Vec::new();
        let mut next = None;
        let mut state = self.0.lock();
        for chunk in state.chunks.iter_mut() {
            if !chunk.is_of(partition) || chunk.lease.is_zero() || chunk.deliveries.is_empty() {
                continue;
            }
            if chunk.extend_at <= now {
                chunk.extend_at = now + chunk.lease / EXTENDED_AFTER;
                let mut ranges = Ranges::default();
                chunk.deliveries.iter().for_each(|d| ranges.push(chunk.range(d)));
                let by_ms = u64::try_from(chunk.lease.as_millis()).unwrap_or(u64::MAX);
                let ranges = ranges.into_sorted().into_iter();
                extensions.extend(ranges.map(|range| Extension { range: Some(range), by_ms }));
            }
            next = Some(next.map_or(chunk.extend_at, |next: Instant| next.min(chunk.extend_at)));
        }
        (extensions, next)
    }
}

/// A message, and the room that its taking makes.
struct Taken {
    message: Message,
    room: Option<Room>,
}

impl Taken {
    fn give_back(self) -> Message {
        if let Some(room) = self.room {
            self.message.partition.give_back(self.message.session, room);
        }
        self.message
    }
}

impl State {
    fn take(&mut self) -> Option<Result<Taken, Error>> {
        while let Some(chunk) = self.chunks.front_mut() {
            let message = chunk.take();
            let is_empty = chunk.deliveries.is_empty();
            // Told rarely, since each time takes the lock of the partition.
            let is_due = is_empty || chunk.partition.is_worth_telling(chunk.taken);
            let room = is_due.then(|| std::mem::take(&mut chunk.taken));
            if is_empty {
                let chunk = self.chunks.pop_front();
                if let (None, Some(chunk), Some(room)) = (&message, chunk, room) {
                    // Whatever is left of one whose last deliveries were forgotten.
                    chunk.partition.give_back(chunk.session, room);
                }
            }
            if let Some(message) = message {
                return Some(Ok(Taken { message, room }));
            }
        }
        self.errors.pop_front().map(Err)
    }
}
