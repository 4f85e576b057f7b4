//! What waits and what is under way of one producer on one topic partition: a state machine
//! without IO or clock.
//!
//! ```text
//!  put ─▶ [open batch] ─▶ [sealed, not sent] ─▶ [under way] ─▶ answered
//!                               ▲                    │
//!                               └──── sent again ◀───┘
//! ```
//!
//! A batch gets its sequence number when it is sent. One that the broker may have seen keeps its
//! boundaries; its number too, unless the broker said that nothing from there on is stored.
//!
//! Law: the sequence numbers of what is sent follow one another without a gap, and a message is
//! told what became of it exactly once.

mod answers;

use super::batch::{Budget, Pending, Resolution};
use super::receipt::{BatchState, Receipt};
use crate::error::{Error, Trouble};
use crate::message::Place;
use bytes::BytesMut;
use danube_wire::proto::stream::ProducerOpened;
use danube_wire::stream::{Batch, EncodedMessages, Message};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Small batches under way at a time. Beyond them what waits is gathered until one of them is
/// answered, so that many small publishes become few large batches.
const SMALL_BATCHES_UNDER_WAY_MAX: usize = 4;
/// The least that is waited after a refusal that asks to send again.
const RESEND_PAUSE_MIN: Duration = Duration::from_millis(5);

/// How batches are made.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) batch_messages_max: u32,
    pub(super) batch_bytes_max: usize,
    pub(super) linger: Duration,
    /// From the call that publishes to the answer.
    pub(super) timeout: Duration,
}

/// What the broker lets a producer have under way.
#[derive(Debug, Clone, Copy)]
struct Window {
    batches: usize,
    bytes: u64,
    message_bytes_max: u64,
}

/// The batch that messages are added to.
#[derive(Debug, Default)]
struct Open {
    buffer: BytesMut,
    count: u32,
    state: Arc<BatchState>,
    /// When its first message came.
    since: Option<Instant>,
}

/// After a refusal: nothing until `until`, then one batch alone until it is answered, so that
/// answers to what was sent before the refusal cannot be mistaken.
#[derive(Debug, Clone)]
struct Hold {
    until: Instant,
    /// The sequences of that batch, once it is sent.
    probe: Option<Range<u64>>,
}

impl Hold {
    /// Whether an answer to `sequence` is one to the probe.
    fn is_probe(&self, sequence: u64) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.contains(&sequence))
    }
}

/// What an answer asks of whoever drives the queue.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing but to go on.
    Go,
    /// The broker and this side disagree about what is stored: open the producer again.
    Reopen(Trouble),
    /// The producer is over.
    Over(Error),
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Queue {
    /// What this is, for errors.
    who: String,
    limits: Limits,
    window: Window,
    place: Arc<Place>,
    schema: Option<(u64, u32)>,
    open: Open,
    batches: VecDeque<Pending>,
    /// How many of `batches`, from the front, are sent.
    under_way: usize,
    under_way_bytes: u64,
    next_sequence: u64,
    /// Encoded bytes of all messages that are not answered.
    bytes: u64,
    /// The broker takes batches.
    is_attached: bool,
    hold: Option<Hold>,
    /// Why the broker last asked to send again, as long as it has stored nothing since.
    refusal: Option<String>,
    over: Option<Error>,
    resolved: Vec<Resolution>,
}

impl Queue {
    pub(super) fn new(who: String, topic: Arc<str>, limits: Limits) -> Queue {
        let place = Place { topic, producer_id: 0, broker_url: String::new() };
        Queue {
            who,
            limits,
            window: Window { batches: 1, bytes: 0, message_bytes_max: u64::MAX },
            place: Arc::new(place),
            schema: None,
            open: Open::default(),
            batches: VecDeque::new(),
            under_way: 0,
            under_way_bytes: 0,
            next_sequence: 1,
            bytes: 0,
            is_attached: false,
            hold: None,
            refusal: None,
            over: None,
            resolved: Vec::new(),
        }
    }

    /// What was resolved since the last call; to be told without a lock on the queue.
    pub(super) fn resolutions(&mut self) -> Vec<Resolution> {
        std::mem::take(&mut self.resolved)
    }

    /// Id and version of the schema that the broker named.
    pub(super) fn schema(&self) -> Option<(u64, u32)> {
        self.schema
    }

