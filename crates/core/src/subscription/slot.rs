//! The messages that are fetched and not finished: one slot each, with its state and its timer.
//!
//! ```text
//!            picked            drained           failed
//!   ready ──────────▶ queued ──────────▶ in flight ──────────▶ waiting ──▶ ready
//!     ▲                 │                    │    │ exhausted
//!     └── stream gone ──┴────────────────────┘    ├──▶ blocked
//!                                                 └──▶ dead-lettering
//! ```
//!
//! Everything but ready counts against the window. Who moves a slot is decided elsewhere; here
//! the counts and the timers follow.
//!
//! A slot is small (see the test), because a subscription may hold a million: slots lie in chunks
//! and are found by [`Index`](super::index::Index); those of one moment, or of one list of the
//! [`gate`](super::gate), are linked through the slots themselves.
//!
//! Law: a timer is set exactly while its state has one, and counts add up to the slots.

use super::index::Index;
use crate::ids::{Offset, Tick};
use std::collections::BTreeMap;

/// A slot's number. It is given again once the slot is gone.
pub(super) type SlotId = u32;
/// An open stream's number. It is given again once the stream is gone.
pub(super) type StreamNo = u32;
/// A key's number, in KeyShared. It is given again once no message of the key is held.
pub(super) type KeyId = u32;

/// No slot.
pub(super) const NIL: SlotId = SlotId::MAX;
/// Slots of one chunk.
const CHUNK_LEN: usize = 256;

/// What is happening to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// May go out as soon as gate, window and a consumer allow it.
    Ready,
    /// In a stream's queue; the connection has not taken it: no attempt, no timer.
    Queued {
        stream: StreamNo,
        /// Which placing in a queue this is: tells it from earlier ones of the same slot.
        ticket: u64,
    },
    /// With a client; fails at `until`.
    InFlight { stream: StreamNo, until: Tick },
    /// Comes again at `until`.
    Waiting { until: Tick },
    /// Poison: waits for an ack, another policy or a seek.
    Blocked { since: Tick },
    /// Poison: the copy is being written, or waits until `retry` for another try.
    DeadLettering { retry: Option<Tick> },
}

impl State {
    /// When this state ends by itself.
    fn timer(self) -> Option<Tick> {
        match self {
            State::InFlight { until, .. } | State::Waiting { until } => Some(until),
            State::DeadLettering { retry } => retry,
            State::Ready | State::Queued { .. } | State::Blocked { .. } => None,
        }
    }
}

/// [`State`] without its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Ready,
    Queued,
    InFlight,
    Waiting,
    Blocked,
    DeadLettering,
}

/// A message that is fetched and not finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub offset: Offset,
    /// Ticket, end, or begin of the state. [`u64::MAX`] is no end.
    when: u64,
    /// Neighbours among the slots with the same timer; without a timer, in a list of the gate.
    prev: SlotId,
    next: SlotId,
    pub key: KeyId,
    /// Deliveries that count.
    pub attempts: u32,
    stream: StreamNo,
    /// In flight: how long the client may hold it, from its delivery to its timer.
    pub held_ms: u32,
    /// Bytes of the body.
    pub len: u32,
    tag: Tag,
    /// Whether a consumer may have seen it since the last seek: only then an ack means it.
    pub is_known: bool,
    /// Whether the driver has the body.
    pub has_body: bool,
    /// Whether the body is to be read again, or is being read.
    pub is_wanted: bool,
}

impl Slot {
    pub fn state(&self) -> State {
        let stream = self.stream;
        match self.tag {
            Tag::Ready => State::Ready,
            Tag::Queued => State::Queued { stream, ticket: self.when },
            Tag::InFlight => State::InFlight { stream, until: Tick(self.when) },
            Tag::Waiting => State::Waiting { until: Tick(self.when) },
            Tag::Blocked => State::Blocked { since: Tick(self.when) },
            Tag::DeadLettering => {
                State::DeadLettering { retry: (self.when != u64::MAX).then_some(Tick(self.when)) }
            }
        }
    }

    fn set_state(&mut self, state: State) {
        let (tag, stream, when) = match state {
            State::Ready => (Tag::Ready, 0, 0),
            State::Queued { stream, ticket } => (Tag::Queued, stream, ticket),
            State::InFlight { stream, until } => (Tag::InFlight, stream, until.0),
            State::Waiting { until } => (Tag::Waiting, 0, until.0),
            State::Blocked { since } => (Tag::Blocked, 0, since.0),
            State::DeadLettering { retry } => {
                (Tag::DeadLettering, 0, retry.map_or(u64::MAX, |retry| retry.0))
            }
        };
        (self.tag, self.stream, self.when) = (tag, stream, when);
    }

    pub fn is_ready(&self) -> bool {
        self.tag == Tag::Ready
    }
}

