//! `HealthCheck/HealthCheck`: may a producer or consumer stay as it is?
//!
//! "Close" is said once, to those whose topic was deleted or unloaded; it makes a client look up
//! and attach again. After that an id that nobody knows is "not found", which ends the check.

use crate::context::Context;
use danube_core::{ConsumerId, Fault, ProducerId, TopicId};
use danube_wire::proto::danube as proto;
use danube_wire::proto::danube::health_check_request::ClientType;
use danube_wire::proto::danube::health_check_response::ClientStatus;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::HealthCheckRequest,
) -> Result<proto::HealthCheckResponse, Fault> {
    let client = ClientType::try_from(request.client)
        .map_err(|_| Fault::invalid(format!("client type `{}` is not known", request.client)))?;
    if context.topics.take_closing(request.id) {
        return Ok(proto::HealthCheckResponse { status: ClientStatus::Close.into() });
    }
    match client {
        ClientType::Consumer => {
            let consumer = ConsumerId(request.id);
            topic(context, consumer.topic(), request.id)?.consumer_health(consumer).await?;
        }
        ClientType::Producer => {
            let producer = ProducerId(request.id);
            topic(context, producer.topic(), request.id)?.producer_health(producer).await?;
        }
    }
    Ok(proto::HealthCheckResponse { status: ClientStatus::Ok.into() })
}

fn topic(
    context: &Arc<Context>,
    topic: Option<TopicId>,
    id: u64,
) -> Result<crate::topic::TopicHandle, Fault> {
    let unknown = || Fault::not_found(format!("no topic here has a producer or consumer {id}"));
    let topic = topic.ok_or_else(unknown)?;
    context.topics.get_by_id(context, topic)?.ok_or_else(unknown)
}
