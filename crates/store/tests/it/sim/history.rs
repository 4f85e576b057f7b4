//! A history: processes that start, work, fail and end on one disk, all from one seed.

use super::disk::{SimDisk, Trace};
use super::faults::{Crash, Plan};
use super::lies::Lie;
use super::life::{self, Request, Work};
use super::oracle::{TopicOracle, Violation};
use super::random::Random;
use bytes::Bytes;
use danube_core::subscription::progress::{Progress, Step};
use danube_core::{
    Epoch, Incarnation, Offset, Retention, SubscriptionId, Tick, TopicId, WalSyncMode, WallMs,
};
use danube_store::{AppendError, Clock, ReadLimit, Store, StoreOptions, TopicLog};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const DIR: &str = "/data/journal";
/// Subscriptions of each topic.
const SUBSCRIPTIONS: [u32; 2] = [1, 2];
/// Producers of each topic.
const PRODUCERS: u64 = 3;
/// Offsets from here on only number pairs.
const PAIRS_FROM: u64 = 1 << 50;

/// What came of a history.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What was wrong, if anything was.
    pub violation: Option<Violation>,
    /// Everything that happened, as a digest.
    pub trace: Trace,
    /// Counts, for the report.
    pub counts: Counts,
    /// A line for everything that happened, if asked for.
    pub story: Vec<String>,
}

/// What happened how often.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Processes started.
    pub lives: u64,
    /// Processes killed.
    pub kills: u64,
    /// Power losses.
    pub power_losses: u64,
    /// Crashes before the store was open.
    pub during_recovery: u64,
    /// Requests acknowledged.
    pub acknowledged: u64,
    /// Requests refused.
    pub refused: u64,
    /// Bits flipped.
    pub flips: u64,
    /// Of those, in journal files that segments had taken over.
    pub flips_taken: u64,
    /// Groups written past the operating system's cache.
    pub direct: u64,
    /// Journal files made to be ready before they are needed.
    pub prepared: u64,
    /// Histories in which segments took a journal file over.
    pub adopting: u64,
    /// Journal files that segments took over.
    pub adopted: u64,
    /// Starts that found such files.
    pub adopted_found: u64,
    /// Such files that got their other name in a later life.
    pub adopted_late: u64,
    /// Such files that went in the middle of a life.
    pub adopted_gone: u64,
    /// Segments of such files that were written again.
    pub adopted_rewritten: u64,
}

impl Counts {
    /// Adds those of another.
    pub fn add(&mut self, other: &Counts) {
        self.lives += other.lives;
        self.kills += other.kills;
        self.power_losses += other.power_losses;
        self.during_recovery += other.during_recovery;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.flips += other.flips;
        self.direct += other.direct;
        self.prepared += other.prepared;
        self.flips_taken += other.flips_taken;
        self.adopting += other.adopting;
        self.adopted += other.adopted;
        self.adopted_found += other.adopted_found;
        self.adopted_late += other.adopted_late;
        self.adopted_gone += other.adopted_gone;
        self.adopted_rewritten += other.adopted_rewritten;
    }
}

/// Runs the history of `seed`, with `lie` planted if given.
pub fn run(seed: u64, lie: Option<Lie>, story: bool) -> Outcome {
    let mut history = History::new(seed, lie, story);
    let violation = history.run().err();
    history.disk.end();
    history.counts.adopting = u64::from(history.counts.adopted > 0);
    let (trace, story) = (history.disk.trace(), history.disk.story());
    (history.counts.direct, history.counts.prepared) = (trace.direct, trace.prepared);
    Outcome { violation, trace, counts: history.counts, story }
}

mod adopted;
mod beside;

use adopted::{Adopted, is_taken};
use beside::{Pair, Seen, check_producers};

struct History {
    random: Random,
    disk: SimDisk,
    lie: Option<Lie>,
    options: StoreOptions,
    clock: SimClock,
    topics: Vec<Topic>,
    /// Deleted in the catalog; the log is told in the middle of the next burst.
    forgotten: Vec<TopicId>,
    next_topic: u32,
    next_message: u64,
    /// Messages that are one with a step of another topic.
    pairs: Vec<Pair>,
    faulty: bool,
    damage: bool,
    /// Nothing but a crash goes wrong in this life.
    faultless: bool,
    /// What went wrong in this life does so no more.
    mended: bool,
    counts: Counts,
}

