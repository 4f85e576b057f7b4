//! Nacks, and what every counted failure leads to: a wait, or poison.
//!
//! Law: each counted delivery fails at most once, and each failure is recorded with the number of
//! deliveries made so far.

use super::slot::State;
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
        delay_ms: Option<u64>,
        reason: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        match self.slots.get(offset).map(|slot| &slot.state) {
            Some(State::InFlight { .. }) => {}
            // The client was faster than the news that the connection took it.
            Some(State::Queued { consumer, .. }) => {
                let consumer = *consumer;
                self.start(now, offset, consumer, out);
            }
            _ => return,
        }
        out.push(Effect::Note(Note::Nack(offset)));
        let delay_ms = self.redelivery_delay_ms(offset, delay_ms);
        self.fail(now, offset, cut(reason.unwrap_or_default()), delay_ms, out);
    }

    /// Delay before the next delivery of `offset`, in milliseconds.
    pub(super) fn redelivery_delay_ms(&self, offset: Offset, asked_ms: Option<u64>) -> u64 {
        let attempts = self.slots.get(offset).map_or(0, |slot| slot.attempts);
        self.config.policy.redelivery_delay_ms(attempts, asked_ms)
    }

    /// A counted delivery of `offset` failed.
    pub(super) fn fail(
        &mut self,
        now: Tick,
        offset: Offset,
        reason: String,
        delay_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.slots.get(offset) else { return };
        let attempt = slot.attempts;
        let is_exhausted = self.config.policy.is_exhausted(attempt);
        let blocked = is_exhausted && self.config.policy.poison_policy == PoisonPolicy::Block;
        self.record(Step::Failed { offset, attempt, blocked, reason }, out);
        if is_exhausted {
            out.push(Effect::Note(Note::RetryExhausted(offset)));
            self.condemn(now, offset, out);
        } else if delay_ms == 0 {
            self.put(offset, State::Ready);
        } else {
            self.put(offset, State::Waiting { until: now.after_ms(delay_ms) });
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
