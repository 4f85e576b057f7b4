//! The one thread that writes: takes what is waiting, frames it, writes it, answers.
//!
//! A group is one vectored write and at most one sync. It is laid out in two parts: first what
//! is acknowledged after the write, then what is acknowledged after the sync. So a failed sync
//! takes back the second part by cutting, and the first, acknowledged already, stands.
//! Within a topic the order of arrival is kept: once one of its writes waits for the sync, its
//! later ones of the group wait too.
//!
//! Law: a write is acknowledged after what its mode promises, in order within its topic; a
//! failed one consumes no offset and no log sequence number.

use crate::active::Tip;
use crate::cache::TailCache;
use crate::error::{AppendError, CloseError};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, messages_len};
use crate::group::Group;
use crate::journal::Journal;
use crate::rewrite::{Content, Kept};
use crate::room::Claim;
use crate::shared::{Beside, Command, Done, Shared, Work, Write, answer};
use crate::topic::{Batch, CachedBatch, PROMISED_MAX, Topic};
use crate::topic_log::Appended;
use danube_core::{Epoch, Offset, TopicId, WalSyncMode, WallMs};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

/// Room left above the last offset, so that adding a count cannot overflow.
const OFFSET_MAX: u64 = u64::MAX - (1 << 40);

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
}

/// Commands sorted out: what a group is made of.
#[derive(Default)]
struct Sorted {
    forgotten: Vec<Arc<Topic>>,
    /// Acknowledged after the write.
    early: Vec<Write>,
    /// Acknowledged after the sync.
    late: Vec<Write>,
    /// Who asked for a sync.
    syncs: Vec<Done<u64, AppendError>>,
}

impl Sorted {
    fn writes(&self) -> impl Iterator<Item = &Write> {
        self.early.iter().chain(&self.late)
    }

    /// Bytes of all frames.
    fn bytes(&self) -> u64 {
        let bytes: usize = self.writes().map(|write| frame_len(&write.work)).sum();
        (bytes + self.forgotten.len() * FRAME_HEADER_LEN) as u64
    }

    /// Bytes of the frames that make such a claim.
    fn bytes_of(&self, claim: Claim) -> u64 {
        let such = self.writes().filter(|write| Claim::of(&write.work) == claim);
        such.map(|write| frame_len(&write.work) as u64).sum()
    }

    /// Answers with `error` what `refused` picks, and leaves it out.
    fn refuse_if(&mut self, error: &AppendError, mut refused: impl FnMut(&Write) -> bool) {
        for writes in [&mut self.early, &mut self.late] {
            for write in writes.extract_if(.., |write| refused(write)) {
                write.work.refuse(error.clone());
            }
        }
    }
}

/// A write with its place in the journal.
struct Framed {
    topic: Arc<Topic>,
    work: Work,
    batch: Batch,
    header: FrameHeader,
}

/// Makes the queue refuse, and answers what is in it, however the thread ends.
struct CloseOnExit(Arc<Shared>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.commands.close();
        while let Some(commands) = self.0.commands.drain(usize::MAX) {
            for command in commands {
                match command {
                    Command::Write(write) => write.work.refuse(AppendError::Closed),
                    Command::Sync(done) => answer(done, Err(AppendError::Closed)),
                    Command::Forget(_) => {}
                }
            }
        }
    }
}

impl Writer {
    /// A writer that goes on after recovery.
    pub(crate) fn new(shared: Arc<Shared>, next_sequence: u64, tip: Tip) -> Writer {
        let cache = TailCache::new(shared.options.cache_bytes_max);
        let journal = Journal::new(Arc::clone(&shared), next_sequence, tip.lsn);
        let group = Group::default();
        Writer { shared, journal, cache, group, tip, promised: 0, now: 0 }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) -> Result<(), CloseError> {
        let _guard = CloseOnExit(Arc::clone(&self.shared));
        let bytes_max = self.shared.options.flush_max_batch_bytes;
        let patience = Duration::from_millis(self.shared.options.flush_interval_ms);
        while let Some(commands) = self.shared.commands.drain_with(bytes_max, patience) {
            self.work_off(commands);
        }
        self.journal.close(self.tip)
    }