/// How many slots are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub ready: u32,
    pub queued: u32,
    pub in_flight: u32,
    pub waiting: u32,
    pub blocked: u32,
    pub dead_lettering: u32,
}

impl Counts {
    fn of(&mut self, tag: Tag) -> &mut u32 {
        match tag {
            Tag::Ready => &mut self.ready,
            Tag::Queued => &mut self.queued,
            Tag::InFlight => &mut self.in_flight,
            Tag::Waiting => &mut self.waiting,
            Tag::Blocked => &mut self.blocked,
            Tag::DeadLettering => &mut self.dead_lettering,
        }
    }

    /// What counts against the window.
    pub fn window_used(&self) -> u32 {
        self.queued + self.in_flight + self.waiting + self.blocked + self.dead_lettering
    }
}

/// All slots of a subscription.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    chunks: Vec<Box<[Slot]>>,
    /// First of the unused slots, which are linked by `next`.
    unused: SlotId,
    index: Index,
    /// First slot of each moment at which timers end.
    timers: BTreeMap<Tick, SlotId>,
    counts: Counts,
    len: usize,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots {
            chunks: Vec::new(),
            unused: NIL,
            index: Index::default(),
            timers: BTreeMap::new(),
            counts: Counts::default(),
            len: 0,
        }
    }
}

impl Slots {
    pub fn find(&self, offset: Offset) -> Option<SlotId> {
        self.index.get(offset)
    }

    pub fn get(&self, id: SlotId) -> &Slot {
        &self.chunks[id as usize / CHUNK_LEN][id as usize % CHUNK_LEN]
    }

    pub fn get_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.chunks[id as usize / CHUNK_LEN][id as usize % CHUNK_LEN]
    }

    /// The state of what may be gone.
    pub fn state_of(&self, id: SlotId) -> Option<State> {
        Some(self.chunks.get(id as usize / CHUNK_LEN)?.get(id as usize % CHUNK_LEN)?.state())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The slots in offset order.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.index.iter().map(|id| (id, self.get(id)))
    }

    /// Takes in a fetched message as ready. There must be no slot of this offset.
    pub fn insert(&mut self, offset: Offset, key: KeyId, attempts: u32, len: u32) -> SlotId {
        if self.unused == NIL {
            self.grow();
        }
        let id = self.unused;
        self.unused = self.get(id).next;
        *self.get_mut(id) =
            Slot { offset, key, attempts, len, is_known: attempts > 0, has_body: true, ..UNUSED };
        self.counts.ready += 1;
        self.len += 1;
        self.index.insert(offset, id);
        id
    }

    fn grow(&mut self) {
        let first = self.chunks.len() * CHUNK_LEN;
        let mut chunk = vec![UNUSED; CHUNK_LEN];
        for (slot, next) in chunk.iter_mut().zip(first + 1..first + CHUNK_LEN) {
            slot.next = next as SlotId;
        }
        self.chunks.push(chunk.into_boxed_slice());
        self.unused = first as SlotId;
    }

    /// Puts a slot into another state and gives the earlier one. It must be in no list.
    pub fn set(&mut self, id: SlotId, state: State) -> State {
        let before = self.get(id).state();
        self.stop_timer(id, before);
        let slot = self.get_mut(id);
        slot.is_known |= matches!(state, State::Queued { .. });
        let old_tag = slot.tag;
        slot.set_state(state);
        let new_tag = slot.tag;
        *self.counts.of(old_tag) -= 1;
        *self.counts.of(new_tag) += 1;
        self.start_timer(id, state);
        before
    }

    /// Takes a slot out. It must be in no list.
    pub fn remove(&mut self, id: SlotId) -> Slot {
        let slot = *self.get(id);
        self.stop_timer(id, slot.state());
        *self.counts.of(slot.tag) -= 1;
        self.len -= 1;
        self.index.remove(slot.offset);
        if self.len == 0 {
            // A peak is over: its memory goes back.
            self.chunks.clear();
            self.unused = NIL;
        } else {
            // A queue that still names this slot must not take it for what it was.
            *self.get_mut(id) = Slot { next: self.unused, ..UNUSED };
            self.unused = id;
        }
        slot
    }

    /// The earliest timer.
    pub fn next_timer(&self) -> Option<Tick> {
        self.timers.first_key_value().map(|(tick, _)| *tick)
    }

    /// Slots whose timer is due, earliest first.
    pub fn due(&self, now: Tick) -> Vec<Offset> {
        let mut due = Vec::new();
        for (_, first) in self.timers.range(..=now) {
            let begin = due.len();
            let mut id = *first;
            while id != NIL {
                due.push(self.get(id).offset);
                id = self.get(id).next;
            }
            due[begin..].sort_unstable();
        }
        due
    }

    fn start_timer(&mut self, id: SlotId, state: State) {
        let Some(tick) = state.timer() else { return };
        let next = self.timers.insert(tick, id).unwrap_or(NIL);
        let slot = self.get_mut(id);
        (slot.prev, slot.next) = (NIL, next);
        if next != NIL {
            self.get_mut(next).prev = id;
        }
    }

    fn stop_timer(&mut self, id: SlotId, state: State) {
        let Some(tick) = state.timer() else { return };
        let (prev, next) = (self.get(id).prev, self.get(id).next);
        if next != NIL {
            self.get_mut(next).prev = prev;
        }
        if prev != NIL {
            self.get_mut(prev).next = next;
        } else if next != NIL {
            self.timers.insert(tick, next);
        } else {
            self.timers.remove(&tick);
        }
    }
}

