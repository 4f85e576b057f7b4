//! What people change while messages are under way: the policy and the cursor.
//!
//! Law: after a seek nothing of before has any effect; after a policy change every message that
//! is not with a client is where the new policy would have put it.

use super::bodies::Bodies;
use super::slot::{Slot, SlotId, State};
use super::{Effect, Step, Subscription};
use crate::ids::{Offset, Tick};
use crate::policy::FailurePolicy;

impl Subscription {
    /// The cursor was put by hand. What streams have queued keeps its room until it is drained.
    pub(super) fn on_seek(&mut self, to: Offset, out: &mut Vec<Effect>) {
        for id in self.slots_that(|_| true) {
            self.forget(id, out);
        }
        self.epoch = self.epoch.wrapping_add(1);
        self.suspect_end = Offset(0);
        self.bodies = Bodies::default();
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
        for id in self.slots_that(|slot| slot.attempts > 0) {
            self.judge_again(now, id, out);
        }
    }

    /// Puts a failed message where the present policy wants it, if it is not under way.
    pub(super) fn judge_again(&mut self, now: Tick, id: SlotId, out: &mut Vec<Effect>) {
        let slot = self.slots.get(id);
        let is_exhausted = self.config.policy.is_exhausted(slot.attempts);
        let is_condemned = match slot.state() {
            State::Ready | State::Waiting { .. } => false,
            State::Blocked { .. } => true,
            State::DeadLettering { retry: Some(_) } => true,
            // With a client, or a copy is being written: the outcome is judged when it comes.
            State::Queued { .. }
            | State::InFlight { .. }
            | State::DeadLettering { retry: None } => return,
        };
        if is_exhausted {
            self.condemn(now, id, out);
        } else if is_condemned {
            self.set_recorded_block(self.slots.get(id).offset, false, out);
            self.put(id, State::Ready);
        }
    }

    /// The slots that `wanted` picks, in offset order.
    pub(super) fn slots_that(&self, wanted: impl Fn(&Slot) -> bool) -> Vec<SlotId> {
        self.slots.iter().filter(|(_, slot)| wanted(slot)).map(|(id, _)| id).collect()
    }
}
