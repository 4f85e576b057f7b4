//! The driver's part: a log, streams, bodies, reads and copies under way, and the journal. It does
//! what the engine says and shows everything to the invariants.
//!
//! Law: it decides nothing; what happens next is the workload's choice.

use crate::chance::Chance;
use crate::invariants;
use crate::{Failure, Ledger, Mutant, Report, Sight};
use danube_core::subscription::{
    Answer, AttemptId, Config, Effect, Event, Item, Progress, Subscription,
};
use danube_core::{ConsumerId, Offset, Tick};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Events kept to tell how it came to a failure.
const TRACE_LEN_MAX: usize = 30;
/// Old deliveries that clients still speak of.
const HANDS_LEN_MAX: usize = 64;
/// Bytes of each body.
const BODY_LEN: u32 = 100;

/// An open stream.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub size: usize,
    pub queue: VecDeque<Entry>,
}

/// What lies in a stream's queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    ticket: u64,
    offset: Offset,
    attempt: u32,
    is_void: bool,
}

/// Engine, driver and ledger.
pub(crate) struct World {
    pub engine: Subscription,
    pub ledger: Ledger,
    pub now: Tick,
    pub connections: BTreeMap<ConsumerId, Connection>,
    /// What connections took: offset, and the claim that its client may make. A client that reads
    /// ahead has a wire on which it cannot make any.
    pub hands: VecDeque<(Offset, Option<AttemptId>)>,
    /// Consumers whose clients read ahead of their applications.
    pub ahead: BTreeSet<ConsumerId>,
    pub bodies: BTreeSet<Offset>,
    pub fetch: Option<(Offset, u32)>,
    pub reads: Vec<(Offset, u32)>,
    pub copies: BTreeSet<Offset>,
    pub report: Report,
    pub chance: Chance,
    seed: u64,
    mutant: Option<Mutant>,
    trace: VecDeque<String>,
}

impl World {
    pub fn new(seed: u64, config: Config, chance: Chance, mutant: Option<Mutant>) -> World {
        World {
            ledger: Ledger::new(config.kind, config.window_max),
            engine: Subscription::new(config, Progress::default(), Offset(0)),
            now: Tick(0),
            connections: BTreeMap::new(),
            hands: VecDeque::new(),
            ahead: BTreeSet::new(),
            bodies: BTreeSet::new(),
            fetch: None,
            reads: Vec::new(),
            copies: BTreeSet::new(),
            report: Report::default(),
            chance,
            seed,
            mutant,
            trace: VecDeque::new(),
        }
    }

    /// Tells the engine, does what it says, and lets the invariants look.
    pub fn tell(&mut self, event: Event) -> Result<Answer, Failure> {
        if self.trace.len() == TRACE_LEN_MAX {
            self.trace.pop_front();
        }
        self.trace.push_back(format!("{} {}", self.now, shown(&event)));
        self.report.steps += 1;
        self.ledger.begin(&event);
        let mut effects = Vec::new();
        let told = match self.mutant {
            Some(mutant) => mutant.event(event.clone(), &mut self.chance),
            None => Some(event.clone()),
        };
        let answer = match told {
            Some(told) => self.engine.step(self.now, told, &mut effects),
            None => Answer::Taken,
        };
        if let Some(mutant) = self.mutant {
            mutant.effects(&mut effects, &mut self.chance);
        }
        for effect in &effects {
            self.look(&Sight::Effect(effect))?;
            self.ledger.note(effect);
            self.perform(effect)?;
        }
        self.ledger.end(&event, answer);
        self.look(&Sight::Stepped {
            event: &event,
            answer,
            effects: &effects,
            engine: &self.engine,
            now: self.now,
        })?;
        Ok(answer)
    }

    /// Lets the invariants look at the end of a history.
    pub fn look_at_end(&self) -> Result<(), Failure> {
        self.look(&Sight::Healed { engine: &self.engine, bodies: self.bodies.len() })
    }

    fn look(&self, sight: &Sight<'_>) -> Result<(), Failure> {
        for (invariant, check) in invariants::ALL {
            check(&self.ledger, sight).map_err(|what| self.failure(invariant, what))?;
        }
        Ok(())
    }

    fn failure(&self, invariant: &'static str, what: String) -> Failure {
        let trace = self.trace.iter().cloned().collect();
        Failure { seed: self.seed, step: self.report.steps, invariant, what, trace }
    }

    fn perform(&mut self, effect: &Effect) -> Result<(), Failure> {
        match effect {
            Effect::Fetch { from, max } => {
                if self.fetch.replace((*from, *max)).is_some() {
                    return Err(self.failure("one fetch at a time", format!("{effect:?}")));
                }
            }
            Effect::Refetch { from, max } => {
                self.report.read_again += u64::from(*max);
                self.reads.push((*from, *max));
            }
            Effect::Deliver { consumer, offset, attempt, ticket } => {
                self.need_body(*offset)?;
                self.report.deliveries += 1;
                let connection = self.connections.get_mut(consumer);
                let Some(open) = connection.filter(|open| open.queue.len() < open.size) else {
                    return Err(self.failure("deliveries go where is room", format!("{effect:?}")));
                };
                let (ticket, offset, attempt) = (*ticket, *offset, *attempt);
                open.queue.push_back(Entry { ticket, offset, attempt, is_void: false });
            }
            Effect::Void { consumer, ticket } => {
                let queue = self.connections.get_mut(consumer).map(|open| &mut open.queue);
                let mut entries = queue.into_iter().flatten();
                if let Some(entry) = entries.find(|entry| entry.ticket == *ticket) {
                    entry.is_void = true;
                }
            }
            Effect::Release { offset } | Effect::Park { offset } => {
                self.bodies.remove(offset);
            }
            Effect::DeadLetter { offset, .. } => {
                self.need_body(*offset)?;
                self.copies.insert(*offset);
            }
            Effect::Record(_) | Effect::Note(_) => {}
        }
        Ok(())
    }

