//! Reading ahead: when to fetch, and what to take in.
//!
//! Nothing is read while nobody listens, so that an idle subscription holds nothing. Fetches are
//! of some size, unless they reach the end of the log.
//!
//! Law: an offset that was read over is held, finished, or recorded as skipped.

use super::gate::{Appetite, Gate};
use super::slot::State;
use super::{Effect, Item, Note, Subscription};
use crate::ids::{Offset, Tick};

/// Most messages of one fetch.
const FETCH_LEN_MAX: u32 = 1_024;
/// Fewest messages worth a fetch that does not reach the end of the log.
const FETCH_LEN_MIN: u32 = 64;
/// Messages that KeyShared holds unless configured otherwise. A key that stands still may have so
/// many behind it; those of other keys pass by until then.
pub const LOOKAHEAD_MAX: u32 = 65_536;
/// Delay before a failed fetch is tried again, in milliseconds.
pub(super) const FETCH_RETRY_MS: u64 = 1_000;

/// Where reading stands.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    next: Offset,
    pending: Option<Pending>,
    retry: Option<Tick>,
}

/// A fetch that is not answered.
#[derive(Debug, Clone, Copy)]
struct Pending {
    from: Offset,
    asked: Tick,
    /// The cursor was moved meanwhile: the answer is of no use.
    is_void: bool,
}

impl Reader {
    pub fn at(next: Offset) -> Reader {
        Reader { next, pending: None, retry: None }
    }

    pub fn seek(&mut self, to: Offset) {
        self.next = to;
        self.retry = None;
        if let Some(pending) = &mut self.pending {
            pending.is_void = true;
        }
    }

    /// The fetch failed: it is tried again later.
    pub fn failed(&mut self, now: Tick) {
        if self.pending.take().is_some_and(|pending| !pending.is_void) {
            self.retry = Some(now.after_ms(FETCH_RETRY_MS));
        }
    }

    /// Lifts a wait that is over.
    pub fn wake(&mut self, now: Tick) {
        if self.retry.is_some_and(|until| until <= now) {
            self.retry = None;
        }
    }

    pub fn retry(&self) -> Option<Tick> {
        self.retry
    }

    pub fn is_fetching(&self) -> bool {
        self.pending.is_some()
    }

    /// When the fetch was asked for that is not answered, and where it begins.
    pub fn asked(&self) -> Option<(Tick, Offset)> {
        self.pending.map(|pending| (pending.asked, pending.from))
    }
}

impl Subscription {
    /// Asks for more if there is more and it may be held.
    pub(super) fn fetch(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let lookahead_max = self.config.lookahead_max.max(1);
        let held = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let room = lookahead_max.saturating_sub(held).min(FETCH_LEN_MAX);
        let is_waiting = self.reader.pending.is_some() || self.reader.retry.is_some();
        if room == 0 || is_waiting || self.tail <= self.reader.next || !self.members.any_open() {
            return;
        }
        let from = self.progress.first_unfinished(self.reader.next);
        let left = self.tail.0.saturating_sub(from.0);
        let worthwhile = FETCH_LEN_MIN.min(lookahead_max.div_ceil(2));
        if left == 0 || (room < worthwhile && u64::from(room) < left) || !self.is_hungry() {
            return;
        }
        let max = u32::try_from(left).map_or(room, |left| left.min(room));
        self.reader.pending = Some(Pending { from, asked: now, is_void: false });
        out.push(Effect::Fetch { from, max });
    }

    /// Whether more is wanted, and the bodies that are held leave room for it. A consumer that has
    /// nothing to do is reason enough: bodies that cannot go are parked.
    fn is_hungry(&self) -> bool {
        let window_max = self.config.window_max.max(1);
        let appetite = self.gate.appetite(window_max.max(FETCH_LEN_MIN));
        let is_full = self.slots.counts().window_used() >= window_max;
        match appetite {
            Appetite::None => false,
            Appetite::Starving if !is_full => true,
            Appetite::Some | Appetite::Starving => !self.bodies.are_full(&self.config),
        }
    }

    pub(super) fn on_fetched(
        &mut self,
        now: Tick,
        mut items: Vec<Item>,
        next: Offset,
        out: &mut Vec<Effect>,
    ) {
        let pending = self.reader.pending.filter(|pending| !pending.is_void && pending.from < next);
        let Some(Pending { from, .. }) = pending else {
            // Not asked for, asked for before a seek, or no way forward: a failed read.
            self.reader.failed(now);
            items.iter().for_each(|item| self.refuse(item.offset, out));
            return;
        };
        self.reader.pending = None;
        self.reader.next = next;
        self.tail = self.tail.max(next);
        items.sort_by_key(|item| item.offset);
        let mut expected = from;
        for item in items {
            if item.offset < expected || item.offset >= next {
                self.refuse(item.offset, out);
                continue;
            }
            self.skip(expected, item.offset, out);
            expected = item.offset.next();
            self.take_in(now, item, out);
        }
        self.skip(expected, next, out);
    }

    /// Takes in a message of the log, with the failures that a restart remembers.
    fn take_in(&mut self, now: Tick, item: Item, out: &mut Vec<Effect>) {
        let Item { offset, key, len } = item;
        if self.progress.is_finished(offset) || self.slots.find(offset).is_some() {
            self.refuse(offset, out);
            return;
        }
        let (attempts, delay_ms) =
            self.progress.attempts(offset).map_or((0, 0), |a| (a.count, a.delay_ms));
        let key = self.gate.key_id(&key);
        let id = self.slots.insert(offset, key, attempts, len);
        self.bodies.bytes += u64::from(len);
        if let Gate::PerKey(_) = self.gate {
            self.bodies.newest.push(offset);
        }
        self.gate.enter(&mut self.slots, id);
        if attempts == 0 {
            return;
        }
        // The policy may have changed since the failure.
        if self.config.policy.is_exhausted(attempts) {
            return self.condemn(now, id, out);
        }
        self.set_recorded_block(offset, false, out);
        let until = self.loaded.unwrap_or(now).after_ms(delay_ms);
        if now < until {
            self.put(id, State::Waiting { until });
        }
    }

    /// The driver need not keep what is not taken in.
    pub(super) fn refuse(&self, offset: Offset, out: &mut Vec<Effect>) {
        let id = self.slots.find(offset);
        if id.is_none_or(|id| !self.slots.get(id).has_body) {
            out.push(Effect::Release { offset });
        }
    }

    /// Passes over offsets that the log does not have: the cursor must not wait for them.
    fn skip(&mut self, first: Offset, end: Offset, out: &mut Vec<Effect>) {
        let mut first = self.progress.first_unfinished(first);
        while first < end {
            let gap_end = self.progress.unfinished_end(first, end);
            out.push(Effect::Note(Note::Gap { first, end: gap_end }));
            self.finish_range(first, gap_end, out);
            first = self.progress.first_unfinished(gap_end);
        }
    }
}
