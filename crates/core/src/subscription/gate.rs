//! May this message go now, and which is next: the part in which KeyShared differs.
//!
//! [`InOrder`] (Exclusive, Failover, Shared) lets ready messages go in offset order up to the
//! first blocked one. [`PerKey`] (KeyShared) lets one message of each key go at a time, so that
//! whatever holds a message holds its key and nothing else.
//!
//! Law: no message is looked at twice without a reason. The head of a key waits in the list of
//! the consumer that owns the key; only a change of consumers makes heads look for owners anew.

use super::members::{Members, Pick};
use crate::ids::{ConsumerId, Offset};
use crate::policy::SubscriptionType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Send this message to this consumer.
    Send(Offset, ConsumerId),
    /// Nobody wants this message's key.
    Unmatched(Offset),
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
            _ => Gate::InOrder(InOrder { kind, ready: BTreeSet::new(), blocked: BTreeSet::new() }),
        }
    }

    /// A message is ready. It may have been out before.
    pub fn enter(&mut self, offset: Offset, key: &Arc<str>) {
        match self {
            Gate::InOrder(gate) => {
                gate.ready.insert(offset);
            }
            Gate::PerKey(gate) => gate.change(key, |lane| {
                lane.out.remove(&offset);
                lane.ready.insert(offset);
            }),
        }
    }

    /// A ready message is out: with a consumer, or held by its own failure.
    pub fn take(&mut self, offset: Offset, key: &Arc<str>) {
        match self {
            Gate::InOrder(gate) => {
                gate.ready.remove(&offset);
            }
            Gate::PerKey(gate) => gate.change(key, |lane| {
                lane.ready.remove(&offset);
                lane.out.insert(offset);
            }),
        }
    }

    /// A message is finished or void, wherever it was.
    pub fn leave(&mut self, offset: Offset, key: &Arc<str>) {
        match self {
            Gate::InOrder(gate) => {
                gate.ready.remove(&offset);
                gate.blocked.remove(&offset);
            }
            Gate::PerKey(gate) => gate.change(key, |lane| {
                lane.ready.remove(&offset);
                lane.out.remove(&offset);
            }),
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

    /// Consumers came, went, or changed their filters.
    pub fn members_changed(&mut self) {
        if let Gate::PerKey(gate) = self {
            gate.disown();
        }
    }

    /// The next message and its consumer. What is sent must be taken, what is unmatched finished.
    pub fn next(&mut self, members: &mut Members, has_room: impl Fn(ConsumerId) -> bool) -> Next {
        match self {
            Gate::InOrder(gate) => gate.next(members, has_room),
            Gate::PerKey(gate) => gate.next(members, has_room),
        }
    }

    /// Whether a message could go if window and consumers had room.
    pub fn has_sendable(&self) -> bool {
        match self {
            Gate::InOrder(gate) => gate.first().is_some(),
            Gate::PerKey(gate) => !gate.owned.is_empty() || !gate.fresh.is_empty(),
        }
    }
}

/// Ready messages in offset order, up to the first blocked one.
#[derive(Debug, Clone)]
pub(super) struct InOrder {
    kind: SubscriptionType,
    ready: BTreeSet<Offset>,
    blocked: BTreeSet<Offset>,
}

impl InOrder {
    fn first(&self) -> Option<Offset> {
        let first = *self.ready.first()?;
        let is_behind = self.blocked.first().is_some_and(|blocked| *blocked < first);
        (!is_behind).then_some(first)
    }

    fn next(&self, members: &mut Members, has_room: impl Fn(ConsumerId) -> bool) -> Next {
        let Some(offset) = self.first() else { return Next::Wait };
        match members.pick(self.kind, "", has_room) {
            Pick::To(consumer) => Next::Send(offset, consumer),
            Pick::Full(_) | Pick::NoMatch | Pick::NoConsumer => Next::Wait,
        }
    }
}

/// Heads of keys: messages that are the next of their key, while none of the key is out.
type Heads = BTreeMap<Offset, Arc<str>>;

/// One lane per key that has messages here.
#[derive(Debug, Clone, Default)]
pub(super) struct PerKey {
    lanes: BTreeMap<Arc<str>, Lane>,
    /// Heads whose owner is not looked up yet.
    fresh: Heads,
    /// Heads by owner. No empty lists.
    owned: BTreeMap<ConsumerId, Heads>,
    /// Heads that wait for a consumer to come.
    unowned: Heads,
}

#[derive(Debug, Clone, Default)]
struct Lane {
    ready: BTreeSet<Offset>,
    /// Holds the key while not empty.
    out: BTreeSet<Offset>,
    head: Option<(Offset, Place)>,
}

/// In which list a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Fresh,
    Owned(ConsumerId),
    Unowned,
}

impl PerKey {
    /// Changes a lane and brings its head up to date.
    fn change(&mut self, key: &Arc<str>, change: impl FnOnce(&mut Lane)) {
        let lane = self.lanes.entry(key.clone()).or_default();
        change(lane);
        let head = if lane.out.is_empty() { lane.ready.first().copied() } else { None };
        let before = lane.head.map(|(offset, _)| offset);
        if head != before {
            let left = std::mem::replace(&mut lane.head, head.map(|h| (h, Place::Fresh)));
            if let Some(head) = head {
                self.fresh.insert(head, key.clone());
            }
            if let Some((offset, place)) = left {
                self.take_from(place, offset);
            }
        }
        if self.lanes.get(key).is_some_and(|l| l.ready.is_empty() && l.out.is_empty()) {
            self.lanes.remove(key);
        }
    }

    fn take_from(&mut self, place: Place, offset: Offset) {
        match place {
            Place::Fresh => {
                self.fresh.remove(&offset);
            }
            Place::Unowned => {
                self.unowned.remove(&offset);
            }
            Place::Owned(consumer) => {
                if let Some(heads) = self.owned.get_mut(&consumer) {
                    heads.remove(&offset);
                    if heads.is_empty() {
                        self.owned.remove(&consumer);
                    }
                }
            }
        }
    }

    fn put_to(&mut self, place: Place, offset: Offset, key: Arc<str>) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.head = Some((offset, place));
        }
        match place {
            Place::Fresh => self.fresh.insert(offset, key),
            Place::Unowned => self.unowned.insert(offset, key),
            Place::Owned(consumer) => self.owned.entry(consumer).or_default().insert(offset, key),
        };
    }

    fn disown(&mut self) {
        let owned = std::mem::take(&mut self.owned).into_values().flatten();
        for (offset, key) in owned.chain(std::mem::take(&mut self.unowned)) {
            self.put_to(Place::Fresh, offset, key);
        }
    }

    fn next(&mut self, members: &mut Members, has_room: impl Fn(ConsumerId) -> bool) -> Next {
        while let Some((offset, key)) = self.fresh.pop_first() {
            let pick = members.pick(SubscriptionType::KeyShared, &key, |_| true);
            let place = match pick {
                Pick::To(owner) | Pick::Full(owner) => Place::Owned(owner),
                Pick::NoMatch | Pick::NoConsumer => Place::Unowned,
            };
            self.put_to(place, offset, key);
            if pick == Pick::NoMatch {
                return Next::Unmatched(offset);
            }
        }
        let with_room = self.owned.iter().filter(|(consumer, _)| has_room(**consumer));
        let heads = with_room.filter_map(|(owner, heads)| Some((*heads.keys().next()?, *owner)));
        match heads.min() {
            Some((offset, owner)) => Next::Send(offset, owner),
            None => Next::Wait,
        }
    }
}
