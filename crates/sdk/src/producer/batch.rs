//! One sealed batch, and what of it is answered.
//!
//! Law: a message is resolved once, however often the broker answers it.

use super::receipt::{BatchState, Outcome};
use crate::error::Error;
use danube_wire::stream::EncodedMessages;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Encoded bytes of messages that one request gathers; a larger batch goes alone.
const REQUEST_LEN_MAX: usize = 1024 * 1024;

/// How much more goes into a request.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// That of one request.
    pub(super) fn of_request() -> Budget {
        Budget(REQUEST_LEN_MAX)
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.0 == 0
    }

    pub(super) fn spend(&mut self, len: usize) {
        self.0 = self.0.saturating_sub(len);
    }
}

/// Something to be told to the waiting.
#[derive(Debug)]
pub(super) struct Resolution {
    pub(super) state: Arc<BatchState>,
    pub(super) messages: Range<u32>,
    pub(super) outcome: Outcome,
}

impl Resolution {
    /// Tells it.
    pub(super) fn tell(self) {
        self.state.tell(self.messages, self.outcome);
    }
}

/// A sealed batch that is not answered, or not all of it.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) state: Arc<BatchState>,
    pub(super) messages: EncodedMessages,
    pub(super) deadline: Instant,
    /// Sequence of its first message; 0 before it is sent.
    pub(super) first_sequence: u64,
    /// Index of its first message within `state`.
    base: u32,
    /// Messages, counted from 0, of which nothing is known, in order.
    unanswered: Unanswered,
}

/// Nearly always a batch is answered whole.
#[derive(Debug)]
enum Unanswered {
    All,
    Some(Vec<Range<u32>>),
}

impl Pending {
    pub(super) fn new(
        state: Arc<BatchState>,
        messages: EncodedMessages,
        deadline: Instant,
    ) -> Pending {
        Pending {
            state,
            messages,
            deadline,
            first_sequence: 0,
            base: 0,
            unanswered: Unanswered::All,
        }
    }

    /// Encoded bytes.
    pub(super) fn len(&self) -> u64 {
        self.messages.bytes().len() as u64
    }

    /// The sequence behind its last message.
    pub(super) fn end_sequence(&self) -> u64 {
        self.first_sequence + u64::from(self.messages.count())
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(&self.unanswered, Unanswered::Some(ranges) if ranges.is_empty())
    }

    /// Resolves those of `sequences` that are not answered.
    pub(super) fn answer(
        &mut self,
        sequences: Range<u64>,
        outcome: &impl Fn(u64) -> Outcome,
        resolved: &mut Vec<Resolution>,
    ) {
        let index = |sequence: u64| {
            let within = sequence.saturating_sub(self.first_sequence);
            u32::try_from(within).unwrap_or(u32::MAX).min(self.messages.count())
        };
        let answered = index(sequences.start)..index(sequences.end);
        let mut rest = Vec::new();
        let all = 0..self.messages.count();
        let before = match &self.unanswered {
            Unanswered::All => std::slice::from_ref(&all),
            Unanswered::Some(ranges) => ranges.as_slice(),
        };
        for range in before {
            let both = range.start.max(answered.start)..range.end.min(answered.end);
            if both.is_empty() {
                rest.push(range.clone());
                continue;
            }
            let outcome = outcome(self.first_sequence + u64::from(both.start));
            resolved.push(self.resolution(&both, outcome));
            let outside = [range.start..both.start, both.end..range.end];
            rest.extend(outside.into_iter().filter(|part| !part.is_empty()));
        }
        self.unanswered = Unanswered::Some(rest);
    }

    /// Fails whatever is not answered.
    pub(super) fn give_up(&mut self, error: &Error, resolved: &mut Vec<Resolution>) {
        let all = self.first_sequence..self.end_sequence();
        self.answer(all, &|_| Outcome::Failed(error.clone()), resolved);
    }

    fn resolution(&self, messages: &Range<u32>, outcome: Outcome) -> Resolution {
        Resolution {
            state: Arc::clone(&self.state),
            messages: self.base + messages.start..self.base + messages.end,
            outcome,
        }
    }

    /// When everything before `sequence` is answered: what is from there on, as a batch of its
    /// own, leaving this one answered. `None` when it has to be sent as a whole.
    pub(super) fn split_off_unanswered(&mut self, sequence: u64) -> Option<Pending> {
        let at = u32::try_from(sequence.checked_sub(self.first_sequence)?).ok()?;
        if at == 0 || at >= self.messages.count() {
            return None;
        }
        let Unanswered::Some(ranges) = &self.unanswered else { return None };
        if ranges.iter().any(|range| range.start < at) {
            return None;
        }
        let unanswered = ranges.iter().map(|range| range.start - at..range.end - at).collect();
        let (front, back) = split(&self.messages, at);
        let rest = Pending {
            state: Arc::clone(&self.state),
            messages: back,
            deadline: self.deadline,
            first_sequence: sequence,
            base: self.base + at,
            unanswered: Unanswered::Some(unanswered),
        };
        self.messages = front;
        self.unanswered = Unanswered::Some(Vec::new());
        Some(rest)
    }
}

/// The first `at` messages, and the others; both share the bytes.
fn split(messages: &EncodedMessages, at: u32) -> (EncodedMessages, EncodedMessages) {
    let bytes = messages.bytes();
    let cut = messages.ranges().take(at as usize).last().map_or(0, |range| range.end);
    let rest = messages.count() - at;
    (EncodedMessages::new(bytes.slice(..cut), at), EncodedMessages::new(bytes.slice(cut..), rest))
}
