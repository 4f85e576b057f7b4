//! The one who writes: takes what is waiting, frames it, writes it, answers. Which thread that is, is
//! said in `run`.
//!
//! A group is one vectored write and at most one sync. It is laid out in two parts: first what
//! is acknowledged after the write, then what is acknowledged after the sync. So a failed sync
//! takes back the second part by cutting, and the first, acknowledged already, stands.
//! Within a topic the order of arrival is kept: once one of its writes waits for the sync, its
//! later ones of the group wait too.
//!
//! Law: a write is acknowledged after what its mode promises, in order within its topic; a
//! failed one consumes no offset and no log sequence number.

use crate::cache::TailCache;
use crate::error::AppendError;
use crate::frame::{FrameHeader, RECORD_LEN_BYTES};
use crate::group::Group;
use crate::journal::Journal;
use crate::journal::Tip;
use crate::journal::{Content, Kept};
use crate::room::Claim;
use crate::shared::{Command, Shared, Work, answer};
use crate::topic::{Batch, CachedBatch, PROMISED_MAX};
use danube_core::{Offset, Tick, WalSyncMode};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

mod calm;
mod framed;
mod lone;
mod numbered;
mod run;
mod sorted;

use calm::Calm;
use framed::{Framed, appended, record_also, take_back};
use lone::{By, Lone};
use numbered::{in_sequence, open_producer};
use sorted::{Sorted, records, sort};

pub(crate) use run::{run, write_here};
pub(crate) use sorted::frame_len;

/// A write that takes so long says that the disk makes others wait, in milliseconds.
const SLOW_MS: u64 = 3;
/// How long only the writer's own thread waits for it then, in milliseconds.
const SLOW_PAUSE_MS: u64 = 2_000;

/// State of the writer thread.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    journal: Journal,
    cache: TailCache,
    group: Group,
    tip: Tip,
    /// Messages acknowledged since everything was durable.
    promised: u64,
    /// When the present group is framed, in milliseconds since the Unix epoch.
    now: u64,
    /// Until then nobody but the writer's own thread writes, because a write took long.
    slow_until: Tick,
    /// Whether writes that wait for a sync come one at a time.
    lone: Lone,
    calm: Calm,
}

impl Writer {
    /// A writer that goes on after recovery.
    pub(crate) fn new(shared: Arc<Shared>, next_sequence: u64, tip: Tip) -> Writer {
        let cache = TailCache::new(shared.options.cache_bytes_max);
        let journal = Journal::new(Arc::clone(&shared), next_sequence, tip.lsn);
        let group = Group::default();
        let (slow_until, lone, calm) = (Tick(0), Lone::default(), Calm::default());
        Writer { shared, journal, cache, group, tip, promised: 0, now: 0, slow_until, lone, calm }
    }

    fn work_off(&mut self, commands: Vec<Command>, by: By) {
        let one = commands.len() == 1;
        let begun = self.shared.options.clock.elapsed();
        let mut sorted = sort(commands);
        let one = one && sorted.late.len() == 1;
        // What only asks for a sync is no work.
        self.note_calm(one || sorted.writes().next().is_none());
        self.now = self.shared.options.clock.wall().0;
        let syncs = std::mem::take(&mut sorted.syncs);
        let Sorted { roll, sync_soon, .. } = sorted;
        let opens = std::mem::take(&mut sorted.opens);
        if !(sorted.early.is_empty() && sorted.late.is_empty() && sorted.forgotten.is_empty()) {
            self.write_group(sorted);
        }
        opens.into_iter().for_each(open_producer);
        if sync_soon {
            self.journal.sync_soon(self.tip.lsn);
        }
        if !syncs.is_empty() || self.journal.is_unsafe() {
            // What a failed sync left unsafe is only in memory: better it is not for long.
            let synced = self.journal.flush(self.tip.lsn);
            if synced.is_err() && self.journal.is_unsafe() {
                // At once, so that nobody reads what the kernel may have dropped.
                let _ = self.journal.flush(self.tip.lsn);
            }
            self.promised = if synced.is_ok() { 0 } else { self.promised };
            let answers = synced.map(|()| self.tip.lsn);
            syncs.into_iter().for_each(|done| answer(Some(done), answers.clone()));
        }
        if roll {
            self.journal.leave(self.tip);
        }
        self.shared.unsynced.store(self.journal.has_unsynced(), Release);
        let due = self.shared.commands.load().0 > 0;
        self.group.clear(due);
        self.let_callers_write((one && !due).then_some(begun), by);
    }

