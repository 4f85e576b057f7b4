//! `Discovery/TopicPartitions`: the partitions of a topic, by index.
//!
//! A plain topic is its own only partition. An unknown one has none, and that is not an error:
//! one client asks before it creates.

use crate::context::Context;
use danube_core::{Fault, TopicName};
use danube_wire::proto::danube as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::TopicLookupRequest,
) -> Result<proto::TopicPartitionsResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    let partitions = context.meta.view().partitions(&topic);
    Ok(proto::TopicPartitionsResponse {
        request_id: request.request_id,
        partitions: partitions.iter().map(ToString::to_string).collect(),
    })
}
