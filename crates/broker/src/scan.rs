//! Reading a topic's log from the side, for people and tools rather than for a subscription.
//!
//! Nothing here knows a consumer, a cursor or a counter, so a look leaves no trace. What it leaves
//! to others: which messages are wanted.
//!
//! Law: one read is bounded by what its caller says, and nothing here blocks the topic's actor.

use danube_core::{Delivery, Fault, Offset, Position, TopicName, WallMs, catalog};
use danube_store::{ReadBatch, ReadLimit, TopicLog};
use danube_wire::record::Record;
use tokio::sync::oneshot;

/// Records and bytes of one read while a time is looked for.
const TIME_READ: ReadLimit = ReadLimit { records_max: 4_096, bytes_max: 1 << 20 };

/// The log of a topic that has one.
///
/// # Errors
/// `Precondition` when the topic is `NonReliable`.
pub(crate) fn log_of(
    context: &crate::context::Context,
    name: &TopicName,
    topic: &catalog::Topic,
) -> Result<TopicLog, Fault> {
    match topic.delivery {
        Delivery::Reliable => Ok(context.store.topic(topic.id, topic.epoch)),
        Delivery::NonReliable => Err(Fault::precondition(format!(
            "topic `{name}` is NonReliable: its messages are delivered and not kept, so there is \
             no place in it to go to"
        ))),
    }
}

/// Reads one batch from `from` on; without a record there is none.
///
/// # Errors
/// Why the log cannot be read.
pub(crate) async fn read(
    log: &TopicLog,
    from: Offset,
    limit: ReadLimit,
) -> Result<ReadBatch, Fault> {
    let (answer, batch) = oneshot::channel();
    log.read(from, limit, move |result| {
        // Nobody waits any more when the caller went away.
        let _ = answer.send(result);
    });
    let batch = batch.await.map_err(|_| Fault::retry("the log is closing; try again"))?;
    Ok(batch?)
}

/// The offset that a position means now. `offset:N` is taken as it is, within the log or not; the
/// caller says what that means.
///
/// # Errors
/// Why the log cannot be read.
pub(crate) async fn locate(log: &TopicLog, position: Position) -> Result<Offset, Fault> {
    let bounds = log.bounds();
    match position {
        Position::Earliest => Ok(bounds.start),
        Position::Latest => Ok(bounds.next),
        Position::Offset(offset) => Ok(offset),
        Position::Time(at) => first_published(log, at).await,
    }
}

/// The first message published at `at` or later, by the producers' clocks, which need not agree;
/// the end of the log when there is none.
async fn first_published(log: &TopicLog, at: WallMs) -> Result<Offset, Fault> {
    let mut from = log.bounds().start;
    loop {
        let batch = read(log, from, TIME_READ).await?;
        if batch.records.is_empty() {
            return Ok(batch.next);
        }
        for (offset, bytes) in batch.records {
            // A record that this version cannot read has no time that it could tell.
            if Record::parse(bytes).is_ok_and(|record| record.publish_time() >= at) {
                return Ok(offset);
            }
        }
        from = batch.next;
    }
}
