//! What must be true of one topic, whatever happened to the disk.
//!
//! The oracle hears every answer that the store gave while the process lived, and looks at what
//! the store shows: at once, and after each crash. An answer binds the store as far as the
//! durability table says; an append or a recording that was answered with an error, or not at
//! all, may turn up after a crash only as long as nothing of its topic was acknowledged behind it.
//!
//! Law: it never accepts an offset that means two acknowledged messages, a hole it cannot
//! explain, an order that is not that of the acknowledgements, or a finished message that was
//! finished less than it was promised.

use super::faults::Crash;
use bytes::Bytes;
use danube_core::subscription::progress::{Progress, Step};
use danube_core::{Offset, WalSyncMode};
use std::collections::BTreeMap;

/// Offsets left out after a power loss, where some may have been given and lost.
const JUMP: u64 = 1 << 20;
/// Jumps in a row of which nothing was left.
const JUMPS_MAX: u64 = 8;
/// Most states of one subscription that are kept apart.
const STATES_MAX: usize = 256;

/// Why a history is wrong.
pub type Violation = String;

/// The worst end of a process that an answer in this mode survives.
pub fn survives(mode: WalSyncMode) -> Crash {
    match mode {
        WalSyncMode::Async => Crash::Close,
        WalSyncMode::OsCacheFlush => Crash::Kill,
        WalSyncMode::FsyncBatch => Crash::Power,
    }
}

/// The worst end of the next process that what was seen after `crash` survives.
fn seen_after(crash: Crash) -> Crash {
    // A close that worked has synced everything; after a power loss only the platter is left.
    if crash == Crash::Kill { Crash::Kill } else { Crash::Power }
}

/// A message that was acknowledged, or seen after a crash.
#[derive(Debug, Clone)]
struct Kept {
    bytes: Bytes,
    survives: Crash,
}

/// Progress of one subscription: what it was for certain, and what was recorded since.
#[derive(Debug, Default)]
struct Tracked {
    base: Progress,
    records: Vec<Recorded>,
    /// There were too many possibilities; it is looked at again after the next certain end.
    blind: bool,
}

#[derive(Debug, Clone)]
struct Recorded {
    step: Step,
    /// `None` when it was answered with an error.
    survives: Option<Crash>,
}

/// One topic.
#[derive(Debug, Default)]
pub struct TopicOracle {
    kept: BTreeMap<u64, Kept>,
    /// One past the last offset that was acknowledged or seen.
    pub next: u64,
    /// Whether what every subscription has finished may go.
    drops: bool,
    /// The most that each subscription may ever have finished.
    most: BTreeMap<u32, Progress>,
    /// Offsets that nothing will ever have, from the first to one past the last: promised to
    /// `async` and lost, finished and lost, or left out after a power loss.
    gaps: BTreeMap<u64, u64>,
    /// One past the highest offset that was ever given or seen.
    highest: u64,
    /// One past the offsets that refused messages may have had before a crash: what is left of
    /// them may be seen and not used again.
    spent: u64,
    /// Whether the next offset may jump: after a power loss nobody knows what was given.
    jumps: bool,
    /// Whether every append was to survive a power loss, so that no jump is needed.
    always_synced: bool,
    /// Highest offset that any subscription may have finished.
    finished: u64,
    /// Messages that were not acknowledged and may turn up, in the order of sending.
    doubtful: Vec<Bytes>,
    /// Those from before a crash after which nobody could look: they may be there already, below
    /// what was written since.
    unseen: Vec<Bytes>,
    subscriptions: BTreeMap<u32, Tracked>,
}

impl TopicOracle {
    /// A new topic with these subscriptions; `always_synced` if all its appends are to be
    /// `fsync_batch`, `drops` if what all subscriptions have finished may go.
    pub fn new(always_synced: bool, drops: bool, subscriptions: &[u32]) -> TopicOracle {
        let most = subscriptions.iter().map(|id| (*id, Progress::default())).collect();
        TopicOracle { always_synced, drops, most, ..TopicOracle::default() }
    }

