//! Poison: what becomes of a message that has no re-delivery left.
//!
//! Law: the cursor passes a dead-lettered message only after its copy is durable. A copy that
//! fails is tried again, ever more slowly, and `why` says so.

use super::slot::{SlotId, State};
use super::{Effect, Note, Step, Subscription};
use crate::ids::{Offset, Tick};
use crate::intent::PoisonPolicy;

/// Delay before a failed dead-letter copy is tried again the first time, in milliseconds; it
/// doubles each time.
const DEAD_LETTER_RETRY_MS: u64 = 1_000;
/// Longest delay before the next try, in milliseconds.
const DEAD_LETTER_RETRY_MS_MAX: u64 = 30_000;

/// Tries to copy a message that failed so far.
#[derive(Debug, Clone, Default)]
pub(super) struct FailedCopy {
    pub tries: u32,
    /// What the last one said.
    pub error: String,
}

impl Subscription {
    /// Does with an exhausted message what the policy says.
    pub(super) fn condemn(&mut self, now: Tick, id: SlotId, out: &mut Vec<Effect>) {
        let offset = self.slots.get(id).offset;
        match self.config.policy.poison_policy {
            PoisonPolicy::DeadLetter => {
                self.set_recorded_block(offset, false, out);
                self.failed_copies.remove(&offset);
                self.dead_letter(id, out);
            }
            PoisonPolicy::Block => self.block(now, id, out),
            PoisonPolicy::Drop | PoisonPolicy::None => {
                out.push(Effect::Note(Note::Dropped(offset)));
                self.finish(id, out);
            }
        }
    }

    fn block(&mut self, now: Tick, id: SlotId, out: &mut Vec<Effect>) {
        let slot = self.slots.get(id);
        let offset = slot.offset;
        if !matches!(slot.state(), State::Blocked { .. }) {
            self.set_recorded_block(offset, true, out);
            self.put(id, State::Blocked { since: now });
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

    /// Asks for the copy, and before it for the body if that is parked.
    pub(super) fn dead_letter(&mut self, id: SlotId, out: &mut Vec<Effect>) {
        self.put(id, State::DeadLettering { retry: None });
        let slot = self.slots.get(id);
        if !slot.has_body {
            return self.want_body(id);
        }
        let (offset, attempt) = (slot.offset, slot.attempts);
        let reason = self.progress.attempts(offset).map(|attempts| attempts.reason.clone());
        let reason = reason.filter(|reason| !reason.is_empty());
        out.push(Effect::DeadLetter { offset, attempt, reason });
    }

    pub(super) fn on_dead_lettered(&mut self, offset: Offset, out: &mut Vec<Effect>) {
        let Some(id) = self.slots.find(offset) else { return };
        let slot = self.slots.get(id);
        if matches!(slot.state(), State::DeadLettering { .. }) && !slot.is_wanted {
            out.push(Effect::Note(Note::DeadLetter(offset)));
            self.finish(id, out);
        }
    }

    pub(super) fn on_dead_letter_failed(
        &mut self,
        now: Tick,
        offset: Offset,
        error: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(id) = self.slots.find(offset) else { return };
        let slot = self.slots.get(id);
        if slot.state() != (State::DeadLettering { retry: None }) || slot.is_wanted {
            return;
        }
        let attempts = slot.attempts;
        let failed = self.failed_copies.entry(offset).or_default();
        let delay_ms = 1_u64
            .checked_shl(failed.tries)
            .map_or(u64::MAX, |factor| DEAD_LETTER_RETRY_MS.saturating_mul(factor))
            .min(DEAD_LETTER_RETRY_MS_MAX);
        *failed = FailedCopy { tries: failed.tries.saturating_add(1), error };
        self.put(id, State::DeadLettering { retry: Some(now.after_ms(delay_ms)) });
        out.push(Effect::Note(Note::DeadLetterFailed(offset)));
        // The policy may have changed while the copy was under way.
        let policy = &self.config.policy;
        let is_still_wanted =
            policy.is_exhausted(attempts) && policy.poison_policy == PoisonPolicy::DeadLetter;
        if !is_still_wanted {
            self.judge_again(now, id, out);
        }
    }
}
