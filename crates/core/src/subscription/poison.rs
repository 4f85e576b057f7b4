//! Poison: what becomes of a message that has no re-delivery left.
//!
//! Law: the cursor passes a dead-lettered message only after its copy is durable. A copy that
//! fails is tried again, ever more slowly, and `why` says so.

use super::slot::State;
use super::{Effect, Note, Step, Subscription};
use crate::ids::{Offset, Tick};
use crate::intent::PoisonPolicy;

/// Delay before a failed dead-letter copy is tried again the first time, in milliseconds; it
/// doubles each time.
const DEAD_LETTER_RETRY_MS: u64 = 1_000;
/// Longest delay before the next try, in milliseconds.
const DEAD_LETTER_RETRY_MS_MAX: u64 = 30_000;

impl Subscription {
    /// Does with an exhausted message what the policy says.
    pub(super) fn condemn(&mut self, now: Tick, offset: Offset, out: &mut Vec<Effect>) {
        match self.config.policy.poison_policy {
            PoisonPolicy::DeadLetter => {
                self.set_recorded_block(offset, false, out);
                self.dead_letter(offset, 0, String::new(), out);
            }
            PoisonPolicy::Block => self.block(now, offset, out),
            PoisonPolicy::Drop | PoisonPolicy::None => {
                out.push(Effect::Note(Note::Dropped(offset)));
                self.finish(offset, out);
            }
        }
    }

    fn block(&mut self, now: Tick, offset: Offset, out: &mut Vec<Effect>) {
        let state = self.slots.get(offset).map(|slot| &slot.state);
        if !matches!(state, Some(State::Blocked { .. })) {
            self.set_recorded_block(offset, true, out);
            self.put(offset, State::Blocked { since: now });
            out.push(Effect::Note(Note::Blocked(offset)));
        }
    }

    /// Brings the journal in line where it says otherwise.
    pub(super) fn set_recorded_block(
        &mut self,
        offset: Offset,
        blocked: bool,
        out: &mut Vec<Effect>,
    ) {
        if let Some(attempts) = self.progress.attempts(offset)
            && attempts.blocked != blocked
        {
            let (attempt, reason) = (attempts.count, attempts.reason.clone());
            self.record(Step::Failed { offset, attempt, blocked, reason }, out);
        }
    }

    /// Asks for the copy.
    pub(super) fn dead_letter(
        &mut self,
        offset: Offset,
        tries: u32,
        error: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.slots.get(offset) else { return };
        let attempt = slot.attempts;
        let reason = self.progress.attempts(offset).map(|attempts| attempts.reason.clone());
        let reason = reason.filter(|reason| !reason.is_empty());
        self.put(offset, State::DeadLettering { tries, retry: None, error });
        out.push(Effect::DeadLetter { offset, attempt, reason });
    }

    pub(super) fn on_dead_lettered(&mut self, offset: Offset, out: &mut Vec<Effect>) {
        let state = self.slots.get(offset).map(|slot| &slot.state);
        if matches!(state, Some(State::DeadLettering { .. })) {
            out.push(Effect::Note(Note::DeadLetter(offset)));
            self.finish(offset, out);
        }
    }

    pub(super) fn on_dead_letter_failed(
        &mut self,
        now: Tick,
        offset: Offset,
        error: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.slots.get(offset) else { return };
        let State::DeadLettering { tries, retry: None, .. } = slot.state else { return };
        let attempts = slot.attempts;
        let delay_ms = 1_u64
            .checked_shl(tries)
            .map_or(u64::MAX, |factor| DEAD_LETTER_RETRY_MS.saturating_mul(factor))
            .min(DEAD_LETTER_RETRY_MS_MAX);
        let retry = Some(now.after_ms(delay_ms));
        self.put(offset, State::DeadLettering { tries: tries.saturating_add(1), retry, error });
        out.push(Effect::Note(Note::DeadLetterFailed(offset)));
        // The policy may have changed while the copy was under way.
        let policy = &self.config.policy;
        let is_still_wanted =
            policy.is_exhausted(attempts) && policy.poison_policy == PoisonPolicy::DeadLetter;
        if !is_still_wanted {
            self.judge_again(now, offset, out);
        }
    }
}