    /// The first offset from `offset` on that retention must keep.
    fn must_be_kept(&self, offset: u64) -> u64 {
        let unfinished = self.most.values().map(|it| it.first_unfinished(Offset(offset)).0).min();
        if self.drops { unfinished.unwrap_or(offset) } else { offset }
    }

    /// `records` were acknowledged as `first` and following.
    pub fn appended(
        &mut self,
        first: u64,
        records: &[Bytes],
        mode: WalSyncMode,
    ) -> Result<(), Violation> {
        if first < self.next {
            return Err(format!("offset {first} was given twice: {} came before", self.next));
        }
        if first > self.next {
            // An `async` append is answered before those in front of it have failed.
            let in_front = if mode == WalSyncMode::Async { self.doubtful.len() as u64 } else { 0 };
            let most = self.finished.max(self.next + in_front).max(self.spent);
            if first > most.max(self.jump_max()) {
                return Err(format!(
                    "offsets {} to {first} are skipped, and nothing explains it",
                    self.next
                ));
            }
            self.jumps &= first <= most;
            self.gaps.insert(self.next, first);
        }
        for (offset, bytes) in (first..).zip(records) {
            self.kept.insert(offset, Kept { bytes: bytes.clone(), survives: survives(mode) });
        }
        self.next = first + records.len() as u64;
        self.highest = self.highest.max(self.next);
        self.settle(mode);
        Ok(())
    }

    /// `records` were refused, or never answered.
    pub fn refused(&mut self, records: &[Bytes]) {
        self.doubtful.extend_from_slice(records);
    }

    /// A step of `subscription` was acknowledged in `mode`, or refused.
    pub fn recorded(&mut self, subscription: u32, step: &Step, mode: Option<WalSyncMode>) {
        if let Step::Finished { end: Offset(end), .. } | Step::Moved { cursor: Offset(end) } = step
        {
            self.finished = self.finished.max(*end);
            let first = if let Step::Finished { first, .. } = step { *first } else { Offset(0) };
            let most = self.most.entry(subscription).or_default();
            most.apply(&Step::Finished { first, end: Offset(*end) });
        }
        if let Some(mode) = mode {
            self.settle(mode);
        }
        let tracked = self.subscriptions.entry(subscription).or_default();
        tracked.records.push(Recorded { step: step.clone(), survives: mode.map(survives) });
    }

    /// Something was written behind what was refused, so that cannot turn up any more.
    fn settle(&mut self, mode: WalSyncMode) {
        if mode != WalSyncMode::Async {
            self.doubtful.clear();
            self.subscriptions.values_mut().for_each(Tracked::forget_failed);
        }
    }

    /// What a running store shows: `start .. next`, and these messages.
    pub fn sees_live(
        &self,
        start: u64,
        next: u64,
        messages: &[(u64, Bytes)],
    ) -> Result<(), Violation> {
        self.check_order(start, next, messages)?;
        let seen: BTreeMap<u64, &Bytes> = messages.iter().map(|(at, bytes)| (*at, bytes)).collect();
        for (offset, bytes) in &seen {
            match self.kept.get(offset) {
                Some(kept) if kept.bytes == **bytes => {}
                Some(_) => return Err(format!("offset {offset} has another message")),
                None => return Err(format!("offset {offset} was never acknowledged")),
            }
        }
        self.check_nothing_missing(&seen, start, next, |kept| kept.survives > Crash::Close)
    }

    /// The power has failed: offsets may have been given of which nothing is left.
    pub fn may_jump(&mut self) {
        self.jumps = !self.always_synced;
    }

    /// It cannot be looked at after a crash.
    pub fn is_unseen(&mut self) {
        self.spent = self.spent.max(self.next + self.doubtful.len() as u64);
        self.unseen.append(&mut self.doubtful);
    }

    /// The highest offset that may come next, should there be a jump.
    fn jump_max(&self) -> u64 {
        // What was lost or refused counts as well; a jump that was lost itself comes again.
        let jump = JUMPS_MAX * JUMP + (self.doubtful.len() + self.unseen.len()) as u64;
        if self.jumps { self.highest.max(self.finished) + jump } else { 0 }
    }