    /// Tells the background whether it has time, at a group that is `lone` or not.
    fn note_calm(&mut self, lone: bool) {
        let Shared { callers_busy, calm, wake, .. } = &*self.shared;
        self.calm.note(lone && !callers_busy.load(Relaxed));
        let is_calm = self.calm.is_calm();
        if calm.swap(is_calm, Relaxed) != is_calm && is_calm {
            wake.set();
        }
    }

    /// Says what those who bring writes may write themselves. A group of one write with a sync, with
    /// nothing else to do, has `alone_since` when it was begun.
    fn let_callers_write(&mut self, alone_since: Option<Duration>, by: By) {
        let Shared { options, callers_busy, easy_bytes, easy_sync_bytes, .. } = &*self.shared;
        let (clock, now) = (&options.clock, options.clock.tick());
        let busy = callers_busy.swap(false, Relaxed);
        match alone_since.filter(|_| !busy) {
            Some(begun) => self.lone.alone(by, clock.elapsed().saturating_sub(begun), now),
            None => self.lone.company(),
        }
        let easy = self.easy_bytes(now);
        easy_bytes.store(easy, Relaxed);
        easy_sync_bytes.store(if self.lone.is_allowed(now) { easy } else { 0 }, Relaxed);
    }

    /// Bytes that can be written with nothing but that, and quickly.
    fn easy_bytes(&self, now: Tick) -> u64 {
        if now < self.slow_until {
            return 0;
        }
        // As many messages as that many bytes can be.
        let most = self.shared.options.inline_bytes_max as u64;
        let countable = self.promised + most / RECORD_LEN_BYTES as u64 <= PROMISED_MAX;
        if countable { self.journal.easy_bytes().min(most) } else { 0 }
    }

    /// Makes everything written so far durable but the last `unkept` bytes, if that fails.
    fn sync(&mut self, unkept: u64) -> Result<(), AppendError> {
        self.journal.sync(unkept, self.tip.lsn)?;
        self.promised = 0;
        Ok(())
    }

    /// Sees to it that the offsets promised without a sync stay countable.
    fn limit_promises(&mut self, sorted: &mut Sorted) -> Result<(), AppendError> {
        let promised: u64 = sorted.early.iter().map(|write| records(&write.work)).sum();
        if promised > PROMISED_MAX {
            // They are told after the sync instead.
            let late = std::mem::take(&mut sorted.late);
            sorted.late = std::mem::take(&mut sorted.early);
            sorted.late.iter_mut().for_each(|write| write.sync = WalSyncMode::FsyncBatch);
            sorted.late.extend(late);
            return Ok(());
        }
        if self.promised + promised > PROMISED_MAX {
            self.sync(0)?;
        }
        self.promised += promised;
        Ok(())
    }

    /// Refuses what there is no room for: large appends first, progress last.
    fn fit(&mut self, sorted: &mut Sorted) {
        for claim in Claim::ALL {
            if !sorted.writes().any(|write| Claim::of(&write.work) == claim) {
                continue;
            }
            let reserved = self.journal.reserve(sorted.bytes(), claim, self.tip);
            let Err(error) = reserved else { continue };
            let others: u64 = sorted.bytes() - sorted.bytes_of(claim);
            let mut room = self.journal.room(claim).saturating_sub(others);
            sorted.refuse_if(&error, |write| {
                let bytes = frame_len(&write.work) as u64;
                let fits = Claim::of(&write.work) != claim || bytes <= room;
                if fits && Claim::of(&write.work) == claim {
                    room -= bytes;
                }
                !fits
            });
            self.failed();
        }
    }

