//! The handle of one topic on the log.
//!
//! Law: every call answers exactly once through its callback and never waits for the disk itself.

use crate::batch::RecordBatch;
use crate::error::{AppendError, Damage, ReadError};
use crate::extras::{Also, Extras};
use crate::frame::{FRAME_HEADER_LEN, FRAME_PAYLOAD_MAX};
use crate::queue::Refused;
use crate::read_batch::{ReadBatch, ReadLimit};
use crate::shared::{Beside, Command, Done, Open, Read, Shared, Wanted, Work, Write, answer};
use crate::step;
use crate::topic::Topic;
use crate::writer::frame_len;
use bytes::Bytes;
use danube_core::sequence::{Opened, Origin, Sequences};
use danube_core::subscription::progress::{Progress, ProgressRecord};
use danube_core::{
    Epoch, Offset, ProducerId, Retention, SubscriptionId, TopicId, WalSyncMode, WallMs,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What an append got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub first: Offset,
    /// Records; their offsets follow one another.
    pub count: u32,
}

/// What a topic holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// First readable offset; `next` when there is none.
    pub start: Offset,
    /// One past the last readable offset.
    pub next: Offset,
}

/// One topic of a [`Store`](crate::Store); clones are the same topic. It stays usable, and answers
/// with errors, after the topic is forgotten or the store closed.
#[derive(Clone)]
pub struct TopicLog {
    pub(crate) shared: Arc<Shared>,
    pub(crate) topic: Arc<Topic>,
    pub(crate) epoch: Epoch,
}

impl TopicLog {
    /// The topic.
    pub fn id(&self) -> TopicId {
        self.topic.id
    }

    /// Appends `records` as one batch: all of them or none. Offsets are given in the order in
    /// which appends come.
    ///
    /// `done` is called once: with the offsets when the log has what `sync` promises, or with an
    /// error when nothing was appended. It runs on the writer thread (or on the caller's, when
    /// refused at once), so it must be cheap and must not wait: send to a channel and return.
    /// An `async` append is answered before it is written; readers see it after.
    pub fn append(
        &self,
        records: Vec<Bytes>,
        sync: WalSyncMode,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        self.append_beside(records, None, sync, Box::new(done));
    }

    /// Appends `batch` as [`append`](Self::append) does, once: a batch of `origin` that was stored
    /// before is answered with the offsets that it has.
    ///
    /// `done` gets [`AppendError::Sequence`] when the batch must not be stored where it comes.
    pub fn append_batch(
        &self,
        batch: RecordBatch,
        origin: Origin,
        sync: WalSyncMode,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        let extras = Extras { origin: Some(origin), also: Vec::new() };
        let beside = Beside { origin: Some(origin), also: Vec::new(), bytes: extras.encode() };
        let records = batch.records().collect();
        self.append_beside(records, Some(Box::new(beside)), sync, Box::new(done));
    }

    /// Opens `producer` anew: batches of its earlier epochs are refused from then on. It is done
    /// after everything that was asked before, so the last sequence that it answers is final.
    ///
    /// `done` is called as that of [`append`](Self::append).
    pub fn open_producer(
        &self,
        producer: ProducerId,
        done: impl FnOnce(Result<Opened, AppendError>) + Send + 'static,
    ) {
        let open = Open { topic: Arc::clone(&self.topic), producer, done: Box::new(done) };
        if let Err((refused, Command::Open(open))) =
            self.shared.commands.push(Command::Open(open), 0)
        {
            answer(Some(open.done), Err(refused.into()));
        }
    }

    /// As [`append`](Self::append), and records progress of other topics of the same store, or of
    /// this one, with it: all of it or nothing, whatever happens. `sync` is to be the strongest of
    /// what the topics ask for. What would refuse an append or a recording of any of them refuses
    /// it all.
    pub fn append_with(
        &self,
        records: Vec<Bytes>,
        also: Vec<(TopicLog, Vec<ProgressRecord>)>,
        sync: WalSyncMode,
        done: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
    ) {
        if let Some((other, _)) = also.iter().find(|(it, _)| !Arc::ptr_eq(&it.shared, &self.shared))
        {
            return done(Err(AppendError::Elsewhere(other.id())));
        }
        let also: Vec<_> = also.into_iter().filter(|(_, records)| !records.is_empty()).collect();
        let each = also.iter().map(|(log, records)| Also {
            topic: log.id(),
            epoch: log.epoch.0,
            records: records.clone(),
        });
        let bytes = Extras { origin: None, also: each.collect() }.encode();
        let also = also.into_iter().map(|(log, records)| (log.topic, log.epoch, records)).collect();
        let beside = (!bytes.is_empty()).then(|| Beside { origin: None, also, bytes });
        self.append_beside(records, beside.map(Box::new), sync, Box::new(done));
    }

    fn append_beside(
        &self,
        records: Vec<Bytes>,
        beside: Option<Box<Beside>>,
        sync: WalSyncMode,
        done: Done<Appended, AppendError>,
    ) {
        if records.is_empty() {
            return done(Err(AppendError::Empty));
        }
        let (records, done) = (Arc::new(records), Some(done));
        self.write(Work::Append { records, beside, done }, sync);
    }

    /// Records `progress` of subscriptions of this topic. Nothing to record succeeds at once.
    ///
    /// `done` is called as that of [`append`](Self::append).
    pub fn record(
        &self,
        progress: Vec<ProgressRecord>,
        sync: WalSyncMode,
        done: impl FnOnce(Result<(), AppendError>) + Send + 'static,
    ) {
        if progress.is_empty() {
            return done(Ok(()));
        }
        let payload = step::encode(&progress);
        self.write(Work::Record { records: progress, payload, done: Some(Box::new(done)) }, sync);
    }

