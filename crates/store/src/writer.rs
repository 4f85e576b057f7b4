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

use crate::cache::TailCache;
use crate::error::{AppendError, CloseError};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, messages_len};
use crate::group::Group;
use crate::journal::Journal;
use crate::shared::{Command, Shared, Work, Write, answer};
use crate::topic::{Batch, CachedBatch, Topic};
use crate::topic_log::Appended;
use danube_core::{Epoch, Offset, TopicId, WalSyncMode};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Room left above the last offset, so that adding a count cannot overflow.
const OFFSET_MAX: u64 = u64::MAX - (1 << 40);

/// State of the writer thread.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    journal: Journal,
    cache: TailCache,
    group: Group,
    next_lsn: u64,
    /// Topic of the last frame that counts.
    last_topic: u32,
}

/// A write with its place in the journal.
struct Framed {
    topic: Arc<Topic>,
    work: Work,
    batch: Batch,
}

/// Makes the queue refuse, and answers what is in it, however the thread ends.
struct CloseOnExit(Arc<Shared>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.commands.close();
        while let Some(commands) = self.0.commands.drain(usize::MAX) {
            for command in commands {
                if let Command::Write(write) = command {
                    write.work.refuse(AppendError::Closed);
                }
            }
        }
    }
}

impl Writer {
    /// A writer that goes on after recovery.
    pub(crate) fn new(
        shared: Arc<Shared>,
        next_sequence: u64,
        next_lsn: u64,
        last_topic: u32,
    ) -> Writer {
        let cache = TailCache::new(shared.options.cache_bytes_max);
        let journal = Journal::new(Arc::clone(&shared), next_sequence);
        Writer { shared, journal, cache, group: Group::default(), next_lsn, last_topic }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) -> Result<(), CloseError> {
        let _guard = CloseOnExit(Arc::clone(&self.shared));
        let bytes_max = self.shared.options.flush_max_batch_bytes;
        while let Some(commands) = self.shared.commands.drain(bytes_max) {
            self.work_off(commands);
        }
        self.journal.leave()
    }

