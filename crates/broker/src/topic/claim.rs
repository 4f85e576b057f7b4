//! What a client says of messages that it was given: done, failed, or still at work.
//!
//! The same for every wire: one that numbers its deliveries says which it means, and hears when it
//! holds that one no more; the compatible wire cannot. What a claim does is the engine's decision.
//!
//! Law: an outcome is told only when a restart would know of it.

use super::message::Reply;
use danube_core::subscription::{Answer, AttemptId, Event};
use danube_core::{Fault, Offset};

/// Most messages of the claims of one request.
pub(crate) const CLAIMED_LEN_MAX: u64 = 10_000;

/// What a client says of a run of messages that it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// First offset meant.
    pub(crate) first: Offset,
    /// One past the last offset meant.
    pub(crate) end: Offset,
    /// Which delivery of each is meant, where the wire can say so.
    pub(crate) attempt: Option<AttemptId>,
    pub(crate) verdict: Verdict,
}

/// What has become of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is done.
    Ack,
    /// It failed.
    Nack {
        /// Shortest delay before it comes again, in milliseconds.
        delay_ms: Option<u64>,
        /// The client's own words.
        reason: Option<String>,
    },
    /// It takes longer: so many milliseconds from now. 0 gives it back uncounted.
    Extend { by_ms: u64 },
}

/// What became of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Messages of which the client holds this delivery no more; nothing changed for them.
    pub(crate) stale: Vec<Offset>,
    /// The shortest extension that was granted, in milliseconds.
    pub(crate) held_ms: Option<u64>,
}

impl Claim {
    /// Of one message, by a client that cannot say which delivery it means.
    pub(crate) fn of(offset: Offset, verdict: Verdict) -> Claim {
        Claim { first: offset, end: offset.next(), attempt: None, verdict }
    }

    /// What the engine is told, message by message.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        (self.first.0..self.end.0).map(|offset| self.event(Offset(offset)))
    }

    fn event(&self, offset: Offset) -> Event {
        let attempt = self.attempt;
        match &self.verdict {
            Verdict::Ack => Event::Acked { offset, attempt },
            Verdict::Nack { delay_ms, reason } => {
                Event::Nacked { offset, attempt, delay_ms: *delay_ms, reason: reason.clone() }
            }
            Verdict::Extend { by_ms } => Event::Extended { offset, attempt, by_ms: *by_ms },
        }
    }
}

/// Refuses claims that would keep a topic busy for too long.
pub(super) fn check(claims: &[Claim]) -> Result<(), Fault> {
    let lens = claims.iter().map(|claim| claim.end.0.saturating_sub(claim.first.0));
    let len = lens.fold(0_u64, u64::saturating_add);
    if len <= CLAIMED_LEN_MAX {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "a request settles `{len}` messages, and at most {CLAIMED_LEN_MAX} are allowed; split it"
    )))
}

impl Outcome {
    pub(super) fn add(&mut self, offset: Offset, answer: Answer) {
        match answer {
            Answer::Taken | Answer::Unchanged => {}
            Answer::Stale => self.stale.push(offset),
            Answer::Extended { for_ms } => {
                self.held_ms = Some(self.held_ms.map_or(for_ms, |held_ms| held_ms.min(for_ms)));
            }
        }
    }
}

/// Somebody who waits until the steps of this turn are safe.
pub(super) enum Waiting {
    /// A cursor was put.
    Moved(Reply<()>),
    /// Claims were taken in.
    Claimed(Reply<Vec<Outcome>>, Vec<Outcome>),
}

impl Waiting {
    /// Tells that the steps are safe, or why not.
    pub(super) fn answer(self, result: Result<(), Fault>) {
        // Whoever asked may have gone away.
        match self {
            Waiting::Moved(reply) => drop(reply.send(result)),
            Waiting::Claimed(reply, outcomes) => drop(reply.send(result.map(|()| outcomes))),
        }
    }
}