    fn write(&self, work: Work, sync: WalSyncMode) {
        let bytes = frame_len(&work);
        let frame_max = FRAME_HEADER_LEN + FRAME_PAYLOAD_MAX;
        let max = frame_max.min(self.shared.options.queue_bytes_max);
        if bytes > max {
            return work.refuse(AppendError::TooLarge { bytes, max });
        }
        let write = Write { topic: Arc::clone(&self.topic), epoch: self.epoch, sync, work };
        if let Err((refused, command)) = self.shared.commands.push(Command::Write(write), bytes) {
            self.shared.counters.refused.fetch_add(1, Relaxed);
            if let Command::Write(write) = command {
                write.work.refuse(refused.into());
            }
        }
    }

    /// Reads from `from` on, in order and without a gap. From below [`Bounds::start`] it reads
    /// from there; at or above [`Bounds::next`] it answers with no record.
    ///
    /// `done` is called once: before this returns when memory has the answer, else on the reader
    /// thread. It must be cheap.
    pub fn read(
        &self,
        from: Offset,
        limit: ReadLimit,
        done: impl FnOnce(Result<ReadBatch, ReadError>) + Send + 'static,
    ) {
        let state = self.topic.state.lock();
        let cached = if state.forgotten {
            Some(Err(ReadError::Forgotten(self.topic.id)))
        } else if let Some(damage) = &state.damage {
            Some(Err(ReadError::Damaged(damage.clone())))
        } else {
            state.read_cached(from.0, limit).map(Ok)
        };
        drop(state);
        if let Some(outcome) = cached {
            self.shared.counters.reads_cached.fetch_add(1, Relaxed);
            return done(outcome);
        }
        self.shared.counters.reads_disk.fetch_add(1, Relaxed);
        let topic = Arc::clone(&self.topic);
        let wanted = Wanted::Messages { from: from.0, limit, done: Box::new(done) };
        self.ask(Read { topic, wanted });
    }

    /// The first offset whose message was published at `time` or later, as the broker's clock had
    /// it; [`Bounds::next`] when there is none yet.
    ///
    /// `done` is called as that of [`read`](Self::read).
    pub fn offset_at(
        &self,
        time: WallMs,
        done: impl FnOnce(Result<Offset, ReadError>) + Send + 'static,
    ) {
        let state = self.topic.state.lock();
        let known = if state.forgotten {
            Some(Err(ReadError::Forgotten(self.topic.id)))
        } else if let Some(damage) = &state.damage {
            Some(Err(ReadError::Damaged(damage.clone())))
        } else if state.segments.back().is_some_and(|last| last.last_time >= time.0) {
            None
        } else {
            Some(Ok(Offset(state.offset_at(time.0))))
        };
        drop(state);
        match known {
            Some(outcome) => done(outcome),
            None => {
                let wanted = Wanted::OffsetAt { time: time.0, done: Box::new(done) };
                self.ask(Read { topic: Arc::clone(&self.topic), wanted });
            }
        }
    }

    fn ask(&self, read: Read) {
        if let Err((refused, read)) = self.shared.reads.push(read, 0) {
            read.wanted.refuse(match refused {
                Refused::Full => ReadError::Busy,
                Refused::Closed => ReadError::Closed,
            });
        }
    }

    /// Says what the topic keeps. Until this and [`set_subscriptions`](Self::set_subscriptions)
    /// have been called, it keeps everything.
    pub fn set_retention(&self, retention: Retention) {
        self.topic.state.lock().retention = Some(retention);
    }

    /// Says which subscriptions there are now, and where each began: what they have not finished
    /// is kept. Progress of others is forgotten.
    pub fn set_subscriptions(
        &self,
        subscriptions: impl IntoIterator<Item = (SubscriptionId, Offset)>,
    ) {
        let known: BTreeMap<SubscriptionId, Offset> = subscriptions.into_iter().collect();
        let mut state = self.topic.state.lock();
        // What they had finished was promised all the same.
        state.raise_floor();
        // The reserved numbers are the broker's own, and in no catalog.
        state.progress.retain(|id, _| id.is_reserved() || known.contains_key(id));
        state.subscriptions = Some(known);
    }

    /// What can be read now.
    pub fn bounds(&self) -> Bounds {
        let state = self.topic.state.lock();
        Bounds { start: Offset(state.start()), next: Offset(state.next) }
    }

    /// Progress of every subscription that has recorded any. One that never recorded a
    /// [`Step::Moved`](danube_core::subscription::progress::Step::Moved) counts from offset 0
    /// here; see [`subscription`](Self::subscription).
    pub fn subscriptions(&self) -> BTreeMap<SubscriptionId, Progress> {
        let state = self.topic.state.lock();
        state.progress.iter().map(|(id, tracked)| (*id, tracked.progress.clone())).collect()
    }

    /// Progress of the subscription that began at `start`, as recorded so far.
    pub fn subscription(&self, id: SubscriptionId, start: Offset) -> Progress {
        self.topic.state.lock().subscription(id, start)
    }

    /// How far the producers have come that number their messages, as the readable records say, and
    /// those that were there.
    pub fn sequences(&self) -> Sequences {
        self.topic.state.lock().sequences.clone()
    }

    /// What stopped this topic, if damage did. Appends and reads then answer with it.
    pub fn damage(&self) -> Option<Damage> {
        self.topic.state.lock().damage.clone()
    }
}

impl fmt::Debug for TopicLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicLog")
            .field("topic", &self.topic.id)
            .field("epoch", &self.epoch)
            .finish()
    }
}
