//! Bodies: which of them the driver has to keep, and which it reads again when their turn comes.
//!
//! The engine holds many more messages than their bodies fit into memory: a key that stands still
//! lets thousands gather behind it. So beyond [`Config::body_bytes_max`] a body that is not needed
//! soon is parked, and read again when the message could go.
//!
//! Law: what is delivered or copied has its body with the driver; what is wanted is being read,
//! waits in line for it, or for another try.

use super::fetch::FETCH_RETRY_MS;
use super::gate::Gate;
use super::slot::{SlotId, State};
use super::{Config, Effect, Item, Note, Subscription};
use crate::ids::{Offset, Tick};
use std::collections::VecDeque;

/// Most reads of parked messages under way.
const READS_MAX: usize = 16;
/// Most messages of one such read.
const READ_LEN_MAX: u32 = 64;

/// Bodies that are held, and that are to be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies {
    /// Bytes of the bodies that the driver has for us.
    pub bytes: u64,
    /// What the last fetch brought, while nobody has looked whether its bodies may stay.
    pub newest: Vec<Offset>,
    /// Wanted and not asked for, by offset in order of want.
    line: VecDeque<Offset>,
    reads: Vec<Read>,
}

/// A read that is under way, or failed and will be tried again.
#[derive(Debug, Clone, Copy)]
struct Read {
    from: Offset,
    end: Offset,
    asked: Tick,
    retry: Option<Tick>,
}

impl Bodies {
    /// Whether no more should be read ahead.
    pub fn are_full(&self, config: &Config) -> bool {
        self.bytes >= config.body_bytes_max
    }

    /// Whether what is not needed soon should go.
    fn are_tight(&self, config: &Config) -> bool {
        self.bytes > config.body_bytes_max / 2
    }

    /// When a failed read is due for another try.
    pub fn retry(&self) -> Option<Tick> {
        self.reads.iter().filter_map(|read| read.retry).min()
    }

    /// Whether anything is being read.
    pub fn are_coming(&self) -> bool {
        !self.line.is_empty() || self.reads.iter().any(|read| read.retry.is_none())
    }

    /// When the oldest read was asked for that is not answered, and where it begins.
    pub fn asked(&self) -> Option<(Tick, Offset)> {
        let asked = self.reads.iter().filter(|read| read.retry.is_none());
        asked.map(|read| (read.asked, read.from)).min()
    }
}

impl Subscription {
    /// A parked message's body is needed.
    pub(super) fn want_body(&mut self, id: SlotId) {
        let slot = self.slots.get_mut(id);
        if !slot.has_body && !slot.is_wanted {
            slot.is_wanted = true;
            self.bodies.line.push_back(slot.offset);
        }
    }

    /// Wants a message that could go, and where all go in order those that follow it.
    pub(super) fn want_next(&mut self, id: SlotId) {
        self.want_body(id);
        if let Gate::PerKey(_) = self.gate {
            return;
        }
        let first = self.slots.get(id).offset;
        for n in 1..u64::from(READ_LEN_MAX) {
            match self.slots.find(first.plus(n)) {
                Some(next) if self.slots.get(next).is_ready() => self.want_body(next),
                _ => return,
            }
        }
    }

    /// Asks for what is wanted.
    pub(super) fn read_bodies(&mut self, now: Tick, out: &mut Vec<Effect>) {
        while self.bodies.reads.len() < READS_MAX
            && let Some(from) = self.bodies.line.pop_front()
        {
            // What was finished meanwhile, or came with another read, is wanted no more.
            if !self.is_wanted(from) {
                continue;
            }
            let mut end = from.next();
            while self.bodies.line.front() == Some(&end) && end.0 - from.0 < READ_LEN_MAX.into() {
                self.bodies.line.pop_front();
                end = end.next();
            }
            self.bodies.reads.push(Read { from, end, asked: now, retry: None });
            out.push(Effect::Refetch { from, max: (end.0 - from.0) as u32 });
        }
    }

