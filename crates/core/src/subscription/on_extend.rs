//! Leases: a client that needs more time asks for it, from the moment of the call.
//!
//! Law: only the present holder gets more time, never more in total than the configuration allows;
//! what was lost is not given back by asking.

use super::event::{Answer, AttemptId};
use super::slot::State;
use super::{Effect, Subscription};
use crate::ids::{Offset, Tick};

impl Subscription {
    pub(super) fn on_extended(
        &mut self,
        now: Tick,
        offset: Offset,
        attempt: Option<AttemptId>,
        by_ms: u64,
        out: &mut Vec<Effect>,
    ) -> Answer {
        let Some(id) = self.slots.find(offset) else { return Answer::Stale };
        if attempt.is_some_and(|attempt| !self.is_current(id, attempt)) {
            return Answer::Stale;
        }
        if let State::Queued { stream, ticket } = self.slots.get(id).state() {
            // The client was faster than the news that the connection took it; if it is an old
            // delivery that speaks, the connection still may send the new one.
            if by_ms == 0 {
                self.void(id, out);
            }
            self.seen(now, stream, ticket, out);
            self.start(now, id, stream, out);
        }
        let State::InFlight { stream, until } = self.slots.get(id).state() else {
            return Answer::Stale;
        };
        // The clock decides, not whether the deadline's event came first.
        if until <= now {
            return Answer::Stale;
        }
        if by_ms == 0 {
            self.give_back(id, out);
            return Answer::Taken;
        }
        let held_ms = self.slots.get(id).held_ms;
        let delivered = until.0.saturating_sub(u64::from(held_ms));
        let total_ms = self.config.lease_total_ms_max.max(self.config.policy.ack_timeout_ms);
        let last = delivered.saturating_add(total_ms).max(now.0);
        let until = now.after_ms(by_ms.min(self.config.lease_ms_max)).0.min(last);
        self.slots.get_mut(id).held_ms = saturated(until - delivered);
        self.put(id, State::InFlight { stream, until: Tick(until) });
        Answer::Extended { for_ms: until - now.0 }
    }
}

/// Milliseconds in 32 bits: 49 days at most.
pub(super) fn saturated(ms: u64) -> u32 {
    u32::try_from(ms).unwrap_or(u32::MAX)
}
