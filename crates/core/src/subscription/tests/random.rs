//! Random histories against a model: a driver with a log, streams, a journal and crashes, which
//! checks every effect against what it knows itself.
//!
//! The model is naive on purpose: sets and maps of offsets, no gate, no lists, no tickets.

use super::super::*;
use super::script::config;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

const KEYS: [&str; 6] = ["a0", "a1", "b0", "b1", "c0", "c1"];
const FILTERS: [&[&str]; 4] = [&[], &["a*"], &["b?"], &["c0", "a1"]];
const POLICIES: [&str; 5] = [
    "2,3000,100,400,block",
    "0,2000,100,400,block",
    "1,2500,100,400,dlq",
    "3,2000,0,400,drop",
    "2,3000,200,300,dlq",
];

/// Where a delivered, unsettled message is, as the driver sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Out {
    Queued(ConsumerId),
    InFlight(ConsumerId, Tick),
}

#[derive(Debug, Default)]
struct ModelStream {
    size: usize,
    /// Offset, and whether the delivery is still meant (not settled, not voided).
    queue: VecDeque<(Offset, bool)>,
    /// What a client that reads ahead has taken and its application may not have seen; `None` for
    /// one that does not read ahead.
    ahead: Option<VecDeque<Offset>>,
}

struct World {
    subscription: Subscription,
    now: Tick,
    log: Vec<Option<Arc<str>>>,
    journal: Vec<Step>,
    progress: Progress,
    /// Finished offsets since the last seek, and everything below its target.
    finished: BTreeSet<u64>,
    /// Deliveries that count.
    attempts: BTreeMap<Offset, u32>,
    /// Somebody may have it: given out since the last seek, or held when the broker died.
    known: BTreeSet<Offset>,
    /// Given out since the last seek or restart, or failed before.
    given: BTreeSet<Offset>,
    /// Highest first delivery since the last seek or restart.
    newest: Option<Offset>,
    out: BTreeMap<Offset, Out>,
    streams: BTreeMap<ConsumerId, ModelStream>,
    bodies: BTreeSet<Offset>,
    fetch: Option<(Offset, u32)>,
    copies: BTreeSet<Offset>,
    /// May be finished in this step, and why not otherwise.
    excused: BTreeSet<u64>,
}

impl World {
    fn new(config: Config) -> World {
        World {
            subscription: Subscription::new(config, Progress::default(), Offset(0)),
            now: Tick(0),
            log: Vec::new(),
            journal: Vec::new(),
            progress: Progress::default(),
            finished: BTreeSet::new(),
            attempts: BTreeMap::new(),
            known: BTreeSet::new(),
            given: BTreeSet::new(),
            newest: None,
            out: BTreeMap::new(),
            streams: BTreeMap::new(),
            bodies: BTreeSet::new(),
            fetch: None,
            copies: BTreeSet::new(),
            excused: BTreeSet::new(),
        }
    }

    fn kind(&self) -> SubscriptionType {
        self.subscription.config().kind
    }

    fn tail(&self) -> Offset {
        Offset(self.log.len() as u64)
    }

    fn made(&self, offset: Offset) -> u32 {
        self.attempts.get(&offset).copied().unwrap_or(0)
    }

