//! `ConsumerService/ReceiveMessages`: open a consumer's stream.
//!
//! The headers go out at once, before any message exists, because one client holds a lock until
//! it sees them. An id that no topic knows is answered after a pause, before any headers, with
//! "unavailable": that is the one answer on which every official client subscribes again instead
//! of giving up or spinning.

use crate::context::Context;
use crate::topic::{ConsumerStream, OpenedStream, Wire};
use danube_core::{ConsumerId, Fault, FaultKind};
use danube_wire::proto::danube as proto;
use std::sync::Arc;
use std::time::Duration;

/// Pause before an unknown id is refused, so that a client that asks in a loop does not spin.
const UNKNOWN_ID_PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::ReceiveRequest,
) -> Result<ConsumerStream, Fault> {
    let consumer = ConsumerId(request.consumer_id);
    match open(context, consumer).await {
        Err(fault) if matches!(fault.kind, FaultKind::NotFound | FaultKind::Retry) => {
            tokio::time::sleep(UNKNOWN_ID_PAUSE).await;
            Err(Fault::retry(format!("{}; subscribe again", fault.message)))
        }
        other => other,
    }
}

async fn open(context: &Arc<Context>, consumer: ConsumerId) -> Result<ConsumerStream, Fault> {
    let unknown = || Fault::not_found(format!("no topic here has a consumer {consumer}"));
    let topic = consumer.topic().ok_or_else(unknown)?;
    let handle = context.topics.get_by_id(context, topic)?.ok_or_else(unknown)?;
    let OpenedStream { reader, envelope, .. } = handle.open(consumer, Wire::Compatible).await?;
    Ok(ConsumerStream::new(reader, envelope))
}
