//! KeyShared's gate: one lane per key that has messages here.
//!
//! The head of a lane is the next message of its key, while none of the key is out. Heads lie with
//! the stream of the consumer that owns the key; only a change of consumers makes heads look for
//! owners anew. The first head of each stream that has room is in front: of these the oldest goes.
//!
//! Law: at most one message of a key goes at a time, in offset order; what a delivery costs does
//! not grow with the number of consumers, but for its logarithm.

use super::gate::{Appetite, Next};
use super::members::{Members, Pick};
use super::slot::{KeyId, List, NIL, SlotId, Slots, StreamNo};
use super::stream::Streams;
use crate::ids::Offset;
use crate::policy::SubscriptionType;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// All lanes.
#[derive(Debug, Clone, Default)]
pub(super) struct PerKey {
    /// By hash of the key, and through [`Lane::twin`]: numbers compare faster than texts.
    numbers: BTreeMap<u64, KeyId>,
    lanes: Vec<Lane>,
    unused: Vec<KeyId>,
    /// Heads whose owner is to be looked up, and some that are heads no more.
    fresh: VecDeque<KeyId>,
    fresh_len: usize,
    /// By number of the stream.
    owners: Vec<Owner>,
    /// Heads that lie with owners.
    owned_len: usize,
    /// The first head of each owner that has room.
    front: BTreeMap<Offset, StreamNo>,
    /// How many owners have room.
    roomy: usize,
}

/// A stream, as far as it owns keys.
#[derive(Debug, Clone, Default)]
struct Owner {
    heads: BTreeMap<Offset, KeyId>,
    has_room: bool,
}

impl Owner {
    /// The head that goes next, if this owner can take it.
    fn front(&self) -> Option<Offset> {
        let (offset, _) = self.heads.first_key_value()?;
        self.has_room.then_some(*offset)
    }
}

#[derive(Debug, Clone)]
struct Lane {
    key: Arc<str>,
    hash: u64,
    /// The next lane whose key has the same hash.
    twin: Option<KeyId>,
    ready: List,
    /// How many are out; they hold the key.
    out: u32,
    head: SlotId,
    place: Place,
}

/// Where a head lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There is no head.
    None,
    Fresh,
    Owned(StreamNo),
    /// Waits for a consumer to come.
    Unowned,
    /// Waits for its body.
    Reading,
}

impl PerKey {
    pub fn key_id(&mut self, key: &Arc<str>) -> KeyId {
        let hash = hash(key);
        let mut twin = self.numbers.get(&hash).copied();
        let first = twin;
        while let Some(id) = twin {
            let lane = &self.lanes[id as usize];
            if lane.key == *key {
                return id;
            }
            twin = lane.twin;
        }
        let lane = Lane {
            key: key.clone(),
            hash,
            twin: first,
            ready: List::EMPTY,
            out: 0,
            head: NIL,
            place: Place::None,
        };
        let id = match self.unused.pop() {
            Some(id) => {
                self.lanes[id as usize] = lane;
                id
            }
            None => {
                self.lanes.push(lane);
                (self.lanes.len() - 1) as KeyId
            }
        };
        self.numbers.insert(hash, id);
        id
    }

    /// Gives up a lane that holds nothing.
    fn close(&mut self, id: KeyId) {
        let Lane { hash, twin, .. } = self.lanes[id as usize];
        if let Entry::Occupied(mut first) = self.numbers.entry(hash) {
            if *first.get() != id {
                let mut before = *first.get();
                while let Some(next) = self.lanes[before as usize].twin.filter(|next| *next != id) {
                    before = next;
                }
                self.lanes[before as usize].twin = twin;
            } else if let Some(twin) = twin {
                first.insert(twin);
            } else {
                first.remove();
            }
        }
        self.unused.push(id);
    }

    pub fn key(&self, id: KeyId) -> Arc<str> {
        self.lanes[id as usize].key.clone()
    }

    pub fn enter(&mut self, slots: &mut Slots, id: SlotId) {
        let key = slots.get(id).key;
        self.lanes[key as usize].ready.insert(slots, id);
        self.refresh(slots, key);
    }

    pub fn come_back(&mut self, slots: &mut Slots, id: SlotId) {
        let key = slots.get(id).key;
        let lane = &mut self.lanes[key as usize];
        lane.out -= 1;
        lane.ready.insert(slots, id);
        self.refresh(slots, key);
    }

    pub fn take(&mut self, slots: &mut Slots, id: SlotId) {
        let key = slots.get(id).key;
        let lane = &mut self.lanes[key as usize];
        lane.ready.remove(slots, id);
        lane.out += 1;
        self.refresh(slots, key);
    }

    pub fn leave(&mut self, slots: &mut Slots, id: SlotId) {
        let slot = slots.get(id);
        let (key, is_ready) = (slot.key, slot.is_ready());
        let lane = &mut self.lanes[key as usize];
        if is_ready {
            lane.ready.remove(slots, id);
        } else {
            lane.out -= 1;
        }
        self.refresh(slots, key);
        let lane = &self.lanes[key as usize];
        if lane.ready.is_empty() && lane.out == 0 {
            self.close(key);
        }
    }

    pub fn body_came(&mut self, slots: &Slots, id: SlotId) {
        let key = slots.get(id).key;
        let lane = &self.lanes[key as usize];
        if lane.head == id && lane.place == Place::Reading {
            self.put_to(slots, key, Place::Fresh);
        }
    }