    /// One random operation.
    fn operate(&mut self, (what, x, y): (u8, u8, u8)) {
        let consumer = ConsumerId(u64::from(x % 4) + 1);
        let near = Offset((self.progress.cursor().0 + u64::from(y % 12)).saturating_sub(1));
        match what {
            0..=19 => {
                let key = Arc::from(KEYS[usize::from(x) % KEYS.len()]);
                self.log.push((y % 16 != 0).then_some(key));
                self.step(Event::Tail { next: self.tail() });
            }
            20..=27 => {
                let filters = FILTERS[usize::from(y) % FILTERS.len()];
                let key_filters = filters.iter().map(|f| (*f).to_owned()).collect();
                self.step(Event::Attached { consumer, key_filters });
            }
            28..=39 => {
                let size = u32::from(y % 5);
                self.end_stream(consumer, false);
                let stream = ModelStream { size: size as usize, ..ModelStream::default() };
                self.streams.insert(consumer, stream);
                self.step(Event::Opened { consumer, room: size });
                if x % 3 == 0 {
                    self.read_ahead(consumer);
                }
            }
            40..=69 => self.drain(consumer, u32::from(y % 4)),
            70..=75 => self.close(consumer, y % 2 == 0),
            76..=78 => {
                self.end_stream(consumer, false);
                self.step(Event::Detached { consumer });
            }
            79..=101 => self.ack(&[near]),
            102..=109 => self.ack(&[near, near.next(), near.plus(u64::from(x % 5) + 2)]),
            110..=112 => self.ack(&[Offset(u64::from(y) << (x % 58))]),
            113..=134 => self.nack(near, (x % 3 == 0).then_some(u64::from(y) * 5)),
            135..=169 => self.answer_fetch(usize::from(y % 8), x % 8 == 0),
            170..=172 => {
                self.fetch = None;
                self.step(Event::FetchFailed);
            }
            173..=175 => {
                // An answer to nothing, over whatever is there.
                let items = self.items(near.0, self.tail().0);
                if self.fetch.is_none() {
                    self.bodies.extend(items.iter().map(|item| item.offset));
                    self.step(Event::Fetched { items, next: self.tail() });
                }
            }
            176..=199 => self.answer_copy(near, y % 3 != 0),
            200..=203 => {
                let policy = POLICIES[usize::from(y) % POLICIES.len()];
                let policy = config(&format!("shared {policy}")).policy;
                self.excused.extend(0..self.tail().0);
                self.step(Event::PolicyChanged(policy));
            }
            204..=205 => self.step(Event::WindowChanged(u32::from(y % 6))),
            206..=208 => self.seek(Offset(u64::from(y) % (self.tail().0 + 3))),
            209..=212 => self.restart(usize::from(y % 4)),
            213..=217 => self.step(Event::Drained { consumer: ConsumerId(99), count: u32::MAX }),
            _ => {
                let span = u64::from(x) * u64::from(y % 8);
                self.now = self.now.after_ms(span);
                self.deadline();
            }
        }
    }

    fn read_ahead(&mut self, consumer: ConsumerId) {
        if let Some(stream) = self.streams.get_mut(&consumer) {
            stream.ahead = Some(VecDeque::new());
        }
        self.step(Event::ReadsAhead { consumer });
    }

    fn drain(&mut self, consumer: ConsumerId, count: u32) {
        for _ in 0..count {
            let Some(stream) = self.streams.get_mut(&consumer) else { break };
            let Some((offset, true)) = stream.queue.pop_front() else { continue };
            match &mut stream.ahead {
                Some(ahead) => ahead.push_back(offset),
                None => self.begin(consumer, offset),
            }
        }
        self.hand_over(consumer, None);
        self.step(Event::Drained { consumer, count });
    }

    /// The delivery counts, and its time runs.
    fn begin(&mut self, consumer: ConsumerId, offset: Offset) {
        let ack_timeout_ms = self.subscription.config().policy.ack_timeout_ms;
        self.out.insert(offset, Out::InFlight(consumer, self.now.after_ms(ack_timeout_ms)));
        *self.attempts.entry(offset).or_default() += 1;
    }

    /// An application that has nothing, apart from what is being taken `away`, has the next.
    fn hand_over(&mut self, consumer: ConsumerId, away: Option<Offset>) {
        let has = |(offset, out): (&Offset, &Out)| {
            matches!(out, Out::InFlight(c, _) if *c == consumer) && Some(*offset) != away
        };
        if self.out.iter().any(has) {
            return;
        }
        let ahead = self.streams.get_mut(&consumer).and_then(|stream| stream.ahead.as_mut());
        if let Some(next) = ahead.and_then(VecDeque::pop_front) {
            self.begin(consumer, next);
        }
    }

