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
//! Law: a timer is set exactly while its state has one, and counts add up to the slots.

use crate::ids::{ConsumerId, Offset, Tick};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is happening to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// May go out as soon as gate, window and a consumer allow it.
    Ready,
    /// In a stream's queue; the connection has not taken it: no attempt, no timer.
    Queued {
        consumer: ConsumerId,
        /// Which placing in a queue this is: tells it from earlier ones of the same offset.
        ticket: u64,
    },
    /// With a client; fails at `until`.
    InFlight { consumer: ConsumerId, until: Tick },
    /// Comes again at `until`.
    Waiting { until: Tick },
    /// Poison: waits for an ack, another policy or a seek.
    Blocked { since: Tick },
    /// Poison: the copy is being written, or after a failure waits until `retry`.
    DeadLettering { tries: u32, retry: Option<Tick>, error: String },
}

impl State {
    /// When this state ends by itself.
    fn timer(&self) -> Option<Tick> {
        match self {
            State::InFlight { until, .. } | State::Waiting { until } => Some(*until),
            State::DeadLettering { retry, .. } => *retry,
            State::Ready | State::Queued { .. } | State::Blocked { .. } => None,
        }
    }
}

/// A message that is fetched and not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub key: Arc<str>,
    pub state: State,
    /// Deliveries that count.
    pub attempts: u32,
    /// Whether a consumer may have seen it since the last seek: only then an ack means it.
    pub is_known: bool,
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
    fn of(&mut self, state: &State) -> &mut u32 {
        match state {
            State::Ready => &mut self.ready,
            State::Queued { .. } => &mut self.queued,
            State::InFlight { .. } => &mut self.in_flight,
            State::Waiting { .. } => &mut self.waiting,
            State::Blocked { .. } => &mut self.blocked,
            State::DeadLettering { .. } => &mut self.dead_lettering,
        }
    }

    /// What counts against the window.
    pub fn window_used(&self) -> u32 {
        self.queued + self.in_flight + self.waiting + self.blocked + self.dead_lettering
    }
}

/// All slots of a subscription.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    by_offset: BTreeMap<Offset, Slot>,
    timers: BTreeSet<(Tick, Offset)>,
    counts: Counts,
}

impl Slots {
    pub fn get(&self, offset: Offset) -> Option<&Slot> {
        self.by_offset.get(&offset)
    }

    pub fn len(&self) -> usize {
        self.by_offset.len()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The slots in offset order.
    pub fn iter(&self) -> impl Iterator<Item = (Offset, &Slot)> {
        self.by_offset.iter().map(|(offset, slot)| (*offset, slot))
    }

    /// Takes in a fetched message as ready. There must be no slot of this offset.
    pub fn insert(&mut self, offset: Offset, key: Arc<str>, attempts: u32) {
        let slot = Slot { key, state: State::Ready, attempts, is_known: attempts > 0 };
        self.counts.ready += 1;
        let before = self.by_offset.insert(offset, slot);
        debug_assert!(before.is_none(), "offset {offset} has two slots");
    }

    /// Puts a slot into another state and gives the earlier one; `None` without such a slot.
    pub fn set(&mut self, offset: Offset, next: State) -> Option<State> {
        let slot = self.by_offset.get_mut(&offset)?;
        if let State::Queued { .. } = next {
            slot.is_known = true;
        }
        *self.counts.of(&slot.state) -= 1;
        *self.counts.of(&next) += 1;
        if let Some(tick) = slot.state.timer() {
            self.timers.remove(&(tick, offset));
        }
        if let Some(tick) = next.timer() {
            self.timers.insert((tick, offset));
        }
        Some(std::mem::replace(&mut slot.state, next))
    }

    /// Sets how many deliveries of a message count.
    pub fn set_attempts(&mut self, offset: Offset, attempts: u32) {
        if let Some(slot) = self.by_offset.get_mut(&offset) {
            slot.attempts = attempts;
        }
    }

    /// Takes a slot out.
    pub fn remove(&mut self, offset: Offset) -> Option<Slot> {
        let slot = self.by_offset.remove(&offset)?;
        *self.counts.of(&slot.state) -= 1;
        if let Some(tick) = slot.state.timer() {
            self.timers.remove(&(tick, offset));
        }
        Some(slot)
    }

    /// The earliest timer.
    pub fn next_timer(&self) -> Option<Tick> {
        self.timers.first().map(|(tick, _)| *tick)
    }

    /// Slots whose timer is due, earliest first.
    pub fn due(&self, now: Tick) -> Vec<Offset> {
        self.timers.iter().take_while(|(tick, _)| *tick <= now).map(|(_, o)| *o).collect()
    }
}
