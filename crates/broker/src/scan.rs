//! Reading a topic's log from the side, for people and tools rather than for a subscription.
//!
//! Nothing here knows a consumer, a cursor or a counter, so a look leaves no trace. What it leaves
//! to others: which messages are wanted.
//!
//! Law: one read is bounded by what its caller says, and nothing here blocks the topic's actor.

use danube_core::{Delivery, Fault, Offset, Position, TopicName, WallMs, catalog};
use danube_store::{ReadBatch, ReadLimit, TopicLog};
use tokio::sync::oneshot;

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
        Position::Time(at) => first_since(log, at).await,
    }
}

/// The first message that came at `at` or later, by the broker's clock; the end of the log when
/// there is none.
async fn first_since(log: &TopicLog, at: WallMs) -> Result<Offset, Fault> {
    let (answer, offset) = oneshot::channel();
    log.offset_at(at, move |result| {
        // Nobody waits any more when the caller went away.
        let _ = answer.send(result);
    });
    let offset = offset.await.map_err(|_| Fault::retry("the log is closing; try again"))?;
    Ok(offset?)
}
