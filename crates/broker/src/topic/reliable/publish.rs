//! From the mailbox to the log: publishes of one turn travel as one append. A numbered batch is one of
//! its own, and goes there straight from its stream.
//!
//! The log calls back on its writer thread once the append is as durable as the topic's mode
//! says; the callback answers the producers straight from there and wakes the actor, which then
//! sees a new end of the log. Law: an answer is never given before the log's.

use super::super::TopicIdentity;
use super::super::entrance::{Entrance, Turned};
use super::super::message::{BatchFault, Publish, PublishBatch, Reply};
use super::super::stream::Signals;
use crate::clock::Clock;
use crate::context::Context;
use crate::metrics::TopicMetrics;
use bytes::Bytes;
use danube_core::{Fault, Offset};
use danube_store::{AppendError, Appended, TopicLog};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes after which a turn's append is sent off, even when more publishes wait.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Publishes of the present turn.
#[derive(Default)]
pub(super) struct Publishes {
    records: Vec<Bytes>,
    waiting: Vec<Waiting>,
    bytes: usize,
}

/// A publish without its record, which the log lays out anew.
struct Waiting {
    len: usize,
    arrived: Duration,
    /// Given back when it is answered.
    _permit: OwnedSemaphorePermit,
    reply: Reply<Offset>,
}

impl Publishes {
    pub(super) fn push(&mut self, publish: Publish) {
        let Publish { record, arrived, permit, reply, .. } = publish;
        let len = record.len();
        self.bytes += len;
        self.records.push(record);
        self.waiting.push(Waiting { len, arrived, _permit: permit, reply });
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
        let Publishes { records, waiting, .. } = std::mem::take(self);
        let (topic, signals) = (Arc::clone(topic), Arc::clone(signals));
        let metrics = Arc::clone(metrics);
        let sync = topic.wal_sync_mode;
        log.append(records, sync, move |result| {
            answer(&topic, &metrics, clock.elapsed(), waiting, result);
            signals.log_grew();
        });
    }
}

/// The way of numbered batches from their streams to the log.
pub(in super::super) struct Straight {
    topic: Arc<TopicIdentity>,
    log: TopicLog,
    signals: Arc<Signals>,
    metrics: Arc<TopicMetrics>,
    clock: Clock,
}

impl Straight {
    pub(in super::super) fn new(
        context: &Context,
        topic: &Arc<TopicIdentity>,
        metrics: &Arc<TopicMetrics>,
        signals: &Arc<Signals>,
    ) -> Straight {
        Straight {
            topic: Arc::clone(topic),
            log: context.store.topic(topic.id, topic.epoch),
            signals: Arc::clone(signals),
            metrics: Arc::clone(metrics),
            clock: context.clock,
        }
    }

    /// Sends a batch to the log, if `entrance` lets it pass.
    ///
    /// # Errors
    /// The batch, when the topic has stopped.
    pub(in super::super) fn publish(
        self: &Arc<Straight>,
        entrance: &Entrance,
        batch: PublishBatch,
    ) -> Result<(), Box<PublishBatch>> {
        let count = batch.batch.len() as u64;
        let now = self.clock.now();
        match entrance.admit(now, batch.producer, &batch.producer_name, count) {
            Ok(()) => self.append(batch),
            Err(Turned::Away) => return Err(Box::new(batch)),
            Err(Turned::Down(fault)) => (batch.done)(Err(BatchFault::Fault(fault))),
        }
        Ok(())
    }

    fn append(self: &Arc<Straight>, batch: PublishBatch) {
        let PublishBatch { batch, arrived, permit, done, .. } = batch;
        let (count, bytes) = (batch.len(), batch.byte_len());
        let straight = Arc::clone(self);
        self.log.append_batch(batch, self.topic.wal_sync_mode, move |result| {
            if result.is_ok() {
                let latency = straight.clock.elapsed().saturating_sub(arrived);
                straight.metrics.published(count, bytes, latency);
                straight.metrics.appended(count, bytes);
            }
            drop(permit);
            done(result.map_err(|error| match error {
                AppendError::Sequence { why, .. } => BatchFault::Sequence(why),
                error => BatchFault::Fault(append_fault(&straight.topic, &error)),
            }));
            straight.signals.log_grew();
        });
    }
}

fn answer(
    topic: &TopicIdentity,
    metrics: &TopicMetrics,
    now: Duration,
    waiting: Vec<Waiting>,
    result: Result<Appended, AppendError>,
) {
    match result {
        Ok(appended) => {
            for (index, publish) in (0_u64..).zip(waiting) {
                metrics.published(1, publish.len, now.saturating_sub(publish.arrived));
                metrics.appended(1, publish.len);
                // A producer that went away does not want the answer.
                let _ = publish.reply.send(Ok(appended.first.plus(index)));
            }
        }
        Err(error) => {
            let fault = append_fault(topic, &error);
            for publish in waiting {
                let _ = publish.reply.send(Err(fault.clone()));
            }
        }
    }
}

/// What a client is told when the log could not take its message or its ack.
pub(super) fn append_fault(topic: &TopicIdentity, error: &AppendError) -> Fault {
    Fault::new(error.kind(), format!("topic `{}`: {error}", topic.name))
}
