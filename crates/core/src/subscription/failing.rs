//! Which messages fail, for people who look: what holds a key or the subscription first.
//!
//! Law: it only looks; a list is as long as its caller says.

use super::Subscription;
use super::slot::{Slot, State};
use crate::ids::{Offset, Tick};
use std::sync::Arc;

/// A message that failed and is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The message.
    pub offset: Offset,
    /// KeyShared: its key, where the message has been read since the last restart.
    pub key: Option<Arc<str>>,
    /// Deliveries made.
    pub attempts: u32,
    /// Why the last one failed.
    pub reason: String,
    /// Whether it failed for good and holds its key or the subscription.
    pub blocked: bool,
    /// How long it has been blocking, in milliseconds, where that is known.
    pub for_ms: Option<u64>,
    /// When its next delivery is due, in milliseconds from now, where it waits for one.
    pub in_ms: Option<u64>,
}

impl Subscription {
    /// The messages that failed and are not finished: those that block first, then by offset; at
    /// most `len_max`. Costs as much as there are failures.
    pub fn failing(&self, now: Tick, len_max: usize) -> Vec<Failing> {
        let failures = || self.progress.failures().filter(|(_, a)| a.count > 0 || a.blocked);
        let blocked = failures().filter(|(_, attempts)| attempts.blocked);
        let others = failures().filter(|(_, attempts)| !attempts.blocked);
        let told = blocked.chain(others).take(len_max).map(|(offset, attempts)| {
            let slot = self.slots.find(offset).map(|id| self.slots.get(id));
            let key = slot.map(|slot| self.gate.key(slot.key)).filter(|key| !key.is_empty());
            let (mut for_ms, mut in_ms) = (None, None);
            match slot.map(Slot::state) {
                Some(State::Blocked { since }) => for_ms = Some(now.0.saturating_sub(since.0)),
                Some(State::Waiting { until }) => in_ms = Some(until.0.saturating_sub(now.0)),
                _ => {}
            }
            Failing {
                offset,
                key,
                attempts: attempts.count,
                reason: attempts.reason.clone(),
                blocked: attempts.blocked,
                for_ms,
                in_ms,
            }
        });
        told.collect()
    }
}
