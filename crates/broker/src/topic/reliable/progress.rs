//! Acks and failures of one turn, on their way to the journal.
//!
//! The engine has taken a step before it is journaled. When the journal cannot take the record,
//! what it holds is no longer what we said; then all progress of the topic is stated again until
//! that succeeds, and meanwhile nobody is told that an ack is safe.
//!
//! Law: an ack is answered with "done" only when a restart would know of it, in as far as the
//! topic's durability promises.

use super::super::TopicIdentity;
use super::super::claim::Waiting;
use super::publish::append_fault;
use super::{Completion, Completions};
use danube_core::subscription::{ProgressRecord, Step};
use danube_core::{Fault, Offset, SubscriptionId, Tick};
use danube_store::TopicLog;
use std::sync::Arc;

/// Pause before progress that could not be journaled is stated again.
const RESTATE_DELAY_MS: u64 = 1_000;

/// Whether what the journal holds of this topic's progress is what we said.
#[derive(Default)]
enum Journaled {
    #[default]
    Yes,
    /// A record was lost; everything is stated again at this time.
    RestateAt(Tick),
    /// The restatement is on its way.
    Restating,
}

/// Collects a turn's progress and journals it.
#[derive(Default)]
pub(super) struct ProgressJournal {
    pub(super) steps: Vec<ProgressRecord>,
    /// Who waits for these steps to be safe.
    pub(super) waiting: Vec<Waiting>,
    journaled: Journaled,
}

impl ProgressJournal {
    /// Journals what was collected; `restate` gives all progress of the topic.
    pub(super) fn flush(
        &mut self,
        now: Tick,
        topic: &Arc<TopicIdentity>,
        log: &TopicLog,
        completions: &Completions,
        restate: impl FnOnce() -> Vec<ProgressRecord>,
    ) {
        let (steps, waiting) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.waiting));
        let steps = together(steps);
        if let Journaled::Yes = self.journaled {
            return record(topic, log, completions, steps, waiting);
        }
        // The restatement carries these steps as well.
        for waiting in waiting {
            waiting.answer(Err(lost(topic)));
        }
        let due = matches!(self.journaled, Journaled::RestateAt(tick) if tick <= now);
        // Steps taken while a restatement is on its way are not in it: state it all once more.
        if !due {
            if matches!(self.journaled, Journaled::Restating) && !steps.is_empty() {
                self.journaled = Journaled::RestateAt(now.after_ms(RESTATE_DELAY_MS));
            }
            return;
        }
        self.journaled = Journaled::Restating;
        let completions = completions.clone();
        log.record(restate(), topic.wal_sync_mode, move |result| {
            completions.send(match result {
                Ok(()) => Completion::ProgressRestated,
                Err(_) => Completion::ProgressLost,
            });
        });
    }

    /// A record did not reach the journal.
    pub(super) fn lost(&mut self, now: Tick, topic: &TopicIdentity) {
        tracing::error!(topic = %topic.name, "cannot journal the progress of subscriptions; acks are refused until it is stated again");
        self.journaled = Journaled::RestateAt(now.after_ms(RESTATE_DELAY_MS));
    }

    /// The restatement reached the journal.
    pub(super) fn restated(&mut self, topic: &TopicIdentity) {
        if let Journaled::Restating = self.journaled {
            tracing::info!(topic = %topic.name, "the progress of subscriptions is journaled again");
            self.journaled = Journaled::Yes;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Tick> {
        match self.journaled {
            Journaled::RestateAt(tick) => Some(tick),
            Journaled::Yes | Journaled::Restating => None,
        }
    }
}

/// The same steps with what was finished one after the other put together. Finishing is a union of
/// ranges, so within a run of such steps their order means nothing.
fn together(steps: Vec<ProgressRecord>) -> Vec<ProgressRecord> {
    let mut out = Vec::with_capacity(steps.len());
    let mut run: Vec<(Offset, Offset)> = Vec::new();
    let mut of = None;
    for record in steps {
        match record.step {
            Step::Finished { first, end } if of.is_none_or(|it| it == record.subscription) => {
                of = Some(record.subscription);
                run.push((first, end));
            }
            step => {
                end_run(&mut run, of.take(), &mut out);
                if let Step::Finished { first, end } = step {
                    (of, run) = (Some(record.subscription), vec![(first, end)]);
                } else {
                    out.push(ProgressRecord { step, ..record });
                }
            }
        }
    }
    end_run(&mut run, of, &mut out);
    out
}

fn end_run(
    run: &mut Vec<(Offset, Offset)>,
    of: Option<SubscriptionId>,
    out: &mut Vec<ProgressRecord>,
) {
    let Some(subscription) = of else { return };
    run.sort_unstable();
    let begun = out.len();
    for (first, end) in run.drain(..) {
        let last = out.get_mut(begun..).and_then(<[ProgressRecord]>::last_mut);
        match last.map(|last| &mut last.step) {
            Some(Step::Finished { end: last, .. }) if *last >= first => *last = end.max(*last),
            _ => out.push(ProgressRecord { subscription, step: Step::Finished { first, end } }),
        }
    }
}

fn record(
    topic: &Arc<TopicIdentity>,
    log: &TopicLog,
    completions: &Completions,
    steps: Vec<ProgressRecord>,
    waiting: Vec<Waiting>,
) {
    if steps.is_empty() {
        return waiting.into_iter().for_each(|waiting| waiting.answer(Ok(())));
    }
    let (topic, completions) = (Arc::clone(topic), completions.clone());
    let sync = topic.wal_sync_mode;
    log.record(steps, sync, move |result| {
        let answer = result.map_err(|error| append_fault(&topic, &error));
        if answer.is_err() {
            completions.send(Completion::ProgressLost);
        }
        waiting.into_iter().for_each(|waiting| waiting.answer(answer.clone()));
    });
}

fn lost(topic: &TopicIdentity) -> Fault {
    Fault::retry(format!(
        "topic `{}`: the journal could not take earlier acks; they are being written again, \
         retry after {RESTATE_DELAY_MS} ms",
        topic.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_finished_is_put_together_and_nothing_passes_another_step() {
        let of = |subscription, step| ProgressRecord {
            subscription: SubscriptionId(subscription),
            step,
        };
        let finished = |subscription, first, end| {
            of(subscription, Step::Finished { first: Offset(first), end: Offset(end) })
        };
        let moved = of(1, Step::Moved { cursor: Offset(0) });
        let steps = vec![
            finished(1, 4, 6),
            finished(1, 0, 2),
            finished(1, 2, 4),
            finished(1, 9, 10),
            moved.clone(),
            finished(1, 1, 2),
            finished(2, 2, 3),
            finished(2, 1, 2),
            finished(1, 2, 3),
        ];
        let expected = [
            finished(1, 0, 6),
            finished(1, 9, 10),
            moved,
            finished(1, 1, 2),
            finished(2, 1, 3),
            finished(1, 2, 3),
        ];
        assert_eq!(together(steps), expected);
        assert_eq!(together(Vec::new()), []);
    }
}