    fn work_off(&mut self, commands: Vec<Command>) {
        let before = self.journal.active();
        let mut sweep = false;
        let (mut early, mut late, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
        let mut waits_for_sync: HashSet<TopicId> = HashSet::new();
        for command in commands {
            match command {
                Command::Sweep => sweep = true,
                Command::Forget(topic) => forgotten.push(topic),
                Command::Write(write) => {
                    let Some(write) = admit(write) else { continue };
                    if write.sync == WalSyncMode::FsyncBatch {
                        waits_for_sync.insert(write.topic.id);
                    }
                    let late_one = waits_for_sync.contains(&write.topic.id);
                    if late_one { late.push(write) } else { early.push(write) }
                }
            }
        }
        sweep |= !forgotten.is_empty();
        if !(early.is_empty() && late.is_empty() && forgotten.is_empty()) {
            self.write_group(&forgotten, early, late);
        }
        if sweep || before != self.journal.active() {
            self.sweep();
        }
        self.group.clear();
    }

    fn write_group(&mut self, forgotten: &[Arc<Topic>], early: Vec<Write>, late: Vec<Write>) {
        let writes = early.iter().chain(&late);
        let bytes: usize = writes.map(|write| frame_len(&write.work)).sum();
        let bytes = (bytes + forgotten.len() * FRAME_HEADER_LEN) as u64;
        let (file, start) = match self.journal.ready(bytes, self.next_lsn) {
            Ok(place) => place,
            Err(error) => {
                let works = early.into_iter().chain(late).map(|write| write.work);
                works.for_each(|work| work.refuse(error.clone()));
                return self.failed();
            }
        };
        let begun = (self.next_lsn, self.last_topic);
        for topic in forgotten {
            let epoch = topic.state.lock().epoch;
            let header = self.header(topic.id, Epoch(epoch), FrameKind::TopicForgotten);
            self.group.payload(header, &[], file);
        }
        let early: Vec<_> = early.into_iter().map(|w| self.frame(w, file, start)).collect();
        let kept = (self.next_lsn, self.last_topic);
        let kept_len = self.group.len();
        let late: Vec<_> = late.into_iter().map(|w| self.frame(w, file, start)).collect();

        if let Err(error) = self.journal.write(&self.group) {
            (self.next_lsn, self.last_topic) = begun;
            take_back(early.into_iter().chain(late).collect(), &error);
            return self.failed();
        }
        let counters = &self.shared.counters;
        counters.groups.fetch_add(1, Relaxed);
        counters.bytes.fetch_add(self.group.len(), Relaxed);
        counters.frames.fetch_add(self.next_lsn - begun.0, Relaxed);
        early.into_iter().for_each(|framed| self.publish(framed));
        if late.is_empty() {
            return;
        }
        if let Err(error) = self.journal.sync(self.group.len() - kept_len) {
            (self.next_lsn, self.last_topic) = kept;
            take_back(late, &error);
            return self.failed();
        }
        self.shared.counters.syncs.fetch_add(1, Relaxed);
        late.into_iter().for_each(|framed| self.publish(framed));
    }

    fn failed(&self) {
        self.shared.counters.failures.fetch_add(1, Relaxed);
    }

    /// Header of the next frame; payload length and checksum are still to come.
    fn header(&mut self, topic: TopicId, epoch: Epoch, kind: FrameKind) -> FrameHeader {
        let header = FrameHeader {
            payload_crc: 0,
            payload_len: 0,
            lsn: self.next_lsn,
            first: 0,
            topic: topic.0,
            epoch: epoch.0,
            count: 0,
            previous: self.last_topic,
            kind,
            jump: false,
        };
        self.next_lsn = self.next_lsn.saturating_add(1);
        self.last_topic = topic.0;
        header
    }

    /// Gives `write` its offsets and its place. `async` appends are answered here.
    fn frame(&mut self, write: Write, file: u64, start: u64) -> Framed {
        let Write { topic, epoch, sync, mut work } = write;
        let position = start + self.group.len();
        let payload_len = (frame_len(&work) - FRAME_HEADER_LEN) as u32;
        let mut batch = Batch { first: 0, file, position, count: 0, payload_len };
        match &mut work {
            Work::Append { records, done } => {
                let mut header = self.header(topic.id, epoch, FrameKind::Messages);
                // The queue's limits keep the count far below 2^32.
                header.count = records.len() as u32;
                let mut state = topic.state.lock();
                header.first = state.framed.max(state.floor);
                header.jump = header.first > state.framed;
                (batch.first, batch.count) = (header.first, header.count);
                state.framed = batch.end();
                drop(state);
                self.group.messages(header, records, file);
                if sync == WalSyncMode::Async {
                    answer(done.take(), Ok(appended(&batch)));
                }
            }
            Work::Record { records, payload, done } => {
                let mut header = self.header(topic.id, epoch, FrameKind::Progress);
                header.count = records.len() as u32;
                self.group.payload(header, payload, file);
                if sync == WalSyncMode::Async {
                    answer(done.take(), Ok(()));
                }
            }
        }
        Framed { topic, work, batch }
    }

    /// Makes a write visible and tells its caller.
    fn publish(&mut self, framed: Framed) {
        let Framed { topic, work, batch } = framed;
        let mut state = topic.state.lock();
        if state.forgotten {
            drop(state);
            return work.refuse(AppendError::Forgotten(topic.id));
        }
        self.shared.uses(&mut state, batch.file);
        match work {
            Work::Append { records, done } => {
                state.next = batch.end();
                state.index.push_back(batch);
                let cost = TailCache::cost(&records);
                state.cached.push_back(CachedBatch { first: batch.first, records });
                drop(state);
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

    /// Deletes files that hold nothing of any live topic.
    fn sweep(&self) {
        let active = self.journal.active();
        self.shared.files.lock().retain(|sequence, topics| {
            if *topics > 0 || Some(*sequence) == active {
                return true;
            }
            let path = self.shared.path(*sequence);
            match self.shared.disk.remove(&path) {
                Ok(()) => false,
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(%path, %error, "cannot delete a journal file nobody needs");
                    true
                }
            }
        });
    }
}

/// Refuses what may not be written; the rest is certain to get an offset.
fn admit(write: Write) -> Option<Write> {
    let mut state = write.topic.state.lock();
    let (id, epoch) = (write.topic.id, write.epoch);
    let error = if state.forgotten {
        AppendError::Forgotten(id)
    } else if let Some(damage) = &state.damage {
        AppendError::Damaged(damage.clone())
    } else if epoch.0 < state.epoch {
        AppendError::Fenced { topic: id, epoch, current: Epoch(state.epoch) }
    } else if state.framed.max(state.floor) > OFFSET_MAX {
        AppendError::Exhausted(id)
    } else {
        state.epoch = epoch.0;
        drop(state);
        return Some(write);
    };
    drop(state);
    write.work.refuse(error);
    None
}

/// Undoes the framing of writes that failed, and tells their callers.
fn take_back(framed: Vec<Framed>, error: &AppendError) {
    for Framed { topic, .. } in &framed {
        let mut state = topic.state.lock();
        state.framed = state.next;
    }
    for Framed { topic, work, batch } in framed {
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
            Work::Append { records, .. } => messages_len(records),
            Work::Record { payload, .. } => payload.len(),
        }
}