const UNUSED: Slot = Slot {
    offset: Offset(0),
    when: 0,
    prev: NIL,
    next: NIL,
    key: 0,
    attempts: 0,
    stream: 0,
    held_ms: 0,
    len: 0,
    tag: Tag::Ready,
    is_known: false,
    has_body: false,
    is_wanted: false,
};

/// A list of ready slots in offset order, linked through the slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub first: SlotId,
    pub last: SlotId,
}

impl List {
    pub const EMPTY: List = List { first: NIL, last: NIL };

    pub fn is_empty(self) -> bool {
        self.first == NIL
    }

    /// Puts a slot at its place. At the end, and before the first, that takes no search.
    pub fn insert(&mut self, slots: &mut Slots, id: SlotId) {
        let offset = slots.get(id).offset;
        let mut next =
            if self.last != NIL && slots.get(self.last).offset < offset { NIL } else { self.first };
        while next != NIL && slots.get(next).offset < offset {
            next = slots.get(next).next;
        }
        let prev = if next == NIL { self.last } else { slots.get(next).prev };
        let slot = slots.get_mut(id);
        (slot.prev, slot.next) = (prev, next);
        self.set_next(slots, prev, id);
        self.set_prev(slots, next, id);
    }

    /// Takes a slot out of the list.
    pub fn remove(&mut self, slots: &mut Slots, id: SlotId) {
        let (prev, next) = (slots.get(id).prev, slots.get(id).next);
        self.set_next(slots, prev, next);
        self.set_prev(slots, next, prev);
    }

    fn set_next(&mut self, slots: &mut Slots, prev: SlotId, id: SlotId) {
        if prev == NIL { self.first = id } else { slots.get_mut(prev).next = id }
    }

    fn set_prev(&mut self, slots: &mut Slots, next: SlotId, id: SlotId) {
        if next == NIL { self.last = id } else { slots.get_mut(next).prev = id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_small() {
        assert_eq!(size_of::<Slot>(), 48);
    }

    #[test]
    fn lists_stay_in_offset_order() {
        let mut slots = Slots::default();
        let ids: Vec<SlotId> = (0..6).map(|o| slots.insert(Offset(o), 0, 0, 0)).collect();
        let mut list = List::EMPTY;
        let shown = |slots: &Slots, list: List| {
            let mut shown = Vec::new();
            let mut id = list.first;
            while id != NIL {
                shown.push(slots.get(id).offset.0);
                id = slots.get(id).next;
            }
            shown
        };
        for offset in [3, 5, 0, 4, 1, 2] {
            list.insert(&mut slots, ids[offset]);
        }
        assert_eq!(shown(&slots, list), [0, 1, 2, 3, 4, 5]);
        for offset in [0, 5, 2] {
            list.remove(&mut slots, ids[offset]);
        }
        assert_eq!(shown(&slots, list), [1, 3, 4]);
        assert_eq!((list.first, list.last), (ids[1], ids[4]));
        for offset in [1, 4, 3] {
            list.remove(&mut slots, ids[offset]);
        }
        assert!(list.is_empty() && list.last == NIL);
    }

    #[test]
    fn timers_of_one_moment_come_in_offset_order_and_can_be_stopped() {
        let mut slots = Slots::default();
        let ids: Vec<SlotId> = (0..4).map(|o| slots.insert(Offset(o), 0, 0, 0)).collect();
        for (offset, tick) in [(2, 7), (0, 7), (3, 5), (1, 7)] {
            slots.set(ids[offset], State::Waiting { until: Tick(tick) });
        }
        assert_eq!(slots.due(Tick(7)), [3, 0, 1, 2].map(Offset));
        slots.set(ids[0], State::Ready);
        slots.remove(ids[3]);
        assert_eq!(
            (slots.due(Tick(7)), slots.next_timer()),
            ([1, 2].map(Offset).to_vec(), Some(Tick(7)))
        );
        slots.remove(ids[1]);
        slots.set(ids[2], State::Blocked { since: Tick(1) });
        assert_eq!((slots.due(Tick(99)).len(), slots.next_timer()), (0, None));
        assert_eq!(slots.counts(), Counts { ready: 1, blocked: 1, ..Counts::default() });
    }
}