    /// The application speaks of a message that it may not have had: it has had all before that.
    fn speak(&mut self, offset: Offset) {
        let Some(Out::Queued(consumer)) = self.out.get(&offset).copied() else { return };
        let ahead = self.streams.get_mut(&consumer).and_then(|stream| stream.ahead.as_mut());
        let Some(ahead) = ahead else { return };
        let place = ahead.iter().position(|unseen| *unseen == offset);
        let mut seen: Vec<Offset> = ahead.drain(..place.map_or(ahead.len(), |p| p + 1)).collect();
        if place.is_some() {
            seen.pop();
        }
        seen.into_iter().for_each(|earlier| self.begin(consumer, earlier));
    }

    /// A message is about to leave the hands of its application.
    fn leave(&mut self, offset: Offset) {
        if let Some(Out::InFlight(consumer, _)) = self.out.get(&offset).copied() {
            self.hand_over(consumer, Some(offset));
        }
    }

    /// What the end of a stream does to the model: all it held is given back.
    fn end_stream(&mut self, consumer: ConsumerId, clean: bool) {
        self.streams.remove(&consumer);
        let held =
            |out: &Out| matches!(out, Out::Queued(c) | Out::InFlight(c, _) if *c == consumer);
        let back: Vec<(Offset, Out)> =
            self.out.iter().filter(|(_, out)| held(out)).map(|(o, out)| (*o, *out)).collect();
        for (offset, out) in back {
            self.out.remove(&offset);
            if clean && matches!(out, Out::InFlight(..)) {
                *self.attempts.get_mut(&offset).expect("it was counted when drained") -= 1;
            }
            if !clean {
                self.excuse_exhausted(offset);
            }
        }
    }

    fn close(&mut self, consumer: ConsumerId, clean: bool) {
        self.end_stream(consumer, clean);
        self.step(Event::Closed { consumer, clean });
    }

    /// A drop policy may finish an exhausted message.
    fn excuse_exhausted(&mut self, offset: Offset) {
        if self.subscription.config().policy.is_exhausted(self.made(offset)) {
            self.excused.insert(offset.0);
        }
    }

    /// Acks that come together.
    fn ack(&mut self, offsets: &[Offset]) {
        let counted: Vec<Offset> =
            offsets.iter().copied().filter(|it| self.hear_ack(*it)).collect();
        self.step_all(offsets.iter().map(|offset| Event::Acked { offset: *offset, attempt: None }));
        for offset in counted {
            assert!(self.finished.contains(&offset.0), "ack of {offset} was lost");
        }
    }

    /// Whether an ack counts; if so, the message may be finished now.
    fn hear_ack(&mut self, offset: Offset) -> bool {
        let counts = self.known.contains(&offset) && !self.finished.contains(&offset.0);
        if counts {
            self.excused.insert(offset.0);
            self.speak(offset);
            self.leave(offset);
        }
        counts
    }

    fn nack(&mut self, offset: Offset, delay_ms: Option<u64>) {
        let before = self.journal.len();
        let counts = match self.out.get(&offset).copied() {
            Some(Out::Queued(consumer)) => {
                self.void_queued(consumer, offset);
                self.speak(offset);
                self.begin(consumer, offset);
                true
            }
            Some(Out::InFlight(..)) => true,
            None => false,
        };
        if counts {
            self.excuse_exhausted(offset);
            self.leave(offset);
        }
        self.step(Event::Nacked { offset, attempt: None, delay_ms, reason: None });
        let failed = self.journal[before..]
            .iter()
            .any(|step| matches!(step, Step::Failed { offset: o, .. } if *o == offset));
        assert_eq!(failed, counts, "nack of {offset}");
    }

    fn void_queued(&mut self, consumer: ConsumerId, offset: Offset) {
        let queue = self.streams.get_mut(&consumer).map(|stream| &mut stream.queue);
        for entry in queue.into_iter().flatten().filter(|entry| entry.0 == offset) {
            entry.1 = false;
        }
    }

