//! Nacks, and what every counted failure leads to: a wait, or poison.
//!
//! Law: each counted delivery fails at most once, and each failure is recorded with the number of
//! deliveries made so far.

use super::event::{Answer, AttemptId};
use super::slot::{SlotId, State};
use super::{Effect, Note, Step, Subscription};
use crate::ids::{Offset, Tick};
use crate::intent::PoisonPolicy;

/// Longest recorded reason, in bytes; longer ones are cut.
pub const REASON_LEN_MAX: usize = 1_024;

impl Subscription {
    pub(super) fn on_nacked(
        &mut self,
        now: Tick,
        offset: Offset,
        attempt: Option<AttemptId>,
        delay_ms: Option<u64>,
        reason: Option<String>,
        out: &mut Vec<Effect>,
    ) -> Answer {
        let without_effect = attempt.map_or(Answer::Unchanged, |_| Answer::Stale);
        let Some(id) = self.slots.find(offset) else { return without_effect };
        if attempt.is_some_and(|attempt| !self.is_current(id, attempt)) {
            return Answer::Stale;
        }
        match self.slots.get(id).state() {
            State::InFlight { .. } => {}
            // The client was faster than the news that the connection took it; or an old delivery
            // speaks, and the new one must not be sent.
            State::Queued { stream, ticket } => {
                self.void(id, out);
                self.seen(now, stream, ticket, out);
                self.start(now, id, stream, out);
            }
            _ => return without_effect,
        }
        out.push(Effect::Note(Note::Nack(offset)));
        let delay_ms = self.redelivery_delay_ms(id, delay_ms);
        self.fail(now, id, cut(reason.unwrap_or_default()), delay_ms, out);
        Answer::Taken
    }

    /// Delay before the next delivery, in milliseconds.
    pub(super) fn redelivery_delay_ms(&self, id: SlotId, asked_ms: Option<u64>) -> u64 {
        self.config.policy.redelivery_delay_ms(self.slots.get(id).attempts, asked_ms)
    }

    /// A counted delivery failed.
    pub(super) fn fail(
        &mut self,
        now: Tick,
        id: SlotId,
        reason: String,
        delay_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let slot = self.slots.get(id);
        let (offset, attempt) = (slot.offset, slot.attempts);
        let is_exhausted = self.config.policy.is_exhausted(attempt);
        let blocked = is_exhausted && self.config.policy.poison_policy == PoisonPolicy::Block;
        self.record(Step::Failed { offset, attempt, blocked, reason }, out);
        if is_exhausted {
            out.push(Effect::Note(Note::RetryExhausted(offset)));
            self.condemn(now, id, out);
        } else if delay_ms == 0 {
            self.put(id, State::Ready);
        } else {
            self.record(Step::Delayed { offset, delay_ms }, out);
            self.put(id, State::Waiting { until: now.after_ms(delay_ms) });
        }
    }
}

fn cut(mut reason: String) -> String {
    if reason.len() > REASON_LEN_MAX {
        let end = (0..=REASON_LEN_MAX).rev().find(|end| reason.is_char_boundary(*end));
        reason.truncate(end.unwrap_or(0));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(cut("short".to_owned()), "short");
        assert_eq!(cut("x".repeat(2_000)).len(), REASON_LEN_MAX);
        let cut = cut(format!("x{}", "ä".repeat(1_000)));
        assert_eq!((cut.len(), cut.chars().last()), (1_023, Some('ä')));
    }
}
