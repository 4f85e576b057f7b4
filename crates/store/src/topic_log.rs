//! The handle of one topic on the log: reading, and what the topic is to keep. Writing is in
//! `append`.
//!
//! Law: every call answers exactly once through its callback and never waits for the disk itself.

use crate::error::{Damage, ReadError};
use crate::queue::Refused;
use crate::read_batch::{ReadBatch, ReadLimit};
use crate::shared::{Read, Shared, Wanted};
use crate::topic::Topic;
use danube_core::sequence::Sequences;
use danube_core::subscription::progress::Progress;
use danube_core::{Epoch, Offset, Retention, SubscriptionId, TopicId, WallMs};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

mod append;

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