    fn work_off(&mut self, commands: Vec<Command>) {
        let mut sorted = sort(commands);
        self.now = self.shared.options.clock.wall().0;
        let syncs = std::mem::take(&mut sorted.syncs);
        if !(sorted.early.is_empty() && sorted.late.is_empty() && sorted.forgotten.is_empty()) {
            self.write_group(sorted);
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
        self.shared.unsynced.store(self.journal.has_unsynced(), Release);
        self.group.clear();
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

        if let Err(error) = self.journal.write(&self.group, begun.lsn) {
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
            return;
        }
        if let Err(error) = self.sync(self.group.len() - kept_len) {
            self.tip = kept;
            take_back(late, &error);
            return self.failed();
        }
        self.shared.counters.syncs.fetch_add(1, Relaxed);
        late.into_iter().for_each(|framed| self.publish(framed, true));
    }

    fn failed(&self) {
        self.shared.counters.failures.fetch_add(1, Relaxed);
    }

    /// Header of the next frame; payload length and checksum are still to come.
    fn header(&mut self, topic: TopicId, epoch: Epoch, kind: FrameKind) -> FrameHeader {
        let header = FrameHeader {
            payload_crc: 0,
            payload_len: 0,
            lsn: self.tip.lsn,
            first: 0,
            topic: topic.0,
            epoch: epoch.0,
            count: 0,
            previous: self.tip.topic,
            kind,
            jump: false,
            synced_mode: false,
            extras: false,
            previous_extras: self.tip.extras,
            unsynced: u32::try_from(self.tip.lsn - self.journal.durable_lsn()).unwrap_or(u32::MAX),
            time: self.now,
        };
        self.tip = Tip { lsn: self.tip.lsn.saturating_add(1), topic: topic.0, extras: false };
        header
    }

    fn frame_forgotten(&mut self, topic: &Topic, file: u64) -> Kept {
        let epoch = topic.state.lock().epoch;
        let header = self.header(topic.id, Epoch(epoch), FrameKind::TopicForgotten);
        let header = self.group.payload(header, &[], file);
        Kept { header, content: Content::Payload(Vec::new()), batch: None }
    }

    /// Gives `write` its offsets and its place. `async` appends are answered here.
    fn frame(&mut self, write: Write, file: u64, start: u64) -> Framed {
        let Write { topic, epoch, sync, mut work } = write;
        let position = start + self.group.len();
        let payload_len = (frame_len(&work) - FRAME_HEADER_LEN) as u32;
        let synced_mode = sync == WalSyncMode::FsyncBatch;
        let mut batch = Batch { first: 0, file, position, time: self.now, count: 0, payload_len };
        let header = match &mut work {
            Work::Append { records, beside, done } => {
                let mut header = self.header(topic.id, epoch, FrameKind::Messages);
                // The queue's limits keep the count far below 2^32.
                header.count = records.len() as u32;
                let mut state = topic.state.lock();
                header.first = state.next_free(synced_mode);
                header.jump = header.first > state.framed;
                if header.jump {
                    (state.floor, state.tail_lost) = (header.first, false);
                }
                header.synced_mode = synced_mode;
                header.extras = beside.is_some();
                self.tip.extras = header.extras;
                header.time = self.now.max(state.time);
                batch.time = header.time;
                (batch.first, batch.count) = (header.first, header.count);
                state.framed = batch.end();
                drop(state);
                if sync == WalSyncMode::Async {
                    answer(done.take(), Ok(appended(&batch)));
                }
                let extras = beside.as_ref().map_or(&[][..], |beside| &beside.bytes);
                self.group.messages(header, extras, records, file)
            }
            Work::Record { records, payload, done } => {
                let mut header = self.header(topic.id, epoch, FrameKind::Progress);
                header.count = records.len() as u32;
                if sync == WalSyncMode::Async {
                    answer(done.take(), Ok(()));
                }
                self.group.payload(header, payload, file)
            }
        };
        Framed { topic, work, batch, header }
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
            Work::Append { records, beside, done } => {
                state.next = batch.end();
                (state.time, state.synced_mode) = (batch.time, header.synced_mode);
                state.tail_lost = false;
                state.index.push_back(batch);
                let cost = TailCache::cost(&records);
                state.cached.push_back(CachedBatch { first: batch.first, records });
                if let Some(origin) = beside.as_ref().and_then(|beside| beside.origin) {
                    state.producers.note(origin, batch.first, batch.count, WallMs(batch.time));
                }
                drop(state);
                beside.into_iter().for_each(|beside| also(*beside));
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
            Work::Append { records, beside, .. } => {
                let extras = beside.as_mut().map(|beside| std::mem::take(&mut beside.bytes));
                let extras = extras.unwrap_or_default();
                (Content::Records(extras, Arc::clone(records)), Some(batch))
            }
            Work::Record { payload, .. } => (Content::Payload(std::mem::take(payload)), None),
        };
        self.journal.keep(Kept { header, content, batch });
    }
}

fn sort(commands: Vec<Command>) -> Sorted {
    let mut sorted = Sorted::default();
    let mut waits_for_sync: HashSet<TopicId> = HashSet::new();
    for command in commands {
        match command {
            Command::Forget(topic) => sorted.forgotten.push(topic),
            Command::Sync(done) => sorted.syncs.extend(done),
            Command::Write(write) => {
                let Some(write) = admit(write) else { continue };
                let waits = |(topic, _): (&Topic, Epoch)| waits_for_sync.contains(&topic.id);
                let late = write.sync == WalSyncMode::FsyncBatch || concerned(&write).any(waits);
                if late {
                    waits_for_sync.extend(concerned(&write).map(|(topic, _)| topic.id));
                }
                if late { sorted.late.push(write) } else { sorted.early.push(write) }
            }
        }
    }
    sorted
}

fn records(work: &Work) -> u64 {
    match work {
        Work::Append { records, .. } => records.len() as u64,
        Work::Record { .. } => 0,
    }
}

/// Refuses what may not be written; the rest is certain to get an offset.
fn admit(write: Write) -> Option<Write> {
    let checked = concerned(&write).try_for_each(|(topic, epoch)| check(topic, epoch));
    match checked {
        Ok(()) => Some(write),
        Err(error) => {
            write.work.refuse(error);
            None
        }
    }
}

fn check(topic: &Topic, epoch: Epoch) -> Result<(), AppendError> {
    let (id, mut state) = (topic.id, topic.state.lock());
    if state.forgotten {
        Err(AppendError::Forgotten(id))
    } else if let Some(damage) = &state.damage {
        Err(AppendError::Damaged(damage.clone()))
    } else if epoch.0 < state.epoch {
        Err(AppendError::Fenced { topic: id, epoch, current: Epoch(state.epoch) })
    } else if state.next_free(false) > OFFSET_MAX {
        Err(AppendError::Exhausted(id))
    } else {
        state.epoch = epoch.0;
        Ok(())
    }
}

/// All topics that `write` has something of, its own first.
fn concerned(write: &Write) -> impl Iterator<Item = (&Topic, Epoch)> {
    let beside = match &write.work {
        Work::Append { beside, .. } => beside.as_deref(),
        Work::Record { .. } => None,
    };
    let also = beside.into_iter().flat_map(|beside| &beside.also);
    let others = also.map(|(topic, epoch, _)| (&**topic, *epoch));
    std::iter::once((&*write.topic, write.epoch)).chain(others)
}

/// Makes progress visible that was written with messages of another topic.
fn also(beside: Beside) {
    for (topic, _, records) in beside.also {
        let mut state = topic.state.lock();
        if !state.forgotten {
            state.recorded = true;
            records.iter().for_each(|record| state.apply(record));
        }
    }
}

/// Undoes the framing of writes that failed, and tells their callers.
fn take_back(framed: Vec<Framed>, error: &AppendError) {
    for Framed { topic, .. } in &framed {
        let mut state = topic.state.lock();
        state.framed = state.next;
    }
    for Framed { topic, work, batch, .. } in framed {
        if let Work::Append { done: None, .. } = &work {
            // An `async` append was answered; its offsets are lost but must not mean another
            // message.
            let mut state = topic.state.lock();
            state.floor = state.floor.max(batch.end());
        }
        work.refuse(error.clone());
    }
}

fn appended(batch: &Batch) -> Appended {
    Appended { first: Offset(batch.first), count: batch.count }
}

/// Bytes of the frame that `work` becomes.
pub(crate) fn frame_len(work: &Work) -> usize {
    FRAME_HEADER_LEN
        + match work {
            Work::Append { records, beside, .. } => {
                messages_len(records) + beside.as_ref().map_or(0, |beside| beside.bytes.len())
            }
            Work::Record { payload, .. } => payload.len(),
        }
}