    fn items(&self, from: u64, end: u64) -> Vec<Item> {
        (from..end.min(self.tail().0))
            .filter_map(|offset| {
                let key = self.log[offset as usize].clone()?;
                Some(Item { offset: Offset(offset), key, len: 100 })
            })
            .collect()
    }

    fn answer_fetch(&mut self, fewer: usize, upside_down: bool) {
        let Some((from, max)) = self.fetch.take() else { return };
        let end = (from.0 + u64::from(max)).min(self.tail().0);
        let end = end.saturating_sub(fewer as u64).max(from.0);
        let mut items = self.items(from.0, end);
        if upside_down {
            items.reverse();
        }
        self.bodies.extend(items.iter().map(|item| item.offset));
        let gaps = (from.0..end).filter(|offset| self.log[*offset as usize].is_none());
        self.excused.extend(gaps);
        let exhausted: Vec<Offset> = items.iter().map(|item| item.offset).collect();
        exhausted.into_iter().for_each(|offset| self.excuse_exhausted(offset));
        self.step(Event::Fetched { items, next: Offset(end) });
    }

    fn answer_copy(&mut self, offset: Offset, works: bool) {
        if !self.copies.remove(&offset) {
            return;
        }
        if works {
            self.excused.insert(offset.0);
            self.step(Event::DeadLettered { offset });
        } else {
            self.excuse_exhausted(offset);
            self.step(Event::DeadLetterFailed { offset, reason: "disk full".to_owned() });
        }
    }

    fn seek(&mut self, to: Offset) {
        self.reset(to);
        for entry in self.streams.values_mut().flat_map(|stream| &mut stream.queue) {
            entry.1 = false;
        }
        for ahead in self.streams.values_mut().filter_map(|stream| stream.ahead.as_mut()) {
            ahead.clear();
        }
        self.step(Event::Seek { to });
    }

    fn reset(&mut self, cursor: Offset) {
        self.finished = (0..cursor.0).collect();
        self.attempts.clear();
        self.known.clear();
        self.given.clear();
        self.newest = None;
        self.out.clear();
        self.copies.clear();
    }

    /// A crash that loses the last `lost` records; a journal loses only its end.
    fn restart(&mut self, lost: usize) {
        self.journal.truncate(self.journal.len().saturating_sub(lost));
        let mut progress = Progress::default();
        self.journal.iter().for_each(|step| progress.apply(step));
        self.reset(progress.cursor());
        for (first, end) in progress.finished_above_cursor() {
            self.finished.extend(first.0..end.0);
        }
        for (offset, attempts) in progress.failures() {
            self.attempts.insert(offset, attempts.count);
            self.known.insert(offset);
            self.given.insert(offset);
        }
        self.streams.clear();
        self.bodies.clear();
        self.fetch = None;
        self.progress = progress.clone();
        let config = self.subscription.config().clone();
        // As many as were held at a time may have been out.
        let open = (0..self.tail().0).filter(|offset| !self.finished.contains(offset));
        self.known.extend(open.take(config.lookahead_max as usize).map(Offset));
        self.subscription = Subscription::new(config, progress, self.tail());
    }

    fn deadline(&mut self) {
        let expired: Vec<Offset> = self
            .out
            .iter()
            .filter(|(_, out)| matches!(out, Out::InFlight(_, until) if *until <= self.now))
            .map(|(offset, _)| *offset)
            .collect();
        for offset in &expired {
            self.excuse_exhausted(*offset);
        }
        self.run_out();
        let before = self.journal.len();
        self.step(Event::Deadline);
        for offset in expired {
            let failed =
                |step: &Step| matches!(step, Step::Failed { offset: o, .. } if *o == offset);
            assert!(self.journal[before..].iter().any(failed), "{offset} did not time out");
        }
        let next = self.subscription.next_deadline();
        assert!(next.is_none_or(|next| next > self.now), "a deadline that is due stays");
    }