    /// What a store shows that was opened after `crash`. What it shows counts from now on.
    pub fn sees_after(
        &mut self,
        crash: Crash,
        start: u64,
        next: u64,
        messages: &[(u64, Bytes)],
    ) -> Result<(), Violation> {
        let seen: BTreeMap<u64, &Bytes> = messages.iter().map(|(at, bytes)| (*at, bytes)).collect();
        self.check_nothing_missing(&seen, start, next, |kept| kept.survives >= crash)?;
        self.spent = self.spent.max(self.next + self.doubtful.len() as u64);
        // What was not to survive, and did not, explains no hole.
        self.kept.retain(|offset, kept| kept.survives == Crash::Close || seen.contains_key(offset));
        self.check_order(start, next, messages)?;
        let mut doubtful = self.unseen.iter().chain(&self.doubtful);
        let mut kept = BTreeMap::new();
        for (offset, bytes) in messages {
            let survives = match self.kept.get(offset) {
                Some(known) if known.bytes == *bytes => known.survives.max(seen_after(crash)),
                Some(_) => return Err(format!("offset {offset} has another message")),
                None if doubtful.any(|sent| sent == bytes) => seen_after(crash),
                None => {
                    return Err(format!("offset {offset} has a message that may not be there"));
                }
            };
            kept.insert(*offset, Kept { bytes: bytes.clone(), survives });
        }
        // What is left out below a message that is there stays so.
        let ends = messages.iter().map(|(offset, _)| offset + 1);
        for (end, (next, _)) in ends.zip(messages.iter().skip(1)).filter(|(end, it)| *end < it.0) {
            self.gaps.insert(end, *next);
        }
        self.kept = kept;
        self.next = next;
        self.highest = self.highest.max(next);
        self.gaps.split_off(&next);
        // Known again once the subscriptions have been looked at.
        self.finished = 0;
        self.doubtful.clear();
        self.unseen.clear();
        Ok(())
    }

    fn check_order(
        &self,
        start: u64,
        next: u64,
        messages: &[(u64, Bytes)],
    ) -> Result<(), Violation> {
        let mut at = start;
        for (offset, _) in messages {
            if *offset < at {
                return Err(format!("offset {offset} comes after {at}"));
            }
            self.check_gap(at, *offset)?;
            at = offset + 1;
        }
        if at > next {
            return Err(format!("the end {next} is below the last message {}", at - 1));
        }
        self.check_gap(at, next)
    }

    /// Whether there is a reason for nothing to be at `at .. end`.
    fn check_gap(&self, mut at: u64, end: u64) -> Result<(), Violation> {
        while at < end {
            let gap = self.gaps.range(..=at).next_back().filter(|(_, end)| **end > at);
            let next_kept = self.kept.range(at..).next();
            let known = next_kept.map_or(u64::MAX, |(offset, _)| *offset);
            // What is above everything known may be a jump, or finished and lost.
            let beyond = self.finished.max(self.jump_max()).max(self.spent).min(known);
            at = match (gap, next_kept) {
                (Some((_, end)), _) => *end,
                _ if self.must_be_kept(at) > at => self.must_be_kept(at),
                (_, Some((offset, kept))) if *offset == at && kept.survives == Crash::Close => {
                    at + 1
                }
                _ if at < beyond => beyond,
                _ => return Err(format!("offset {at} is missing below {end}")),
            };
        }
        Ok(())
    }

    fn check_nothing_missing(
        &self,
        seen: &BTreeMap<u64, &Bytes>,
        start: u64,
        next: u64,
        must: impl Fn(&Kept) -> bool,
    ) -> Result<(), Violation> {
        for (offset, kept) in &self.kept {
            let dropped = self.must_be_kept(*offset) > *offset;
            if must(kept) && !seen.contains_key(offset) && !dropped {
                return Err(format!(
                    "offset {offset} was acknowledged to survive {:?} and is gone ({start} to {next})",
                    kept.survives
                ));
            }
        }
        Ok(())
    }

