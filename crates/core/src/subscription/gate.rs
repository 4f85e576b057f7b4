//! May this message go now, and which is next: the part in which KeyShared differs.
//!
//! [`InOrder`] (Exclusive, Failover, Shared) lets ready messages go in offset order up to the
//! first blocked one. [`PerKey`](super::lanes::PerKey) (KeyShared) lets one message of each key go
//! at a time, so that whatever holds a message holds its key and nothing else.
//!
//! Law: no message is looked at twice without a reason, and none goes whose body the driver does
//! not have.

use super::lanes::PerKey;
use super::members::{Members, Pick};
use super::slot::{KeyId, List, SlotId, Slots, StreamNo};
use super::stream::{Stream, Streams};
use crate::ids::{ConsumerId, Offset};
use crate::policy::SubscriptionType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Send this message to this consumer.
    Send(SlotId, ConsumerId),
    /// Nobody wants this message's key.
    Unmatched(SlotId),
    /// This message could go if its body were there.
    Read(SlotId),
    /// Nothing may go now.
    Wait,
}

/// The ready messages of a subscription.
#[derive(Debug, Clone)]
pub(super) enum Gate {
    InOrder(InOrder),
    PerKey(PerKey),
}

impl Gate {
    pub fn new(kind: SubscriptionType) -> Gate {
        match kind {
            SubscriptionType::KeyShared => Gate::PerKey(PerKey::default()),
            _ => Gate::InOrder(InOrder {
                kind,
                fresh: List::EMPTY,
                returned: BTreeMap::new(),
                blocked: BTreeSet::new(),
            }),
        }
    }

    /// The number of a key; only KeyShared keeps keys. A message of it must enter next.
    pub fn key_id(&mut self, key: &Arc<str>) -> KeyId {
        match self {
            Gate::InOrder(_) => 0,
            Gate::PerKey(gate) => gate.key_id(key),
        }
    }

    /// The key of a held message; empty unless KeyShared.
    pub fn key(&self, id: KeyId) -> Arc<str> {
        match self {
            Gate::InOrder(_) => Arc::from(""),
            Gate::PerKey(gate) => gate.key(id),
        }
    }

    /// A message was fetched. It is ready.
    pub fn enter(&mut self, slots: &mut Slots, id: SlotId) {
        match self {
            Gate::InOrder(gate) => gate.fresh.insert(slots, id),
            Gate::PerKey(gate) => gate.enter(slots, id),
        }
    }

    /// A message that was out is ready again.
    pub fn come_back(&mut self, slots: &mut Slots, id: SlotId) {
        match self {
            Gate::InOrder(gate) => {
                gate.returned.insert(slots.get(id).offset, id);
            }
            Gate::PerKey(gate) => gate.come_back(slots, id),
        }
    }

    /// A ready message is out: with a consumer, or held by its own failure.
    pub fn take(&mut self, slots: &mut Slots, id: SlotId) {
        match self {
            Gate::InOrder(gate) => gate.remove_ready(slots, id),
            Gate::PerKey(gate) => gate.take(slots, id),
        }
    }

    /// A message is finished or void, wherever it is.
    pub fn leave(&mut self, slots: &mut Slots, id: SlotId) {
        match self {
            Gate::InOrder(gate) if slots.get(id).is_ready() => gate.remove_ready(slots, id),
            Gate::InOrder(gate) => {
                gate.blocked.remove(&slots.get(id).offset);
            }
            Gate::PerKey(gate) => gate.leave(slots, id),
        }
    }

    /// A message that is out blocks, or does so no more.
    pub fn set_blocked(&mut self, offset: Offset, is_blocked: bool) {
        // In KeyShared, being out is enough to hold the key.
        if let Gate::InOrder(gate) = self {
            if is_blocked {
                gate.blocked.insert(offset);
            } else {
                gate.blocked.remove(&offset);
            }
        }
    }

    /// A message's body is there again.
    pub fn body_came(&mut self, slots: &Slots, id: SlotId) {
        if let Gate::PerKey(gate) = self {
            gate.body_came(slots, id);
        }
    }

    /// Consumers came, went, or changed their filters.
    pub fn members_changed(&mut self, slots: &Slots) {
        if let Gate::PerKey(gate) = self {
            gate.disown(slots);
        }
    }