    fn need_body(&self, offset: Offset) -> Result<(), Failure> {
        match self.bodies.contains(&offset) {
            true => Ok(()),
            false => Err(self.failure("what is delivered has a body", format!("{offset}"))),
        }
    }

    pub fn publish(&mut self, key: Option<u8>) -> Result<(), Failure> {
        self.ledger.publish(key);
        self.tell(Event::Tail { next: self.ledger.tail() })?;
        Ok(())
    }

    pub fn open(&mut self, consumer: ConsumerId, size: u32) -> Result<(), Failure> {
        let connection = Connection { size: size as usize, queue: VecDeque::new() };
        self.connections.insert(consumer, connection);
        self.tell(Event::Opened { consumer, room: size })?;
        if self.ahead.contains(&consumer) {
            self.tell(Event::ReadsAhead { consumer })?;
        }
        Ok(())
    }

    pub fn close(&mut self, consumer: ConsumerId, clean: bool) -> Result<(), Failure> {
        self.connections.remove(&consumer);
        self.tell(Event::Closed { consumer, clean })?;
        Ok(())
    }

    /// The connection takes messages; what is void it skips.
    pub fn drain(&mut self, consumer: ConsumerId, count: usize) -> Result<(), Failure> {
        let Some(open) = self.connections.get_mut(&consumer) else { return Ok(()) };
        let count = count.min(open.queue.len());
        let can_claim = !self.ahead.contains(&consumer);
        for entry in open.queue.drain(..count).filter(|entry| !entry.is_void) {
            let epoch = self.ledger.epoch;
            let claim = AttemptId { number: entry.attempt, consumer, epoch };
            self.hands.push_back((entry.offset, can_claim.then_some(claim)));
        }
        while self.hands.len() > HANDS_LEN_MAX {
            self.hands.pop_front();
        }
        self.tell(Event::Drained { consumer, count: count as u32 })?;
        Ok(())
    }

    pub fn answer_fetch(&mut self, fewer: u64, works: bool) -> Result<(), Failure> {
        let Some((from, max)) = self.fetch.take() else { return Ok(()) };
        if !works {
            self.tell(Event::FetchFailed)?;
            return Ok(());
        }
        let (items, next) = self.read(from, max, fewer);
        self.tell(Event::Fetched { items, next })?;
        Ok(())
    }

    pub fn answer_read(&mut self, place: usize, fewer: u64, works: bool) -> Result<(), Failure> {
        if place >= self.reads.len() {
            return Ok(());
        }
        let (from, max) = self.reads.swap_remove(place);
        if !works {
            self.tell(Event::RefetchFailed { from })?;
            return Ok(());
        }
        let (items, next) = self.read(from, max, fewer);
        self.tell(Event::Refetched { from, items, next })?;
        Ok(())
    }

    pub fn answer_copy(&mut self, offset: Offset, works: bool) -> Result<(), Failure> {
        if self.copies.remove(&offset) {
            self.tell(match works {
                true => Event::DeadLettered { offset },
                false => Event::DeadLetterFailed { offset, reason: "disk full".to_owned() },
            })?;
        }
        Ok(())
    }

    pub fn seek(&mut self, to: Offset) -> Result<(), Failure> {
        self.copies.clear();
        self.tell(Event::Seek { to })?;
        Ok(())
    }

    /// The broker dies; the last `lost` records did not reach the disk.
    pub fn restart(&mut self, lost: usize) {
        self.trace.push_back(format!("{} restart, {lost} records are lost", self.now));
        self.report.restarts += 1;
        self.ledger.restart(self.ledger.journal.len().saturating_sub(lost));
        self.connections.clear();
        self.bodies.clear();
        self.reads.clear();
        self.copies.clear();
        self.fetch = None;
        let config = self.engine.config().clone();
        let progress = self.ledger.progress.clone();
        self.engine = Subscription::new(config, progress, self.ledger.tail());
    }

    /// Moves the clock; timers ring where they are due, or late.
    pub fn wait(&mut self, ms: u64, is_late: bool) -> Result<(), Failure> {
        let end = self.now.after_ms(ms);
        while let Some(at) = self.engine.next_deadline().filter(|at| *at <= end) {
            self.now = if is_late { end } else { self.now.max(at) };
            self.tell(Event::Deadline)?;
            if self.mutant == Some(Mutant::ForgetsTimers) {
                break;
            }
            if self.engine.next_deadline().is_some_and(|next| next <= self.now) {
                return Err(self.failure("liveness", "a timer that is due stays".to_owned()));
            }
        }
        self.now = end;
        Ok(())
    }

    fn read(&mut self, from: Offset, max: u32, fewer: u64) -> (Vec<Item>, Offset) {
        let end = (from.0 + u64::from(max)).min(self.ledger.tail().0);
        let end = end.saturating_sub(fewer).max(from.0);
        let items: Vec<Item> = (from.0..end)
            .filter_map(|offset| {
                let key = self.ledger.log[offset as usize]?;
                let key = Arc::from(format!("{}{}", char::from(b'a' + key % 3), key / 3));
                Some(Item { offset: Offset(offset), key, len: BODY_LEN })
            })
            .collect();
        self.bodies.extend(items.iter().map(|item| item.offset));
        (items, Offset(end))
    }
}

fn shown(event: &Event) -> String {
    match event {
        Event::Fetched { items, next } => format!("Fetched {} up to {next}", items.len()),
        Event::Refetched { from, items, next } => {
            format!("Refetched {} of {from}..{next}", items.len())
        }
        event => format!("{event:?}"),
    }
}