    /// What a running store says about a subscription.
    pub fn sees_progress_live(&self, subscription: u32, now: &Progress) -> Result<(), Violation> {
        let empty = Tracked::default();
        let tracked = self.subscriptions.get(&subscription).unwrap_or(&empty);
        let mut expected = tracked.base.clone();
        for record in tracked.records.iter().filter(|record| record.survives.is_some()) {
            expected.apply(&record.step);
        }
        // What was promised to `async` may have failed since.
        let asynchronous =
            tracked.records.iter().any(|record| record.survives == Some(Crash::Close));
        if expected != *now && !asynchronous {
            return Err(format!("subscription {subscription} is at {now:?}, not {expected:?}"));
        }
        Ok(())
    }

    /// What a store that was opened after `crash` says about a subscription.
    pub fn sees_progress_after(
        &mut self,
        crash: Crash,
        subscription: u32,
        now: &Progress,
    ) -> Result<(), Violation> {
        let reached = now.finished_above_cursor().map(|(_, end)| end).last();
        self.finished = self.finished.max(reached.unwrap_or(now.cursor()).0);
        self.subscriptions.entry(subscription).or_default().sees_after(crash, now).map_err(
            |states| {
                format!(
                    "subscription {subscription} is at {now:?} after {crash:?}; possible are \
                     {states:?}"
                )
            },
        )
    }

    /// Takes what a store says about a subscription after damage that may have hit its progress.
    pub fn trusts_progress(&mut self, crash: Crash, subscription: u32, now: &Progress) {
        let reached = now.finished_above_cursor().map(|(_, end)| end).last();
        self.finished = self.finished.max(reached.unwrap_or(now.cursor()).0);
        let (base, records) = (now.clone(), Vec::new());
        let tracked = Tracked { base, records, blind: crash == Crash::Kill };
        self.subscriptions.insert(subscription, tracked);
    }

    /// Subscriptions that recorded anything.
    pub fn subscriptions(&self) -> Vec<u32> {
        self.subscriptions.keys().copied().collect()
    }
}

/// What a subscription may be, and the records that lead there.
type State = (Progress, Vec<Recorded>);

impl Tracked {
    /// What was refused cannot turn up any more.
    fn forget_failed(&mut self) {
        self.records.retain(|record| record.survives.is_some());
    }

    fn sees_after(&mut self, crash: Crash, now: &Progress) -> Result<(), Vec<Progress>> {
        let states = if self.blind { None } else { self.states(crash) };
        let Some(states) = states else {
            // Too many possibilities to keep apart: look again from what is certainly kept.
            let records = Vec::new();
            *self = Tracked { base: now.clone(), records, blind: crash == Crash::Kill };
            return Ok(());
        };
        // Of several ways to the same state the longest is taken: it allows the others.
        let ways = states.iter().filter(|(state, _)| state == now);
        let Some((_, way)) = ways.max_by_key(|(_, way)| way.len()) else {
            return Err(states.into_iter().map(|(state, _)| state).collect());
        };
        if crash == Crash::Kill {
            let seen = |record: &Recorded| Recorded {
                step: record.step.clone(),
                survives: record.survives.max(Some(Crash::Kill)),
            };
            self.records = way.iter().map(seen).collect();
        } else {
            *self = Tracked { base: now.clone(), ..Tracked::default() };
        }
        Ok(())
    }

    /// What it may be after `crash`; `None` if that is too much to tell.
    fn states(&self, crash: Crash) -> Option<Vec<State>> {
        let bound = self.records.iter().rposition(|r| r.survives.is_some_and(|s| s >= crash));
        let certain = bound.map_or(0, |at| at + 1);
        let (mut going, mut ended) = (vec![(self.base.clone(), Vec::new())], Vec::new());
        for (at, record) in self.records.iter().enumerate() {
            let mut with = going.clone();
            for (state, way) in &mut with {
                state.apply(&record.step);
                way.push(record.clone());
            }
            match record.survives {
                Some(Crash::Kill | Crash::Power) if at < certain => going.clear(),
                // It may have failed since, or it may be there without being promised.
                None | Some(Crash::Close) => {}
                // Lost from here on, or here still.
                Some(_) => ended.append(&mut going),
            }
            going.append(&mut with);
            if going.len() + ended.len() > STATES_MAX {
                return None;
            }
        }
        ended.append(&mut going);
        Some(ended)
    }
}