    /// A stream has room now, or has none any more: it is full, or closed.
    pub fn room_changed(&mut self, stream: StreamNo, has_room: bool) {
        if let Gate::PerKey(gate) = self {
            gate.room_changed(stream, has_room);
        }
    }

    /// The next message and its consumer. What is sent must be taken, what is unmatched finished,
    /// what is to be read must be asked for.
    pub fn next(&mut self, slots: &Slots, members: &mut Members, streams: &Streams) -> Next {
        match self {
            Gate::InOrder(gate) => gate.next(slots, members, streams),
            Gate::PerKey(gate) => gate.next(slots, members, streams),
        }
    }

    /// Whether a message could go if window and consumers had room.
    pub fn has_sendable(&self, slots: &Slots) -> bool {
        match self {
            Gate::InOrder(gate) => gate.first(slots).is_some(),
            Gate::PerKey(gate) => gate.sendable() > 0,
        }
    }

    /// Whether a message goes now if the window has room: only a defect keeps this up.
    pub fn has_taker(&self, slots: &Slots, members: &Members, streams: &Streams) -> bool {
        match self {
            Gate::InOrder(gate) => gate.first(slots).is_some_and(|id| {
                let has_room = |c: ConsumerId| streams.of(c).is_some_and(Stream::has_room);
                slots.get(id).has_body && members.has_taker(gate.kind, has_room)
            }),
            Gate::PerKey(gate) => gate.has_taker(),
        }
    }

    /// Whether looking further ahead may find something to send: in KeyShared while a consumer
    /// has room and nothing of its own, or few keys have anything to send.
    pub fn appetite(&self, enough: u32) -> Appetite {
        match self {
            Gate::InOrder(_) => Appetite::Some,
            Gate::PerKey(gate) => gate.appetite(enough),
        }
    }

    /// The message behind one that goes out, if that one keeps it from going.
    pub fn follower(&self, slots: &Slots, id: SlotId) -> Option<SlotId> {
        match self {
            Gate::InOrder(_) => None,
            Gate::PerKey(gate) => gate.follower(slots, id),
        }
    }

    /// Whether a ready message has to wait for others of its key.
    pub fn is_behind(&self, slots: &Slots, id: SlotId) -> bool {
        match self {
            Gate::InOrder(_) => false,
            Gate::PerKey(gate) => gate.is_behind(slots, id),
        }
    }
}

/// How urgently more messages are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Appetite {
    /// There is enough to send.
    None,
    /// It is good to have more.
    Some,
    /// A consumer has nothing to do.
    Starving,
}

/// Ready messages in offset order, up to the first blocked one.
#[derive(Debug, Clone)]
pub(super) struct InOrder {
    kind: SubscriptionType,
    /// Never out so far.
    fresh: List,
    /// Out before.
    returned: BTreeMap<Offset, SlotId>,
    blocked: BTreeSet<Offset>,
}

impl InOrder {
    fn first(&self, slots: &Slots) -> Option<SlotId> {
        let fresh = (!self.fresh.is_empty()).then_some(self.fresh.first);
        let first = match (fresh, self.returned.first_key_value()) {
            (Some(fresh), Some((offset, _))) if slots.get(fresh).offset < *offset => fresh,
            (_, Some((_, returned))) => *returned,
            (fresh, None) => fresh?,
        };
        let blocked = self.blocked.first();
        let is_behind = blocked.is_some_and(|blocked| *blocked < slots.get(first).offset);
        (!is_behind).then_some(first)
    }

    fn next(&self, slots: &Slots, members: &mut Members, streams: &Streams) -> Next {
        let Some(id) = self.first(slots) else { return Next::Wait };
        let has_room = |c: ConsumerId| streams.of(c).is_some_and(Stream::has_room);
        let slot = slots.get(id);
        if !slot.has_body {
            let is_due = !slot.is_wanted && members.has_taker(self.kind, has_room);
            return if is_due { Next::Read(id) } else { Next::Wait };
        }
        match members.pick(self.kind, "", has_room) {
            Pick::To(consumer) => Next::Send(id, consumer),
            Pick::Full(_) | Pick::NoMatch | Pick::NoConsumer => Next::Wait,
        }
    }

    fn remove_ready(&mut self, slots: &mut Slots, id: SlotId) {
        if self.returned.remove(&slots.get(id).offset).is_none() {
            self.fresh.remove(slots, id);
        }
    }
}
