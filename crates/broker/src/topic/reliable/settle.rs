//! What a consumer of the native wire says of its deliveries, offset by offset to the engine.
//!
//! Law: a range is bounded before it is walked, so that no number in it can keep the actor busy.

use super::super::message::{Settlement, SettlementOutcome};
use super::subscription::{ReliableSubscription, Turn};
use danube_core::change::UNACKED_MESSAGES_MAX;
use danube_core::subscription::{Answer, AttemptId, Event};
use danube_core::{ConsumerId, Offset};
use danube_wire::proto::stream as proto;

/// Tells the engine; answers what took no effect and what was granted.
pub(super) fn settle(
    known: &mut ReliableSubscription,
    turn: &mut Turn<'_>,
    settlement: &Settlement,
) -> SettlementOutcome {
    let mut outcome = SettlementOutcome::default();
    let consumer = settlement.consumer;
    for range in &settlement.acks {
        each(range, consumer, |offset, attempt| {
            let answer = known.ask(turn, Event::Acked { offset, attempt: Some(attempt) });
            note_stale(&mut outcome, range, offset, answer);
        });
    }
    for nack in &settlement.nacks {
        let Some(range) = &nack.range else { continue };
        each(range, consumer, |offset, attempt| {
            let event = Event::Nacked {
                offset,
                attempt: Some(attempt),
                delay_ms: (nack.delay_ms > 0).then_some(nack.delay_ms),
                reason: (!nack.reason.is_empty()).then(|| nack.reason.clone()),
            };
            let answer = known.ask(turn, event);
            note_stale(&mut outcome, range, offset, answer);
        });
    }
    for extension in &settlement.extensions {
        let Some(range) = &extension.range else { continue };
        each(range, consumer, |offset, attempt| {
            let by_ms = extension.by_ms;
            let answer = known.ask(turn, Event::Extended { offset, attempt: Some(attempt), by_ms });
            note_stale(&mut outcome, range, offset, answer);
            if let Answer::Extended { for_ms } = answer {
                grant(&mut outcome, range, offset, for_ms);
            }
        });
    }
    outcome
}

/// Walks the offsets of a range. None is longer than the largest window, so that what is beyond
/// cannot have been delivered.
fn each(range: &proto::Range, consumer: ConsumerId, mut tell: impl FnMut(Offset, AttemptId)) {
    let attempt = AttemptId { number: range.attempt, consumer, epoch: range.epoch };
    for index in 0..range.count.min(UNACKED_MESSAGES_MAX) {
        let Some(offset) = range.first.checked_add(index.into()) else { return };
        tell(Offset(offset), attempt);
    }
}

/// Adds `offset` to the last range, if it goes on there.
fn extend(last: Option<&mut proto::Range>, of: &proto::Range, offset: Offset) -> bool {
    match last {
        Some(last)
            if last.first.checked_add(last.count.into()) == Some(offset.0)
                && (last.attempt, last.epoch) == (of.attempt, of.epoch) =>
        {
            last.count += 1;
            true
        }
        _ => false,
    }
}

fn note_stale(outcome: &mut SettlementOutcome, of: &proto::Range, offset: Offset, answer: Answer) {
    if matches!(answer, Answer::Stale) && !extend(outcome.stale.last_mut(), of, offset) {
        outcome.stale.push(proto::Range { first: offset.0, count: 1, ..*of });
    }
}

fn grant(outcome: &mut SettlementOutcome, of: &proto::Range, offset: Offset, by_ms: u64) {
    let last = outcome.extended.last_mut().filter(|last| last.by_ms == by_ms);
    if !extend(last.and_then(|last| last.range.as_mut()), of, offset) {
        let range = Some(proto::Range { first: offset.0, count: 1, ..*of });
        outcome.extended.push(proto::Extension { range, by_ms });
    }
}