struct Topic {
    id: TopicId,
    /// The mode of all its writes; `None` when each has its own.
    mode: Option<WalSyncMode>,
    retention: Retention,
    oracle: TopicOracle,
    /// The worst end of a process since it was last looked at.
    since: Crash,
    /// Whether a life with faults has written to it since.
    faulty: bool,
    /// Next sequence number of each producer.
    sequences: [u64; PRODUCERS as usize],
    /// Epochs of its producers that are open in this life.
    epochs: [Option<u32>; PRODUCERS as usize],
}

impl History {
    fn new(seed: u64, lie: Option<Lie>, story: bool) -> History {
        let mut random = Random::new(seed, 0);
        let clock = SimClock::default();
        let options = StoreOptions {
            file_bytes_max: random.pick(&[2 << 10, 8 << 10, 20 << 10, 64 << 10]),
            cache_bytes_max: random.pick(&[0, 3000, 1 << 20]),
            flush_max_batch_bytes: random.pick(&[2000, 64 << 10, 4 << 20]),
            inline_bytes_max: random.pick(&[0, 400, 64 << 10]),
            journal_files_keep: random.below(3) as usize,
            spare_files_max: random.below(3) as usize,
            journal_files_max: random.below(6) as usize,
            segment_bytes_max: random.pick(&[1000, 8 << 10, 64 << 10]),
            adopt_frame_bytes_min: random.pick(&[0, 0, 150, 1500, 32 << 10]),
            sync_interval_ms: random.pick(&[0, 500]),
            unsynced_bytes_max: random.pick(&[1000, 10 << 10, 8 << 20]),
            burst_bytes_max: random.pick(&[0, 10 << 10, 256 << 20]),
            direct_batch_bytes_min: random.pick(&[0, 60, 32 << 10]),
            background: false,
            clock: Arc::new(clock.clone()),
            ..StoreOptions::new(DIR, Incarnation(0))
        };
        let (faulty, damage) = (random.chance(40), random.chance(8));
        let mut history = History {
            disk: SimDisk::new(seed, story),
            random,
            lie,
            options,
            clock,
            topics: Vec::new(),
            forgotten: Vec::new(),
            next_topic: 1,
            next_message: 0,
            pairs: Vec::new(),
            faulty,
            damage,
            faultless: true,
            mended: false,
            counts: Counts::default(),
        };
        // The first carries the marks of bursts.
        history.add_topic(Some(WalSyncMode::OsCacheFlush));
        for _ in 0..history.random.within(1, 6) {
            let mode = history.draw_mode();
            history.add_topic(mode);
        }
        history
    }

    fn draw_mode(&mut self) -> Option<WalSyncMode> {
        self.random.pick(&[
            Some(WalSyncMode::FsyncBatch),
            Some(WalSyncMode::FsyncBatch),
            Some(WalSyncMode::OsCacheFlush),
            Some(WalSyncMode::Async),
            None,
        ])
    }

    fn add_topic(&mut self, mode: Option<WalSyncMode>) {
        let id = TopicId(self.next_topic);
        self.next_topic += 1;
        let retention = self.draw_retention();
        let synced = mode == Some(WalSyncMode::FsyncBatch);
        let oracle = TopicOracle::new(synced, retention != Retention::FOREVER, &SUBSCRIPTIONS);
        let faulty = !self.faultless;
        let since = Crash::Close;
        let sequences = [0; PRODUCERS as usize];
        let epochs = [None; PRODUCERS as usize];
        let topic = Topic { id, mode, retention, oracle, since, faulty, sequences, epochs };
        self.topics.push(topic);
    }

    fn draw_retention(&mut self) -> Retention {
        let forever = Retention::FOREVER;
        self.random.pick(&[
            forever,
            forever,
            Retention { drop_finished: true, ..forever },
            Retention { time_ms: Some(5000), ..forever },
            Retention { bytes: Some(4000), ..forever },
        ])
    }

    fn run(&mut self) -> Result<(), Violation> {
        let lives = self.random.within(2, 6);
        for life in 1..=lives {
            self.live(life == lives)?;
        }
        Ok(())
    }