    /// All heads that lie with a consumer, or wait for one, look for their owners anew.
    pub fn disown(&mut self, slots: &Slots) {
        let mut heads: Vec<(Offset, KeyId)> = Vec::new();
        for (lane, key) in self.lanes.iter().zip(0..) {
            if matches!(lane.place, Place::Owned(_) | Place::Unowned) {
                heads.push((slots.get(lane.head).offset, key));
            }
        }
        heads.sort_unstable();
        for (_, key) in heads {
            self.put_to(slots, key, Place::Fresh);
        }
    }

    pub fn next(&mut self, slots: &Slots, members: &mut Members, streams: &Streams) -> Next {
        while let Some(key) = self.fresh.pop_front() {
            let lane = &self.lanes[key as usize];
            // Each time a head lies here its key is in the queue once; so count the last.
            if lane.place != Place::Fresh {
                continue;
            }
            let head = lane.head;
            let pick = members.pick(SubscriptionType::KeyShared, &lane.key, |_| true);
            let place = match pick {
                Pick::To(owner) | Pick::Full(owner) => {
                    streams.number(owner).map_or(Place::Unowned, Place::Owned)
                }
                Pick::NoMatch | Pick::NoConsumer => Place::Unowned,
            };
            self.put_to(slots, key, place);
            if pick == Pick::NoMatch {
                return Next::Unmatched(head);
            }
        }
        let Some((offset, number)) = self.front.first_key_value() else { return Next::Wait };
        let key = self.owners[*number as usize].heads[offset];
        let Some(stream) = streams.get(*number) else { return Next::Wait };
        let owner = stream.consumer;
        let head = self.lanes[key as usize].head;
        if slots.get(head).has_body {
            return Next::Send(head, owner);
        }
        self.put_to(slots, key, Place::Reading);
        Next::Read(head)
    }

    /// Heads that could go if window and consumers had room.
    pub fn sendable(&self) -> usize {
        self.owned_len + self.fresh_len
    }

    pub fn has_taker(&self) -> bool {
        self.fresh_len > 0 || !self.front.is_empty()
    }

    /// A stream has room now, or has none any more.
    pub fn room_changed(&mut self, stream: StreamNo, has_room: bool) {
        self.change_owner(stream, |owner| owner.has_room = has_room);
    }

    pub fn appetite(&self, enough: u32) -> Appetite {
        // Whoever has room and is not in front has nothing of its own.
        if self.roomy > self.front.len() {
            Appetite::Starving
        } else if self.sendable() < enough as usize {
            Appetite::Some
        } else {
            Appetite::None
        }
    }

    pub fn follower(&self, slots: &Slots, id: SlotId) -> Option<SlotId> {
        let lane = &self.lanes[slots.get(id).key as usize];
        (!lane.ready.is_empty()).then_some(lane.ready.first)
    }

    pub fn is_behind(&self, slots: &Slots, id: SlotId) -> bool {
        self.lanes[slots.get(id).key as usize].head != id
    }

    /// Brings the head of a lane up to date.
    fn refresh(&mut self, slots: &Slots, key: KeyId) {
        let lane = &self.lanes[key as usize];
        let head = if lane.out == 0 { lane.ready.first } else { NIL };
        if head == lane.head {
            return;
        }
        self.put_to(slots, key, Place::None);
        if head != NIL {
            self.lanes[key as usize].head = head;
            self.put_to(slots, key, Place::Fresh);
        }
    }

    /// Moves the head of a lane to another place.
    fn put_to(&mut self, slots: &Slots, key: KeyId, place: Place) {
        let lane = &mut self.lanes[key as usize];
        let before = std::mem::replace(&mut lane.place, place);
        let head = lane.head;
        if place == Place::None {
            lane.head = NIL;
        }
        match before {
            Place::Fresh => self.fresh_len -= 1,
            Place::Owned(owner) => {
                self.owned_len -= 1;
                let offset = slots.get(head).offset;
                self.change_owner(owner, |owner| {
                    owner.heads.remove(&offset);
                });
            }
            Place::None | Place::Unowned | Place::Reading => {}
        }
        match place {
            Place::Fresh => {
                self.fresh_len += 1;
                self.fresh.push_back(key);
            }
            Place::Owned(owner) => {
                self.owned_len += 1;
                let offset = slots.get(head).offset;
                self.change_owner(owner, |owner| {
                    owner.heads.insert(offset, key);
                });
            }
            Place::None | Place::Unowned | Place::Reading => {}
        }
    }

    /// Changes an owner, and what it has in front with it.
    fn change_owner(&mut self, number: StreamNo, act: impl FnOnce(&mut Owner)) {
        let place = number as usize;
        if place >= self.owners.len() {
            self.owners.resize_with(place + 1, Owner::default);
        }
        let owner = &mut self.owners[place];
        let (had_room, before) = (owner.has_room, owner.front());
        act(owner);
        let after = owner.front();
        self.roomy = self.roomy + usize::from(owner.has_room) - usize::from(had_room);
        if before != after {
            before.map(|offset| self.front.remove(&offset));
            after.map(|offset| self.front.insert(offset, number));
        }
    }
}

/// The same for the same key in every run, and not to be forged: clients choose the keys.
fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key.as_bytes());
    // Tests see twins all the time, which nobody else ever does.
    if cfg!(test) { hasher.finish() % 4 } else { hasher.finish() }
}