    fn write_group(&mut self, mut sorted: Sorted) {
        let limited = self.limit_promises(&mut sorted);
        let ready = limited.and_then(|()| self.journal.ready(sorted.bytes(), self.tip));
        if let Err(error) = ready {
            sorted.refuse_if(&error, |_| true);
            return self.failed();
        }
        self.fit(&mut sorted);
        let Sorted { forgotten, early, late, .. } = sorted;
        let Some((file, start)) = self.journal.place() else { return };
        // After what is refused for want of room, so that nothing of its producer overtakes it.
        let early: Vec<_> = early.into_iter().filter_map(in_sequence).collect();
        let late: Vec<_> = late.into_iter().filter_map(in_sequence).collect();
        if early.is_empty() && late.is_empty() && forgotten.is_empty() {
            return;
        }
        let begun = self.tip;
        let gone: Vec<_> =
            forgotten.iter().map(|topic| self.frame_forgotten(topic, file)).collect();
        let early: Vec<_> = early.into_iter().map(|w| self.frame(w, file, start)).collect();
        let kept = self.tip;
        let kept_len = self.group.len();
        let late: Vec<_> = late.into_iter().map(|w| self.frame(w, file, start)).collect();

        let clock = Arc::clone(&self.shared.options.clock);
        let started = clock.elapsed();
        let written = self.journal.write(&self.group, !late.is_empty(), begun.lsn);
        if clock.elapsed().saturating_sub(started) >= Duration::from_millis(SLOW_MS) {
            self.slow_until = clock.tick().after_ms(SLOW_PAUSE_MS);
        }
        if let Err(error) = written {
            self.tip = begun;
            take_back(early.into_iter().chain(late).collect(), &error);
            return self.failed();
        }
        let counters = &self.shared.counters;
        counters.groups.fetch_add(1, Relaxed);
        counters.bytes.fetch_add(self.group.len(), Relaxed);
        counters.frames.fetch_add(self.tip.lsn - begun.lsn, Relaxed);
        gone.into_iter().for_each(|kept| self.journal.keep(kept));
        early.into_iter().for_each(|framed| self.publish(framed, false));
        if late.is_empty() {
            self.journal.sync_beside(self.tip.lsn);
            return self.flushed(started);
        }
        if let Err(error) = self.sync(self.group.len() - kept_len) {
            self.tip = kept;
            take_back(late, &error);
            return self.failed();
        }
        self.shared.counters.syncs.fetch_add(1, Relaxed);
        self.flushed(started);
        late.into_iter().for_each(|framed| self.publish(framed, true));
    }

    fn flushed(&self, started: Duration) {
        let Shared { options, counters, .. } = &*self.shared;
        counters.flushes.count(options.clock.elapsed().saturating_sub(started));
    }

    fn failed(&self) {
        self.shared.counters.failures.fetch_add(1, Relaxed);
    }

    /// Makes a write visible and tells its caller. One that is not durable is kept until it is.
    fn publish(&mut self, framed: Framed, durable: bool) {
        let Framed { topic, mut work, batch, header } = framed;
        if !durable {
            self.keep(header, &mut work, batch);
        }
        let mut state = topic.state.lock();
        if state.forgotten {
            drop(state);
            return work.refuse(AppendError::Forgotten(topic.id));
        }
        state.recorded = true;
        match work {
            Work::Append { batch: laid, also, done } => {
                state.next = batch.end();
                (state.time, state.synced_mode) = (batch.time, header.synced_mode);
                state.tail_lost = false;
                state.index.push_back(batch);
                if let Some(origin) = laid.origin() {
                    state.sequences.stored(origin, batch.count, Offset(batch.first));
                }
                let cost = TailCache::cost(&laid);
                state.cached.push_back(CachedBatch { first: batch.first, batch: laid });
                drop(state);
                record_also(also);
                self.cache.note(&topic, cost);
                let bytes = self.cache.bytes() as u64;
                self.shared.counters.cache_bytes.store(bytes, Relaxed);
                answer(done, Ok(appended(&batch)));
            }
            Work::Record { records, done, .. } => {
                records.iter().for_each(|record| state.apply(record));
                drop(state);
                answer(done, Ok(()));
            }
        }
    }

    fn keep(&mut self, header: FrameHeader, work: &mut Work, batch: Batch) {
        let (content, batch) = match work {
            Work::Append { batch: laid, .. } => (Content::Messages(laid.clone()), Some(batch)),
            Work::Record { payload, .. } => (Content::Payload(std::mem::take(payload)), None),
        };
        self.journal.keep(Kept { header, content, batch });
    }
}