    /// Whoever lets its time run out gives up, in Shared, what its client has besides, if there is
    /// anybody else; who has nothing left takes the next.
    fn run_out(&mut self) {
        let now = self.now;
        let is_over = |out: &Out| matches!(out, Out::InFlight(_, until) if *until <= now);
        let others = self.kind() == SubscriptionType::Shared && self.streams.len() > 1;
        for consumer in self.streams.keys().copied().collect::<Vec<_>>() {
            let own = |out: &&Out| matches!(out, Out::InFlight(c, _) if *c == consumer);
            let own: Vec<bool> = self.out.values().filter(own).map(is_over).collect();
            let stream = self.streams.get_mut(&consumer);
            let Some(ahead) = stream.and_then(|stream| stream.ahead.as_mut()) else { continue };
            if others && own.contains(&true) {
                for offset in ahead.drain(..) {
                    self.out.remove(&offset);
                }
            } else if !own.is_empty()
                && !own.contains(&false)
                && let Some(next) = ahead.pop_front()
            {
                self.begin(consumer, next);
            }
        }
    }

    fn step(&mut self, event: Event) {
        self.step_all([event]);
    }

    fn step_all(&mut self, events: impl IntoIterator<Item = Event>) {
        let mut effects = Vec::new();
        self.subscription.step_all(self.now, events, |_| {}, &mut effects);
        let skipped: Vec<u64> = effects.iter().filter_map(unmatched).collect();
        for offset in skipped {
            assert_eq!(self.kind(), SubscriptionType::KeyShared);
            assert!(!self.streams.is_empty(), "{offset} was skipped with nobody there");
            self.excused.insert(offset);
        }
        effects.into_iter().for_each(|effect| self.perform(effect));
        self.excused.clear();
        self.check();
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Fetch { from, max } => {
                assert!(max > 0 && from < self.tail());
                assert_eq!(self.fetch.replace((from, max)), None, "one fetch at a time");
            }
            Effect::Void { consumer, .. } => assert!(self.streams.contains_key(&consumer)),
            Effect::Park { .. } | Effect::Refetch { .. } => panic!("there is room for all bodies"),
            Effect::Deliver { consumer, offset, attempt, .. } => {
                self.check_delivery(consumer, offset, attempt);
            }
            Effect::Release { offset } => {
                assert!(self.bodies.remove(&offset), "body {offset} was not held");
            }
            Effect::DeadLetter { offset, attempt, .. } => {
                assert!(self.bodies.contains(&offset) && !self.finished.contains(&offset.0));
                assert_eq!(attempt, self.made(offset));
                self.out.remove(&offset);
                self.copies.insert(offset);
            }
            Effect::Record(step) => self.record(step),
            Effect::Note(_) => {}
        }
    }

    fn check_delivery(&mut self, consumer: ConsumerId, offset: Offset, attempt: u32) {
        assert!(!self.finished.contains(&offset.0), "{offset} is finished");
        assert!(self.bodies.contains(&offset), "{offset} has no body");
        assert!(!self.copies.contains(&offset), "{offset} is being dead-lettered");
        assert_eq!(attempt, self.made(offset) + 1, "attempt of {offset}");
        let window_max = self.subscription.config().window_max.max(1);
        assert!(self.out.len() < window_max as usize, "window overrun");
        let stream = self.streams.get_mut(&consumer).expect("deliveries go to open streams");
        assert!(stream.queue.len() < stream.size, "no room");
        stream.queue.push_back((offset, true));
        self.known.insert(offset);
        let is_first = self.given.insert(offset);
        if self.kind() == SubscriptionType::KeyShared {
            let key = &self.log[offset.0 as usize];
            for earlier in self.progress.cursor().0..offset.0 {
                let is_done =
                    self.finished.contains(&earlier) || self.log[earlier as usize] != *key;
                assert!(is_done, "{offset} overtakes {earlier} of the same key");
            }
        } else {
            let blocked = self.progress.failures().find(|(_, attempts)| attempts.blocked);
            assert!(blocked.is_none_or(|(b, _)| b >= offset), "{offset} passes a block");
            if is_first {
                assert!(self.newest < Some(offset), "{offset} out of order");
                self.newest = Some(offset);
            }
        }
        let with_one = self
            .out
            .values()
            .all(|out| matches!(out, Out::Queued(c) | Out::InFlight(c, _) if *c == consumer));
        let has_active =
            matches!(self.kind(), SubscriptionType::Exclusive | SubscriptionType::Failover);
        assert!(with_one || !has_active, "two consumers are active");
        let before = self.out.insert(offset, Out::Queued(consumer));
        assert_eq!(before, None, "{offset} is out twice");
    }

    fn record(&mut self, step: Step) {
        match &step {
            Step::Finished { first, end } => {
                for offset in first.0..end.0 {
                    assert!(self.finished.insert(offset), "{offset} finished twice");
                    assert!(self.excused.contains(&offset), "{offset} finished without a reason");
                    if let Some(Out::Queued(consumer)) = self.out.remove(&Offset(offset)) {
                        self.void_queued(consumer, Offset(offset));
                    }
                }
            }
            Step::Failed { offset, attempt, .. } => {
                assert_eq!(*attempt, self.made(*offset), "recorded attempt of {offset}");
                assert!(!self.finished.contains(&offset.0));
                self.out.remove(offset);
            }
            Step::Delivered { offset, attempt } => {
                assert_eq!(*attempt, self.made(*offset), "recorded attempt of {offset}");
            }
            Step::Delayed { .. } | Step::Moved { .. } => {}
        }
        self.progress.apply(&step);
        self.journal.push(step);
    }

    /// What must hold after every step.
    fn check(&self) {
        let engine = &self.subscription;
        assert_eq!(engine.progress(), &self.progress, "the journal says what the engine says");
        let stats = engine.stats(self.now);
        let queued = self.out.values().filter(|out| matches!(out, Out::Queued(_))).count();
        assert_eq!(stats.queued as usize, queued);
        assert_eq!(stats.in_flight as usize, self.out.len() - queued);
        let held = stats.waiting_redelivery + stats.dead_lettering;
        let blocked = u64::from(engine.slots.counts().blocked);
        let window_used = stats.queued + stats.in_flight + held + blocked;
        assert_eq!((window_used + stats.ready) as usize, self.bodies.len(), "a body per message");
        assert!(self.bodies.len() <= engine.config().lookahead_max as usize);
        let open = self.progress.cursor().0..self.tail().0;
        let backlog = open.filter(|offset| !self.finished.contains(offset)).count();
        assert_eq!(stats.backlog as usize, backlog);
        self.check_why(window_used);
        if self.subscription.next_deadline().is_none_or(|at| at > self.now) && self.fetch.is_none()
        {
            assert_eq!(engine.stall(self.now), None);
        }
    }

    /// The reason is a true one.
    fn check_why(&self, window_used: u64) {
        let engine = &self.subscription;
        let has_room = |c: &ConsumerId| self.streams.get(c).is_some_and(|s| s.queue.len() < s.size);
        let why = engine.why(self.now);
        match &why {
            Why::Drained => assert_eq!(engine.stats(self.now).backlog, 0),
            Why::NoConsumer => assert!(self.streams.is_empty()),
            Why::ConsumersFull => match self.kind() {
                SubscriptionType::Shared => assert!(!self.streams.keys().any(has_room)),
                SubscriptionType::KeyShared => assert!(!self.streams.keys().all(has_room)),
                _ => assert!(!engine.members().active().as_ref().is_some_and(has_room)),
            },
            Why::WindowFull { max } => assert!(window_used >= u64::from(*max)),
            Why::Fetching => assert!(self.fetch.is_some()),
            Why::ReadFailing { .. } => assert!(engine.next_deadline().is_some()),
            Why::AwaitingAck { offset, .. } | Why::AwaitingDrain { offset, .. } => {
                assert!(self.out.contains_key(offset));
            }
            Why::Blocked { offset, .. } | Why::KeyBlocked { offset, .. } => {
                assert!(self.progress.attempts(*offset).is_some_and(|a| a.blocked));
            }
            Why::DeadLettering { offset } => assert!(self.copies.contains(offset)),
            Why::RateLimited { .. } => assert!(engine.next_deadline().is_some()),
            Why::AwaitingRetry { .. } | Why::DeadLetterFailing { .. } => {
                assert!(engine.next_deadline().is_some() || !self.copies.is_empty());
            }
            Why::NoConsumerForKey { .. } => {
                assert_eq!(self.kind(), SubscriptionType::KeyShared);
                assert!(engine.members().len() > self.streams.len());
            }
            Why::Stalled | Why::Overdue { .. } => panic!("no reason, but it does not move"),
        }
    }

    /// From here on everybody behaves: then everything gets finished.
    fn heal(&mut self) {
        for id in 1..=4 {
            self.end_stream(ConsumerId(id), false);
            self.step(Event::Detached { consumer: ConsumerId(id) });
        }
        let consumer = ConsumerId(5);
        self.step(Event::Attached { consumer, key_filters: Vec::new() });
        self.streams.insert(consumer, ModelStream { size: 3, ..ModelStream::default() });
        self.step(Event::Opened { consumer, room: 3 });
        for _ in 0..self.log.len() * 4 + 20 {
            self.answer_fetch(0, false);
            while let Some(offset) = self.copies.first().copied() {
                self.answer_copy(offset, true);
            }
            self.drain(consumer, 3);
            let settled: Vec<Offset> = self.out.keys().copied().collect();
            settled.into_iter().for_each(|offset| self.ack(&[offset]));
            let blocked = self.progress.failures().find(|(_, attempts)| attempts.blocked);
            if let Some((offset, _)) = blocked {
                self.ack(&[offset]);
            }
            if let (None, Some(at)) = (self.fetch, self.subscription.next_deadline()) {
                self.now = self.now.max(at);
                self.deadline();
            }
        }
        assert_eq!(self.subscription.why(self.now), Why::Drained);
        assert!(self.bodies.is_empty() && self.out.is_empty());
        assert!((0..self.tail().0).all(|offset| self.finished.contains(&offset)));
    }
}