    /// One process, from its start to its end; the last one is spared.
    fn live(&mut self, last: bool) -> Result<(), Violation> {
        let plan = self.plan(last);
        let faultless = plan.is_faultless();
        (self.faultless, self.mended) = (faultless, false);
        self.disk.begin(plan);
        self.counts.lives += 1;
        self.options.incarnation.0 += 1;
        for topic in &mut self.topics {
            topic.faulty |= !faultless;
            topic.epochs = [None; PRODUCERS as usize];
        }
        let disk = Lie::disk(self.lie, self.disk.clone());
        let store = match Store::open_on(disk, self.options.clone(), &mut |_| {}) {
            Ok(store) => store,
            Err(error) if self.disk.crashed().is_none() && faultless => {
                return Err(format!("a store that nothing is wrong with does not open: {error}"));
            }
            Err(_) => {
                self.counts.during_recovery += u64::from(self.disk.crashed().is_some());
                let end = self.disk.crashed().unwrap_or(Crash::Kill);
                self.end(end);
                return Ok(());
            }
        };
        let lives: Vec<TopicId> = self.topics.iter().map(|topic| topic.id).collect();
        self.counts.adopted_found += u64::from(self.disk.names().iter().any(|it| is_taken(it)));
        store.adopt(lives.iter().copied());
        store.retain(&|id| lives.contains(&id));
        self.forgotten.clear();
        let worked = self.look_after(&store).and_then(|()| self.work(&store, last));
        let ended = worked.and_then(|()| self.end_of_work(&store, last));
        if ended.is_err() {
            // So that dropping the store does not wait for a disk that works.
            self.disk.end();
        }
        drop(store);
        let end = ended?;
        self.end(end.0);
        if let Some(worse) = end.1 {
            self.disk.settle(worse);
            self.counts.power_losses += 1;
        }
        Ok(())
    }

    fn plan(&mut self, last: bool) -> Plan {
        if last {
            return Plan::default();
        }
        let kind = self.random.pick(&[Crash::Power, Crash::Power, Crash::Kill]);
        let crash = self.random.chance(80).then_some(kind);
        // Small numbers are crashes while recovering.
        let ops = self.random.pick(&[2, 6, 12, 40, 120]);
        let faulty = self.faulty && self.random.chance(60);
        let mut plan = Plan::draw(&mut self.random, ops, crash, faulty);
        if faulty && self.random.chance(10) {
            plan.reads_fail = 300;
        }
        plan
    }

    /// Tells everything that a process has ended, and how.
    fn end(&mut self, end: Crash) {
        self.disk.settle(end);
        match end {
            Crash::Close => {}
            Crash::Kill => self.counts.kills += 1,
            Crash::Power => self.counts.power_losses += 1,
        }
        for topic in &mut self.topics {
            // What was only promised to `async` may have failed without a word.
            let least = if topic.faulty { Crash::Kill } else { Crash::Close };
            topic.since = topic.since.max(end).max(least);
        }
        if self.damage && self.random.chance(50) {
            self.flip();
        }
    }

