//! What people change while messages are under way: the policy and the cursor.
//!
//! Law: after a seek nothing of before has any effect; after a policy change every message that
//! is not with a client is where the new policy would have put it.

use super::slot::{Slot, State};
use super::{Effect, Step, Subscription};
use crate::ids::{Offset, Tick};
use crate::policy::FailurePolicy;

impl Subscription {
    /// The cursor was put by hand. What streams have queued keeps its room until it is drained.
    pub(super) fn on_seek(&mut self, to: Offset, out: &mut Vec<Effect>) {
        let held: Vec<Offset> = self.slots.iter().map(|(offset, _)| offset).collect();
        for offset in held {
            self.forget(offset, out);
        }
        self.reader.seek(to);
        self.record(Step::Moved { cursor: to }, out);
    }

    pub(super) fn on_policy_changed(
        &mut self,
        now: Tick,
        policy: FailurePolicy,
        out: &mut Vec<Effect>,
    ) {
        self.config.policy = policy;
        let failed = |slot: &Slot| slot.attempts > 0;
        let failed: Vec<Offset> =
            self.slots.iter().filter(|(_, slot)| failed(slot)).map(|(o, _)| o).collect();
        for offset in failed {
            self.judge_again(now, offset, out);
        }
    }

    /// Puts a failed message where the present policy wants it, if it is not under way.
    pub(super) fn judge_again(&mut self, now: Tick, offset: Offset, out: &mut Vec<Effect>) {
        let Some(slot) = self.slots.get(offset) else { return };
        let is_exhausted = self.config.policy.is_exhausted(slot.attempts);
        let is_condemned = match &slot.state {
            State::Ready | State::Waiting { .. } => false,
            State::Blocked { .. } => true,
            State::DeadLettering { retry, .. } if retry.is_some() => true,
            // With a client, or a copy is being written: the outcome is judged when it comes.
            State::Queued { .. } | State::InFlight { .. } | State::DeadLettering { .. } => return,
        };
        if is_exhausted {
            self.condemn(now, offset, out);
        } else if is_condemned {
            self.set_recorded_block(offset, false, out);
            self.put(offset, State::Ready);
        }
    }
}