    /// Asks anew for what could not be read.
    pub(super) fn read_again(&mut self, now: Tick, out: &mut Vec<Effect>) {
        for place in (0..self.bodies.reads.len()).rev() {
            let Read { from, end, retry, .. } = self.bodies.reads[place];
            if retry.is_none_or(|retry| now < retry) {
                continue;
            }
            if (from.0..end.0).any(|offset| self.is_wanted(Offset(offset))) {
                self.bodies.reads[place] = Read { from, end, asked: now, retry: None };
                out.push(Effect::Refetch { from, max: (end.0 - from.0) as u32 });
            } else {
                self.bodies.reads.swap_remove(place);
            }
        }
    }

    pub(super) fn on_refetched(
        &mut self,
        now: Tick,
        from: Offset,
        items: Vec<Item>,
        next: Offset,
        out: &mut Vec<Effect>,
    ) {
        for item in items {
            self.on_body(item, out);
        }
        let asked = self.bodies.reads.iter().position(|r| r.from == from && r.retry.is_none());
        let Some(place) = asked else { return };
        if next <= from {
            return self.refetch_failed(now, from);
        }
        let end = self.bodies.reads.swap_remove(place).end;
        for offset in (from.0..end.0).map(Offset).filter(|o| self.is_wanted(*o)).collect::<Vec<_>>()
        {
            if offset < next {
                self.lose(offset, out);
            } else {
                self.bodies.line.push_back(offset);
            }
        }
    }

    pub(super) fn refetch_failed(&mut self, now: Tick, from: Offset) {
        let is_it = |read: &&mut Read| read.from == from && read.retry.is_none();
        if let Some(read) = self.bodies.reads.iter_mut().find(is_it) {
            read.retry = Some(now.after_ms(FETCH_RETRY_MS));
        }
    }

    /// The driver has the body of a parked message again.
    fn on_body(&mut self, item: Item, out: &mut Vec<Effect>) {
        let id = self.slots.find(item.offset).filter(|id| !self.slots.get(*id).has_body);
        let Some(id) = id else { return self.refuse(item.offset, out) };
        let slot = self.slots.get_mut(id);
        (slot.has_body, slot.is_wanted) = (true, false);
        self.bodies.bytes += u64::from(slot.len);
        match slot.state() {
            State::DeadLettering { retry: None } => self.dead_letter(id, out),
            _ => self.gate.body_came(&self.slots, id),
        }
    }

    /// The log does not have a held message any more.
    fn lose(&mut self, offset: Offset, out: &mut Vec<Effect>) {
        if let Some(id) = self.slots.find(offset) {
            out.push(Effect::Note(Note::Gap { first: offset, end: offset.next() }));
            self.finish(id, out);
        }
    }

    /// A message went out: its body is with the stream's queue. That of the next of its key is
    /// read while it is out.
    pub(super) fn park_sent(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        if self.bodies.are_tight(&self.config) {
            self.park(id, out);
        }
        if let Some(follower) = self.gate.follower(&self.slots, id)
            && !self.bodies.are_full(&self.config)
        {
            self.want_body(follower);
        }
    }

    /// Parks what the last fetch brought and could not go, newest first, as far as bytes demand
    /// it: at half the budget what waits for others of its key, beyond it whatever waits.
    pub(super) fn park_newest(&mut self, out: &mut Vec<Effect>) {
        let newest = std::mem::take(&mut self.bodies.newest);
        for is_last_resort in [false, true] {
            for offset in newest.iter().rev() {
                let is_enough = match is_last_resort {
                    false => !self.bodies.are_tight(&self.config),
                    true => !self.bodies.are_full(&self.config),
                };
                if is_enough {
                    break;
                }
                let Some(id) = self.slots.find(*offset) else { continue };
                let slot = self.slots.get(id);
                if slot.is_ready()
                    && slot.has_body
                    && (is_last_resort || self.gate.is_behind(&self.slots, id))
                {
                    self.park(id, out);
                }
            }
        }
    }

    fn park(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        let slot = self.slots.get_mut(id);
        slot.has_body = false;
        self.bodies.bytes -= u64::from(slot.len);
        out.push(Effect::Park { offset: slot.offset });
    }

    fn is_wanted(&self, offset: Offset) -> bool {
        self.slots.find(offset).is_some_and(|id| self.slots.get(id).is_wanted)
    }
}
