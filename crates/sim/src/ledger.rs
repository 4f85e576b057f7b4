//! What the world knows by itself, from what it told the engine and was told: a naive model with
//! sets and maps of offsets. The invariants compare with it.
//!
//! Law: nothing here comes from the engine's own view of itself.

use crate::ahead::Ahead;
use danube_core::subscription::{
    Answer, AttemptId, Effect, Event, Note, Progress, Step, Subscription,
};
use danube_core::{ConsumerId, Offset, SubscriptionType, Tick};
use std::collections::{BTreeMap, BTreeSet};

/// Something that an invariant may look at.
#[derive(Debug)]
pub enum Sight<'a> {
    /// The engine wants this; the ledger does not know of it yet.
    Effect(&'a Effect),
    /// A step is over, and the ledger knows of it.
    Stepped {
        /// What the engine was told.
        event: &'a Event,
        /// What it said to that.
        answer: Answer,
        /// What it wants.
        effects: &'a [Effect],
        /// Itself.
        engine: &'a Subscription,
        /// The time.
        now: Tick,
    },
    /// All faults have ended, and time enough has passed.
    Healed {
        /// Itself.
        engine: &'a Subscription,
        /// Bodies that the driver still keeps.
        bodies: usize,
    },
}

/// A delivery that is neither settled nor failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// To whom.
    pub consumer: ConsumerId,
    /// Its number.
    pub attempt: u32,
    /// Its ticket.
    pub ticket: u64,
}

/// The model.
#[derive(Debug)]
pub struct Ledger {
    /// How the subscription works.
    pub kind: SubscriptionType,
    /// Its window.
    pub window_max: u32,
    /// Keys of the log; `None` where it has nothing.
    pub log: Vec<Option<u8>>,
    /// Offsets that are not finished.
    pub unfinished: BTreeSet<u64>,
    /// The same by key.
    pub by_key: BTreeMap<u8, BTreeSet<u64>>,
    /// What the records say.
    pub progress: Progress,
    /// What is out.
    pub out: BTreeMap<u64, Holding>,
    /// Seeks so far in this life.
    pub epoch: u32,
    /// What was acknowledged since the last seek, and the length of the journal then.
    pub acked: BTreeMap<u64, usize>,
    /// Records so far.
    pub journal: Vec<Step>,
    /// What this step may finish, and why not otherwise.
    pub reasons: BTreeSet<u64>,
    /// Highest delivery in this life and epoch that was a message's first.
    pub newest: Option<u64>,
    /// What was delivered as a first attempt in this life and epoch.
    pub seen: BTreeSet<u64>,
    /// Whose claim the present event makes, as the ledger stood before it.
    pub claim_holds: Option<bool>,
    /// What open streams have been given.
    pub ahead: Ahead,
    /// Messages that no application can have seen before this step, though a client had them.
    pub unseen: BTreeSet<u64>,
}

impl Ledger {
    /// Nothing has happened.
    pub fn new(kind: SubscriptionType, window_max: u32) -> Ledger {
        Ledger {
            kind,
            window_max,
            log: Vec::new(),
            unfinished: BTreeSet::new(),
            by_key: BTreeMap::new(),
            progress: Progress::default(),
            out: BTreeMap::new(),
            epoch: 0,
            acked: BTreeMap::new(),
            journal: Vec::new(),
            reasons: BTreeSet::new(),
            newest: None,
            seen: BTreeSet::new(),
            claim_holds: None,
            ahead: Ahead::default(),
            unseen: BTreeSet::new(),
        }
    }

    /// One past the last offset.
    pub fn tail(&self) -> Offset {
        Offset(self.log.len() as u64)
    }

    /// A message, or a hole, at the end of the log.
    pub fn publish(&mut self, key: Option<u8>) {
        let offset = self.log.len() as u64;
        self.log.push(key);
        self.open_again(offset);
    }

    /// Before a step: what the event itself brings about.
    pub fn begin(&mut self, event: &Event) {
        self.reasons.clear();
        self.claim_holds = None;
        match event {
            Event::Acked { offset, attempt } => {
                self.reasons.insert(offset.0);
                self.speak(*offset, *attempt);
            }
            Event::Nacked { offset, attempt, .. } => self.speak(*offset, *attempt),
            Event::Extended { offset, attempt, by_ms } => {
                self.speak(*offset, *attempt);
                if *by_ms == 0 && self.claim_holds != Some(false) {
                    self.out.remove(&offset.0);
                }
            }
            Event::DeadLettered { offset } => {
                self.reasons.insert(offset.0);
            }
            Event::Drained { consumer, count } => {
                self.ahead.drain(*consumer, *count, is_out(&self.out));
            }
            Event::ReadsAhead { consumer } => self.ahead.read_ahead(*consumer),
            Event::WindowChanged(window_max) => self.window_max = *window_max,
            Event::Seek { .. } => {
                self.out.clear();
                self.epoch += 1;
            }
            _ => {}
        }
        self.unseen = self.ahead.unseen().collect();
        if let Event::Opened { consumer, .. }
        | Event::Closed { consumer, .. }
        | Event::Detached { consumer } = event
        {
            self.out.retain(|_, holding| holding.consumer != *consumer);
            self.ahead.close(*consumer);
        }
        if let Event::Opened { consumer, .. } = event {
            self.ahead.open(*consumer);
        }
    }

