//! From the mailbox to the log: publishes of one turn travel as one append, a numbered batch as one
//! of its own.
//!
//! The log calls back on its writer thread once the append is as durable as the topic's mode
//! says; the callback answers the producers straight from there and wakes the actor, which then
//! sees a new end of the log. Law: an answer is never given before the log's.

use super::super::TopicIdentity;
use super::super::message::{BatchFault, Publish, PublishBatch};
use super::super::stream::Signals;
use crate::clock::Clock;
use crate::metrics::TopicMetrics;
use bytes::Bytes;
use danube_core::Fault;
use danube_store::{AppendError, Appended, TopicLog};
use std::sync::Arc;
use std::time::Duration;

/// Bytes after which a turn's append is sent off, even when more publishes wait.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Publishes of the present turn.
#[derive(Default)]
pub(super) struct Publishes {
    records: Vec<Bytes>,
    publishes: Vec<Publish>,
    bytes: usize,
}

impl Publishes {
    pub(super) fn push(&mut self, publish: Publish) {
        self.bytes += publish.record.len();
        self.records.push(publish.record.clone());
        self.publishes.push(publish);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES_MAX
    }

    /// Sends the batch to the log.
    pub(super) fn flush(
        &mut self,
        topic: &Arc<TopicIdentity>,
        log: &TopicLog,
        signals: &Arc<Signals>,
        metrics: &Arc<TopicMetrics>,
        clock: Clock,
    ) {
        if self.records.is_empty() {
            return;
        }
        let Publishes { records, publishes, .. } = std::mem::take(self);
        let (topic, signals) = (Arc::clone(topic), Arc::clone(signals));
        let metrics = Arc::clone(metrics);
        let sync = topic.wal_sync_mode;
        log.append(records, sync, move |result| {
            answer(&topic, &metrics, clock.elapsed(), publishes, result);
            signals.wake();
        });
    }
}

/// Sends a numbered batch to the log.
pub(super) fn append_batch(
    topic: &Arc<TopicIdentity>,
    log: &TopicLog,
    signals: &Arc<Signals>,
    metrics: &Arc<TopicMetrics>,
    clock: Clock,
    batch: PublishBatch,
) {
    let (topic, signals) = (Arc::clone(topic), Arc::clone(signals));
    let metrics = Arc::clone(metrics);
    let PublishBatch { origin, batch, arrived, permit, done, .. } = batch;
    let (count, bytes) = (batch.len(), batch.byte_len());
    let sync = topic.wal_sync_mode;
    log.append_batch(batch, origin, sync, move |result| {
        if result.is_ok() {
            let latency = clock.elapsed().saturating_sub(arrived);
            metrics.published(count, bytes, latency);
            metrics.appended(count, bytes);
        }
        drop(permit);
        done(result.map_err(|error| match error {
            AppendError::Sequence { why, .. } => BatchFault::Sequence(why),
            error => BatchFault::Fault(append_fault(&topic, &error)),
        }));
        signals.wake();
    });
}

fn answer(
    topic: &TopicIdentity,
    metrics: &TopicMetrics,
    now: Duration,
    publishes: Vec<Publish>,
    result: Result<Appended, AppendError>,
) {
    match result {
        Ok(appended) => {
            for (index, publish) in (0_u64..).zip(publishes) {
                let len = publish.record.len();
                metrics.published(1, len, now.saturating_sub(publish.arrived));
                metrics.appended(1, len);
                // A producer that went away does not want the answer.
                let _ = publish.reply.send(Ok(appended.first.plus(index)));
            }
        }
        Err(error) => {
            let fault = append_fault(topic, &error);
            for publish in publishes {
                let _ = publish.reply.send(Err(fault.clone()));
            }
        }
    }
}

/// What a client is told when the log could not take its message or its ack.
pub(super) fn append_fault(topic: &TopicIdentity, error: &AppendError) -> Fault {
    Fault::new(error.kind(), format!("topic `{}`: {error}", topic.name))
}