    /// Flips a bit where nothing torn can be: in any file but the newest two journal files.
    fn flip(&mut self) {
        let is_journal = |path: &Path| path.extension().is_some_and(|end| end == "log");
        let mut journal = self.disk.names();
        journal.retain(|path| is_journal(path));
        let newest = journal.split_off(journal.len().saturating_sub(2));
        // They are few, so that chance alone would hardly ever meet them.
        let taken = self.disk.names().iter().any(|path| is_taken(path)) && self.random.chance(50);
        let may = |path: &Path| {
            if taken {
                return is_taken(path);
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // One copy of the checkpoint may go; the other stands in for it.
            let settled =
                name.starts_with("journal-") || name.ends_with(".seg") || name == "checkpoint.1";
            settled && !newest.iter().any(|new| new == path)
        };
        if let Some(path) = self.disk.flip(may) {
            self.counts.flips += 1;
            self.counts.flips_taken += u64::from(is_taken(&path));
        }
    }

    /// The first look at everything after a start.
    fn look_after(&mut self, store: &Store) -> Result<(), Violation> {
        // Then topics may be stopped, and say so; what the others promised holds all the same.
        let flipped = self.counts.flips > 0 || self.disk.is_hurt();
        let mut stopped = Vec::new();
        let mut seen = Seen::new();
        for at in 0..self.topics.len() {
            let limit = self.draw_limit();
            let topic = &mut self.topics[at];
            let log = store.topic(topic.id, Epoch(1));
            let context = |what: String| format!("topic {}: {what}", log.id().0);
            if let Some(damage) = log.damage() {
                if flipped {
                    stopped.push(at);
                    continue;
                }
                return Err(context(format!("damage, and no bit was flipped: {damage}")));
            }
            if self.counts.power_losses > 0 {
                topic.oracle.may_jump();
            }
            let messages = match life::read_all(&log, limit) {
                Ok(messages) => messages,
                Err(_) if self.disk.crashed().is_some() => return Ok(()),
                Err(_) if topic.faulty => {
                    topic.oracle.is_unseen();
                    continue;
                }
                Err(_) if flipped && log.damage().is_some() => {
                    stopped.push(at);
                    continue;
                }
                Err(error) => return Err(context(format!("cannot be read: {error}"))),
            };
            let (since, bounds) = (topic.since, log.bounds());
            let context = |what| format!("topic {} after {since:?}: {what}", topic.id.0);
            let (start, next) = (bounds.start.0, bounds.next.0);
            topic.oracle.sees_after(since, start, next, &messages).map_err(|what| {
                let offsets: Vec<u64> = messages.iter().map(|(offset, _)| *offset).collect();
                context(format!("{what}; it has {start} to {next}: {offsets:?}"))
            })?;
            for subscription in topic.oracle.subscriptions() {
                let now = progress(&log, subscription);
                if flipped && store.lost_progress().is_some() {
                    // It was told that some may be lost.
                    topic.oracle.trusts_progress(since, subscription, &now);
                    continue;
                }
                topic.oracle.sees_progress_after(since, subscription, &now).map_err(context)?;
            }
            // An `async` append whose write failed after its answer is lost, and its number used up: a
            // checkpoint says so, too.
            let ahead = topic.mode.is_none_or(|mode| mode == WalSyncMode::Async) && self.faulty;
            check_producers(&log, &messages, ahead).map_err(context)?;
            topic.since = Crash::Close;
            topic.faulty = !self.faultless;
            self.disk.note(|| format!("topic {} has {start} to {next}", log.id().0));
            seen.insert(topic.id, messages);
        }
        self.check_pairs(store, &seen)?;
        for at in stopped.into_iter().rev() {
            self.replace(at);
        }
        for topic in &self.topics {
            let log = store.topic(topic.id, Epoch(1));
            log.set_retention(topic.retention);
            log.set_subscriptions(SUBSCRIPTIONS.map(|id| (SubscriptionId(id), Offset(0))));
        }
        Ok(())
    }

    /// Deletes a topic and makes another in its place.
    fn replace(&mut self, at: usize) {
        let mode = self.topics[at].mode;
        self.forgotten.push(self.topics[at].id);
        self.add_topic(mode);
        self.topics.swap_remove(at);
    }

    fn work(&mut self, store: &Store, last: bool) -> Result<(), Violation> {
        let steps = if last { 3 } else { self.random.within(1, 10) };
        for _ in 0..steps {
            if self.disk.crashed().is_some() {
                return Ok(());
            }
            if !self.faultless && !self.mended && self.random.chance(15) {
                self.mended = true;
                self.disk.mend();
            }
            match self.random.below(100) {
                0..4 if self.topics.len() > 2 => {
                    let at = self.random.within(1, self.topics.len() as u64 - 1) as usize;
                    self.replace(at);
                }
                4..20 => self.look(store)?,
                20..42 => self.tend(store)?,
                42..50 => self.one_by_one(store)?,
                _ => self.burst(store)?,
            }
        }
        Ok(())
    }

    /// Background work, at a moment that the history chooses.
    fn tend(&mut self, store: &Store) -> Result<(), Violation> {
        self.clock.advance(self.random.below(2000));
        let (before, adopted) = (Adopted::look(&self.disk), store.stats().files_adopted);
        let tended = store.tend();
        let adopted = store.stats().files_adopted - adopted;
        Adopted::look(&self.disk).count(&before, adopted, &mut self.counts);
        self.disk.note(|| format!("tended: {tended:?}"));
        match tended {
            Err(error) if self.faultless && self.disk.crashed().is_none() => {
                Err(format!("background work fails, and nothing is wrong: {error}"))
            }
            _ => Ok(()),
        }
    }

    /// Looks at everything while it runs.
    fn look(&mut self, store: &Store) -> Result<(), Violation> {
        for at in 0..self.topics.len() {
            let limit = self.draw_limit();
            let topic = &self.topics[at];
            let log = store.topic(topic.id, Epoch(1));
            if topic.since != Crash::Close {
                continue;
            }
            let context = |what| format!("topic {}, live: {what}", topic.id.0);
            let messages = match life::read_all(&log, limit) {
                Ok(messages) => messages,
                Err(_) if self.disk.crashed().is_some() || topic.faulty => continue,
                Err(_) if self.counts.flips > 0 || self.disk.is_hurt() => continue,
                Err(error) => return Err(context(error)),
            };
            let bounds = log.bounds();
            let (start, next) = (bounds.start.0, bounds.next.0);
            topic.oracle.sees_live(start, next, &messages).map_err(context)?;
            let ahead = topic.mode.is_none_or(|mode| mode == WalSyncMode::Async) && self.faulty;
            check_producers(&log, &messages, ahead).map_err(context)?;
            for subscription in topic.oracle.subscriptions() {
                let now = progress(&log, subscription);
                topic.oracle.sees_progress_live(subscription, &now).map_err(context)?;
            }
        }
        Ok(())
    }

    fn burst(&mut self, store: &Store) -> Result<(), Violation> {
        let mark = format!("mark of burst {:09}|", self.next_message).into_bytes();
        self.next_message += 1;
        let mut work = vec![Work {
            topic: 0,
            log: store.topic(self.topics[0].id, Epoch(1)),
            mode: WalSyncMode::OsCacheFlush,
            request: Request::Append(vec![Bytes::from(mark.clone())]),
        }];
        for _ in 0..self.random.pick(&[0, 1, 1, 3, 6, 12]) {
            let topic = self.random.below(self.topics.len() as u64) as usize;
            work.push(self.draw_work(store, topic));
        }
        let forgotten = std::mem::take(&mut self.forgotten);
        let held = || forgotten.iter().for_each(|id| store.forget_topic(*id));
        let answers = life::burst(&self.disk, self.lie, &mark, &work, held);
        store.settle();
        for (work, answer) in work.into_iter().zip(answers) {
            self.hear(work, answer)?;
        }
        Ok(())
    }

    /// Writes that come one at a time and wait for a sync, so that who brings them may do it.
    fn one_by_one(&mut self, store: &Store) -> Result<(), Violation> {
        let syncs = |topic: &Topic| topic.mode.is_none_or(|it| it == WalSyncMode::FsyncBatch);
        let synced: Vec<_> = (0..self.topics.len()).filter(|it| syncs(&self.topics[*it])).collect();
        if synced.is_empty() {
            return Ok(());
        }
        let most = self.random.pick(&[12, 12, 12, 40]);
        for _ in 0..self.random.within(5, most) {
            let topic = self.random.pick(&synced);
            let work = Work { mode: WalSyncMode::FsyncBatch, ..self.draw_work(store, topic) };
            store.settle();
            let answer = life::alone(self.lie, &work);
            store.settle();
            self.hear(work, answer)?;
        }
        // After many of them there is time to have files ready.
        if most > 12 { self.tend(store) } else { Ok(()) }
    }

    fn draw_work(&mut self, store: &Store, topic: usize) -> Work {
        let mode = match self.topics[topic].mode {
            Some(mode) => mode,
            None => self.random.pick(&[
                WalSyncMode::Async,
                WalSyncMode::OsCacheFlush,
                WalSyncMode::FsyncBatch,
            ]),
        };
        let log = store.topic(self.topics[topic].id, Epoch(1));
        let request = if self.random.chance(70) {
            self.draw_append(store, topic)
        } else {
            let (subscription, step) = self.draw_step(log.bounds().next.0);
            Request::Record(subscription, step)
        };
        Work { topic, log, mode, request }
    }

    /// Tells the oracle of an answer.
    fn hear(&mut self, work: Work, answer: Option<life::Answer>) -> Result<(), Violation> {
        let Some(answer) = answer else {
            return Err(format!("{:?} of topic {} is never answered", work.request, work.topic));
        };
        let topic = &mut self.topics[work.topic];
        let id = topic.id.0;
        self.disk.note(|| format!("topic {id}: {:?} {}", work.mode, tell(&work.request, &answer)));
        match (&work.request, answer) {
            (
                Request::Append(records) | Request::From(records, _) | Request::Both(records, ..),
                Ok(first),
            ) => {
                self.counts.acknowledged += 1;
                let heard = topic.oracle.appended(first, records, work.mode);
                heard.map_err(|what| format!("topic {id}: {what}"))
            }
            (_, Err(error)) if self.mended && !sick(&error) && self.disk.crashed().is_none() => {
                Err(format!("topic {id}: refused, and nothing is wrong any more: {error}"))
            }
            (
                Request::Append(records) | Request::From(records, _) | Request::Both(records, ..),
                Err(_),
            ) => {
                self.counts.refused += 1;
                topic.oracle.refused(records);
                Ok(())
            }
            (Request::Record(subscription, step), answer) => {
                let mode = answer.is_ok().then_some(work.mode);
                self.counts.acknowledged += u64::from(mode.is_some());
                self.counts.refused += u64::from(mode.is_none());
                topic.oracle.recorded(*subscription, step, mode);
                Ok(())
            }
        }
    }

    fn draw_records(&mut self, topic: usize) -> Vec<Bytes> {
        let count = self.random.pick(&[1, 1, 1, 2, 5]);
        let record = |random: &mut Random, message: u64| {
            let len = match random.below(20) {
                0..12 => random.below(60),
                12..17 => random.within(60, 1500),
                17..19 => random.within(3000, 6000),
                _ => random.within(16 << 10, 18 << 10),
            };
            let mut bytes = format!("message {message} of {topic}|").into_bytes();
            // Some look like the journal's own bytes, or like nothing.
            let fill = random.pick(&[0, 0xff, b'D', b'x']);
            bytes.resize(bytes.len() + len as usize, fill);
            if random.chance(10) {
                bytes.extend_from_slice(b"DNF1 and so on");
            }
            Bytes::from(bytes)
        };
        let mut records = Vec::new();
        for _ in 0..count {
            records.push(record(&mut self.random, self.next_message));
            self.next_message += 1;
        }
        records
    }

    fn draw_step(&mut self, next: u64) -> (u32, Step) {
        let random = &mut self.random;
        let subscription = random.pick(&SUBSCRIPTIONS);
        let low = next.saturating_sub(12);
        let at = |random: &mut Random| if next == 0 { 0 } else { random.within(low, next) };
        let first = at(random);
        let step = match random.below(20) {
            0 => Step::Moved { cursor: Offset(first) },
            1..4 => Step::Failed {
                offset: Offset(first),
                attempt: random.within(1, 5) as u32,
                blocked: random.chance(20),
                reason: "no".repeat(random.below(9) as usize),
            },
            4..9 => Step::Finished { first: Offset(0), end: Offset(first) },
            _ => Step::Finished { first: Offset(first), end: Offset((first + 2).min(next)) },
        };
        (subscription, step)
    }

    fn draw_limit(&mut self) -> ReadLimit {
        self.random.pick(&[
            ReadLimit { records_max: usize::MAX, bytes_max: usize::MAX },
            ReadLimit { records_max: 3, bytes_max: usize::MAX },
            ReadLimit { records_max: 100, bytes_max: 2000 },
        ])
    }

    /// How this process ends, and what comes after that.
    fn end_of_work(
        &mut self,
        store: &Store,
        last: bool,
    ) -> Result<(Crash, Option<Crash>), Violation> {
        if let Some(kind) = self.disk.crashed() {
            return Ok((kind, None));
        }
        if !last && self.random.chance(40) {
            self.disk.end();
            return Ok((self.random.pick(&[Crash::Kill, Crash::Power]), None));
        }
        self.look(store)?;
        let closed = store.close();
        if let Some(kind) = self.disk.crashed() {
            return Ok((kind, None));
        }
        if closed.is_err() {
            return Ok((Crash::Kill, None));
        }
        // What a clean end leaves, no power loss takes.
        Ok((Crash::Close, self.random.chance(60).then_some(Crash::Power)))
    }
}

/// A clock that moves when it is told to.
#[derive(Debug, Clone, Default)]
struct SimClock(Arc<AtomicU64>);

impl SimClock {
    fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn wall(&self) -> WallMs {
        WallMs(1_700_000_000_000 + self.0.load(Ordering::Relaxed))
    }

    fn tick(&self) -> Tick {
        Tick(self.0.load(Ordering::Relaxed))
    }
}

/// Whether it is the topic that refuses, and not the disk.
fn sick(error: &AppendError) -> bool {
    matches!(error, AppendError::Damaged(_) | AppendError::Forgotten(_))
}

fn progress(log: &TopicLog, subscription: u32) -> Progress {
    log.subscriptions().remove(&SubscriptionId(subscription)).unwrap_or_default()
}

fn tell(request: &Request, answer: &life::Answer) -> String {
    let what = match request {
        Request::Append(records) => format!("append of {}", records.len()),
        Request::From(records, origin) => format!("append of {} by {origin:?}", records.len()),
        Request::Both(records, other, step) => {
            format!("append of {} with {step:?} of topic {}", records.len(), other.id().0)
        }
        Request::Record(subscription, step) => format!("{step:?} of {subscription}"),
    };
    match answer {
        Ok(first) => format!("{what} acknowledged {first}"),
        Err(error) => format!("{what} refused: {error}"),
    }
}
