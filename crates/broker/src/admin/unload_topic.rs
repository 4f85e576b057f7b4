//! Let go of a topic: its clients are told to look it up again, and the next request loads it.

use crate::context::Context;
use crate::topic::StopReason;
use danube_core::{Fault, TopicName};
use danube_wire::proto::danube_admin as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::TopicRequest,
) -> Result<proto::TopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    for partition in super::partitions(context, &name)? {
        let id = context.meta.view().topic(&partition).map(|topic| topic.id);
        if let Some(id) = id {
            context.topics.stop(id, StopReason::Unloaded).await;
        }
    }
    tracing::info!(topic = %name, "unloaded");
    Ok(proto::TopicResponse { success: true })
}
