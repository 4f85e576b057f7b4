//! `Discovery/TopicLookup`: where a topic is served. With one broker: here.

use crate::context::Context;
use danube_core::{Fault, TopicName};
use danube_wire::proto::danube as proto;
use danube_wire::proto::danube::topic_lookup_response::LookupType;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::TopicLookupRequest,
) -> Result<proto::TopicLookupResponse, Fault> {
    let topic = TopicName::parse(&request.topic)?;
    if context.meta.view().partitions(&topic).is_empty() {
        return Err(Fault::not_found(format!(
            "topic `{topic}` not found; create it, or let its first producer do so"
        )));
    }
    let url = context.broker_url().to_owned();
    Ok(proto::TopicLookupResponse {
        request_id: request.request_id,
        response_type: LookupType::Connect.into(),
        connect_url: url.clone(),
        broker_url: url,
        proxy: false,
    })
}
