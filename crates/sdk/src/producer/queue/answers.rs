//! What the broker's answers do to the queue: acks, refusals, and sending again.
//!
//! Law: after a refusal one batch goes alone until it is answered, so an answer to what was sent
//! before cannot be taken for one to what was sent after.

use super::{Hold, Next, Queue, RESEND_PAUSE_MIN};
use crate::error::{Error, Trouble};
use crate::producer::batch::Pending;
use crate::producer::receipt::Outcome;
use danube_core::FaultKind;
use danube_wire::proto::stream::{PublishAck, PublishRefusal, Refusal};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Queue {
    /// Messages are stored.
    pub(in crate::producer) fn acked(&mut self, ack: &PublishAck) {
        let place = Arc::clone(&self.place);
        self.refusal = None;
        self.resolve(ack.first_sequence, ack.count, |sequence| {
            let offset = ack.first_offset + (sequence - ack.first_sequence);
            Outcome::Stored(Arc::clone(&place), offset)
        });
    }

    /// Messages are not stored.
    pub(in crate::producer) fn refused(&mut self, refusal: PublishRefusal, now: Instant) -> Next {
        let after = Duration::from_millis(refusal.retry_after_ms).max(RESEND_PAUSE_MIN);
        match refusal.refusal() {
            Refusal::Invalid => {
                let kind = FaultKind::Invalid;
                let error = Error::refused(kind, &self.who, refusal.reason);
                self.resolve(refusal.first_sequence, refusal.count, |_| {
                    Outcome::Failed(error.clone())
                });
                Next::Go
            }
            Refusal::Retry | Refusal::Overloaded => {
                self.refusal = Some(refusal.reason);
                self.rewind(refusal.first_sequence, now + after)
            }
            Refusal::OutOfOrder => self.out_of_order(refusal, now + after),
            kind => {
                let ms = refusal.retry_after_ms;
                match Trouble::from_refusal(&self.who, kind, refusal.reason, ms) {
                    Trouble::Final(error) => Next::Over(error),
                    passing => Next::Reopen(passing),
                }
            }
        }
    }

    /// Numbers are missing before these. After a hold that is the echo of what was refused
    /// before; else only opening again can tell what the broker has.
    fn out_of_order(&mut self, refusal: PublishRefusal, until: Instant) -> Next {
        let first = self.batches.front().map_or(0, |batch| batch.first_sequence);
        match &self.hold {
            Some(hold) if !hold.is_probe(refusal.first_sequence) => Next::Go,
            None if first < refusal.first_sequence && first > 0 => self.rewind(first, until),
            _ => Next::Reopen(Trouble::from_refusal(
                &self.who,
                Refusal::OutOfOrder,
                refusal.reason,
                refusal.retry_after_ms,
            )),
        }
    }

    /// Nothing from `sequence` on is stored; all of it is to be sent again.
    fn rewind(&mut self, sequence: u64, until: Instant) -> Next {
        match &mut self.hold {
            // An answer to what was sent before the refusal that began the hold.
            Some(hold) if hold.probe.is_some() && !hold.is_probe(sequence) => return Next::Go,
            Some(hold) if hold.probe.is_none() => {
                hold.until = hold.until.max(until);
                return Next::Go;
            }
            _ => {}
        }
        let sent = self.batches.range(..self.under_way);
        let at = sent.take_while(|batch| batch.end_sequence() <= sequence).count();
        if at == self.under_way || self.batches[at].first_sequence > sequence {
            return Next::Reopen(self.gave_up());
        }
        if let Some(rest) = self.batches[at].split_off_unanswered(sequence) {
            self.batches.insert(at + 1, rest);
            self.under_way += 1;
            self.remove(at);
        }
        self.next_sequence = self.batches[at].first_sequence;
        self.renumber(at, self.next_sequence);
        self.under_way = at;
        self.under_way_bytes = self.batches.range(..at).map(Pending::len).sum();
        self.hold = Some(Hold { until, probe: None });
        Next::Go
    }

    /// A number that was used for what is given up cannot be used for anything else while answers
    /// to it may come.
    pub(super) fn gave_up(&self) -> Trouble {
        let doing = format!("sending messages of {} again", self.who);
        let why = Error::Timeout { doing, after: self.limits.timeout };
        Trouble::Passing { why, after: Duration::ZERO }
    }

    /// Tells the messages under way of these sequences what became of them.
    fn resolve(&mut self, first: u64, count: u32, outcome: impl Fn(u64) -> Outcome) {
        let end = first + u64::from(count);
        let mut at = 0;
        while at < self.under_way {
            let batch = &mut self.batches[at];
            if batch.first_sequence >= end {
                break;
            }
            if batch.end_sequence() <= first {
                at += 1;
                continue;
            }
            batch.answer(first..end, &outcome, &mut self.resolved);
            if !batch.is_answered() {
                at += 1;
                continue;
            }
            self.remove(at);
        }
    }
}