fn unmatched(effect: &Effect) -> Option<u64> {
    match effect {
        Effect::Note(Note::Unmatched(offset)) => Some(offset.0),
        _ => None,
    }
}

fn live(kind: &str, window: u32, lookahead: u32, policy: usize, operations: Vec<(u8, u8, u8)>) {
    let policy = POLICIES[policy % POLICIES.len()];
    let setup = format!("{kind} {policy} window={window} lookahead={lookahead}");
    let mut world = World::new(config(&setup));
    operations.into_iter().for_each(|operation| world.operate(operation));
    world.heal();
}

fn operations() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec(any::<(u8, u8, u8)>(), 0..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exclusive_keeps_its_promises(w in 1_u32..6, l in 1_u32..12, p in 0_usize..5, ops in operations()) {
        live("exclusive", w, l, p, ops);
    }

    #[test]
    fn failover_keeps_its_promises(w in 1_u32..6, l in 1_u32..12, p in 0_usize..5, ops in operations()) {
        live("failover", w, l, p, ops);
    }

    #[test]
    fn shared_keeps_its_promises(w in 1_u32..6, l in 1_u32..12, p in 0_usize..5, ops in operations()) {
        live("shared", w, l, p, ops);
    }

    #[test]
    fn key_shared_keeps_its_promises(w in 1_u32..6, l in 1_u32..12, p in 0_usize..5, ops in operations()) {
        live("keyshared", w, l, p, ops);
    }
}
