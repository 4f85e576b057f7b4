//! `StorageService/ListSegmentDescriptors`: what of a topic lies in shared storage.
//!
//! In standalone mode nothing is exported, so the list of a known topic is truly empty.

use crate::context::Context;
use danube_core::{Fault, TopicName};
use danube_wire::proto::danube as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::ListSegmentDescriptorsRequest,
) -> Result<proto::ListSegmentDescriptorsResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    match context.meta.view().topic(&topic) {
        Some(_) => Ok(proto::ListSegmentDescriptorsResponse { segments: Vec::new() }),
        None => Err(Fault::not_found(format!("topic `{topic}` not found"))),
    }
}