    /// Whether a batch that is not full waits for more.
    pub(super) fn lingers(&self) -> bool {
        !self.limits.linger.is_zero()
    }

    /// Whether nothing waits and nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.open.count == 0
    }

    /// Adds `message`; `None` when there is no room for it now.
    ///
    /// # Errors
    /// The message is too large, or the producer is over.
    pub(super) fn put(
        &mut self,
        message: &Message<'_>,
        now: impl FnOnce() -> Instant,
    ) -> Result<Option<Receipt>, Error> {
        if let Some(error) = &self.over {
            return Err(error.clone());
        }
        let message = Message { schema: message.schema.or(self.schema), ..*message };
        let len = message.encoded_len() as u64;
        if len > self.window.message_bytes_max {
            let reason = format!(
                "a message of `{len}` bytes is larger than {}, the most that this broker takes; \
                 split it, or publish a reference to it",
                self.window.message_bytes_max
            );
            return Err(Error::refused(danube_core::FaultKind::Invalid, &self.who, reason));
        }
        if self.bytes > 0 && self.bytes + len > self.window.bytes {
            return Ok(None);
        }
        let before = self.open.buffer.len();
        if self.open.count == 0 {
            self.open.since = Some(now());
        }
        EncodedMessages::put(&mut self.open.buffer, &message);
        self.bytes += (self.open.buffer.len() - before) as u64;
        let receipt = Receipt::new(Arc::clone(&self.open.state), self.open.count);
        self.open.count += 1;
        if self.open.count >= self.limits.batch_messages_max
            || self.open.buffer.len() >= self.limits.batch_bytes_max
        {
            self.seal();
        }
        Ok(Some(receipt))
    }

    /// The states of all batches that are not answered; what waits is sent without lingering.
    pub(super) fn flush(&mut self) -> Vec<Arc<BatchState>> {
        if self.open.count > 0 {
            self.seal();
        }
        self.batches.iter().map(|batch| Arc::clone(&batch.state)).collect()
    }

    fn seal(&mut self) {
        let open = std::mem::take(&mut self.open);
        open.state.sealed(open.count);
        // The next batch is likely to be as large.
        self.open.buffer.reserve(open.buffer.len().min(self.limits.batch_bytes_max));
        let messages = EncodedMessages::new(open.buffer.freeze(), open.count);
        let since = open.since.expect("set by the first message");
        self.batches.push_back(Pending::new(open.state, messages, since + self.limits.timeout));
    }

    /// Takes what may be sent now, as batches of `producer`, until `budget` is used up. Returns
    /// whether there is more that only the budget kept back.
    pub(super) fn take(
        &mut self,
        producer: u32,
        now: Instant,
        budget: &mut Budget,
        out: &mut Vec<Batch>,
    ) -> bool {
        while self.may_send(now) {
            if budget.is_used_up() {
                return true;
            }
            if self.under_way == self.batches.len() {
                self.seal();
            }
            let batch = &mut self.batches[self.under_way];
            if batch.first_sequence == 0 {
                batch.first_sequence = self.next_sequence;
            }
            self.next_sequence = self.next_sequence.max(batch.end_sequence());
            budget.spend(batch.messages.bytes().len());
            if let Some(hold) = &mut self.hold {
                hold.probe = Some(batch.first_sequence..batch.end_sequence());
            }
            out.push(Batch {
                producer,
                first_sequence: batch.first_sequence,
                messages: batch.messages.clone(),
            });
            self.under_way += 1;
            self.under_way_bytes += batch.messages.bytes().len() as u64;
        }
        false
    }

    /// Whether [`take`](Self::take) would find something.
    pub(super) fn may_send(&self, now: Instant) -> bool {
        let held = self.hold.as_ref().is_some_and(|hold| hold.probe.is_some() || now < hold.until);
        if !self.is_attached || held {
            return false;
        }
        let len = match self.batches.get(self.under_way) {
            Some(batch) => batch.len(),
            None if self.open_is_ready(now) => self.open.buffer.len() as u64,
            None => return false,
        };
        let fits = self.under_way_bytes + len <= self.window.bytes;
        self.under_way == 0 || (self.under_way < self.window.batches && fits)
    }

    fn open_is_ready(&self, now: Instant) -> bool {
        let Some(since) = self.open.since else { return false };
        let lingered = self.limits.linger.is_zero() || now >= since + self.limits.linger;
        lingered && self.under_way < SMALL_BATCHES_UNDER_WAY_MAX
    }

    /// When after `now` something changes by itself: a linger or a hold ends, or time is up for a
    /// message.
    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let oldest = self.batches.front().map(|batch| batch.deadline);
        let open = self.open.since.map(|since| since + self.limits.timeout);
        let linger = self.open.since.map(|since| since + self.limits.linger);
        let hold = self.hold.as_ref().filter(|hold| hold.probe.is_none()).map(|hold| hold.until);
        [oldest, open, linger, hold].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// The broker attached the producer: what it has not stored is sent again.
    pub(super) fn attached(&mut self, opened: &ProducerOpened, broker_url: &str) {
        self.window = Window {
            batches: (opened.window_batches as usize).max(1),
            bytes: opened.window_bytes,
            message_bytes_max: match opened.message_bytes_max {
                0 => u64::MAX,
                max => max,
            },
        };
        self.schema = opened.schema_id.zip(opened.schema_version);
        self.place = Arc::new(Place {
            topic: Arc::clone(&self.place.topic),
            producer_id: opened.producer_id,
            broker_url: broker_url.to_owned(),
        });
        (self.under_way, self.under_way_bytes, self.hold) = (0, 0, None);
        self.is_attached = true;
        let stored = opened.last_sequence;
        let seen = self.batches.iter().position(|b| !(1..=stored).contains(&b.first_sequence));
        let fresh = seen.unwrap_or(self.batches.len());
        let kept_end = self.batches.iter().take(fresh).map(Pending::end_sequence).max();
        self.next_sequence = kept_end.unwrap_or(0).max(stored + 1);
        self.renumber(fresh, self.next_sequence);
    }

    /// The stream is gone; everything waits for the next one.
    pub(super) fn detached(&mut self) {
        self.is_attached = false;
        (self.under_way, self.under_way_bytes, self.hold) = (0, 0, None);
    }

    /// Batches from `from` on, as far as they have numbers, get those from `sequence` on.
    fn renumber(&mut self, from: usize, mut sequence: u64) {
        for batch in self.batches.range_mut(from..).take_while(|b| b.first_sequence > 0) {
            batch.first_sequence = sequence;
            sequence = batch.end_sequence();
        }
    }

    fn remove(&mut self, at: usize) -> Pending {
        let batch = self.batches.remove(at).expect("the caller knows that it is there");
        self.bytes -= batch.len();
        if self.hold.as_ref().is_some_and(|hold| hold.is_probe(batch.first_sequence)) {
            self.hold = None;
        }
        if at < self.under_way {
            self.under_way -= 1;
            self.under_way_bytes -= batch.len();
        }
        batch
    }

    /// Gives up what was not answered in time.
    pub(super) fn expire(&mut self, now: Instant) -> Next {
        // Whoever waited has to learn what to mend, not only that it took too long.
        let why = self.refusal.as_ref().map(|why| format!(" (last refused: {why})"));
        let why = why.unwrap_or_default();
        let doing = format!("a message of {}, which may be stored or not{why}", self.who);
        let error = Error::Timeout { doing, after: self.limits.timeout };
        if self.open.since.is_some_and(|since| now >= since + self.limits.timeout) {
            self.seal();
        }
        let mut leaves_a_gap = false;
        let mut at = 0;
        while at < self.batches.len() {
            if now < self.batches[at].deadline {
                at += 1;
                continue;
            }
            let is_refused = at >= self.under_way || self.hold.is_some();
            let mut batch = self.remove(at);
            batch.give_up(&error, &mut self.resolved);
            leaves_a_gap |= is_refused && batch.first_sequence > 0;
        }
        match leaves_a_gap && self.is_attached {
            true => Next::Reopen(self.gave_up()),
            false => Next::Go,
        }
    }

    /// Nothing will be sent any more: everything fails, and so does what comes.
    pub(super) fn fail(&mut self, error: Error) {
        if self.open.count > 0 {
            self.seal();
        }
        self.is_attached = false;
        while !self.batches.is_empty() {
            let mut batch = self.remove(0);
            batch.give_up(&error, &mut self.resolved);
        }
        self.over.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests;