    /// A client speaks of a message, and whoever has it is taken to be that client unless it says
    /// otherwise.
    fn speak(&mut self, offset: Offset, attempt: Option<AttemptId>) {
        self.claim_holds = attempt.map(|attempt| self.holds(offset, attempt));
        if let Some(holding) = self.out.get(&offset.0)
            && self.claim_holds != Some(false)
        {
            self.ahead.speak(holding.consumer, (offset.0, holding.ticket));
        }
    }

    /// Takes note of an effect.
    pub fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Deliver { consumer, offset, attempt, ticket } => {
                let holding = Holding { consumer: *consumer, attempt: *attempt, ticket: *ticket };
                self.out.insert(offset.0, holding);
                self.ahead.deliver(*consumer, (offset.0, *ticket));
                if *attempt == 1 && self.seen.insert(offset.0) {
                    self.newest = self.newest.max(Some(offset.0));
                }
            }
            Effect::Record(step) => self.record(step),
            Effect::DeadLetter { offset, .. } => {
                self.out.remove(&offset.0);
            }
            Effect::Note(Note::AckTimeout(offset)) => self.relieve(*offset),
            Effect::Note(Note::Dropped(offset) | Note::Unmatched(offset)) => {
                self.reasons.insert(offset.0);
            }
            Effect::Note(Note::Gap { first, end }) => {
                let gone = (first.0..end.0).filter(|o| self.log.get(*o as usize) == Some(&None));
                self.reasons.extend(gone.collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    /// After a step: what its answer says.
    pub fn end(&mut self, event: &Event, answer: Answer) {
        if let (Event::Acked { offset, .. }, Answer::Taken) = (event, answer) {
            self.acked.insert(offset.0, self.journal.len());
        }
        self.ahead.settle(is_out(&self.out));
    }

    /// An application let its time run out: in Shared, what its client has besides may go to
    /// others, if there are any.
    fn relieve(&mut self, offset: Offset) {
        if self.kind != SubscriptionType::Shared || self.ahead.streams() < 2 {
            return;
        }
        let holder = self.out.get(&offset.0).map(|holding| holding.consumer);
        for entry in holder.map(|holder| self.ahead.relieve(holder)).unwrap_or_default() {
            if is_out(&self.out)(entry) {
                self.out.remove(&entry.0);
            }
        }
    }

    /// The broker died; of the journal `kept` records are left.
    pub fn restart(&mut self, kept: usize) {
        self.journal.truncate(kept);
        self.acked.retain(|_, journal_len| *journal_len <= kept);
        let mut progress = Progress::default();
        self.journal.iter().for_each(|step| progress.apply(step));
        self.progress = progress;
        self.out.clear();
        self.ahead.clear();
        self.epoch = 0;
        self.reopen();
    }

    fn holds(&self, offset: Offset, attempt: AttemptId) -> bool {
        attempt.epoch == self.epoch
            && self.out.get(&offset.0).is_some_and(|holding| {
                (holding.consumer, holding.attempt) == (attempt.consumer, attempt.number)
            })
    }

    fn record(&mut self, step: &Step) {
        self.progress.apply(step);
        self.journal.push(step.clone());
        match step {
            Step::Finished { first, end } => {
                for offset in first.0..end.0 {
                    self.unfinished.remove(&offset);
                    self.out.remove(&offset);
                    if let Some(Some(key)) = self.log.get(offset as usize)
                        && let Some(open) = self.by_key.get_mut(key)
                    {
                        open.remove(&offset);
                    }
                }
            }
            Step::Failed { offset, .. } => {
                self.out.remove(&offset.0);
            }
            Step::Moved { .. } => {
                self.acked.clear();
                self.reopen();
            }
            Step::Delivered { .. } | Step::Delayed { .. } => {}
        }
    }

    /// Takes from the records what is not finished.
    fn reopen(&mut self) {
        self.newest = None;
        self.seen.clear();
        self.unfinished.clear();
        self.by_key.clear();
        for offset in 0..self.log.len() as u64 {
            self.open_again(offset);
        }
    }

    fn open_again(&mut self, offset: u64) {
        if !self.progress.is_finished(Offset(offset)) {
            self.unfinished.insert(offset);
            if let Some(key) = self.log[offset as usize] {
                self.by_key.entry(key).or_default().insert(offset);
            }
        }
    }
}

/// Whether a delivery is neither settled nor failed.
fn is_out(out: &BTreeMap<u64, Holding>) -> impl Fn((u64, u64)) -> bool {
    |(offset, ticket)| out.get(&offset).is_some_and(|holding| holding.ticket == ticket)
}
