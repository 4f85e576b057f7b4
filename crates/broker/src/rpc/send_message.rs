//! `ProducerService/SendMessage`: publish one message.
//!
//! A producer id that the topic does not know belongs to a producer from before a restart; the
//! message itself says who that was, so it is attached again and nobody notices. The answer
//! echoes the request id, which is what the clients return to their callers.

use crate::context::Context;
use crate::schema::Tagged;
use crate::topic::TopicHandle;
use crate::traces::Parent;
use danube_core::name::ProducerName;
use danube_core::settings::Limit;
use danube_core::{Fault, FaultKind, Offset, ProducerId, TopicName};
use danube_wire::limit::check_message_len;
use danube_wire::proto::danube as proto;
use danube_wire::record;
use danube_wire::trace_context::{TRACEPARENT, TRACESTATE};
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::StreamMessage,
) -> Result<proto::MessageResponse, Fault> {
    let id = request
        .msg_id
        .as_ref()
        .ok_or_else(|| Fault::invalid("msg_id is missing; fill in producer_id and topic_name"))?;
    let producer = ProducerId(id.producer_id);
    let topic = TopicName::parse(&id.topic_name)?;
    let name = super::producer_name(&request.producer_name)?;
    let handle = context.topics.get(context, &topic).map_err(moved)?;
    let request_id = request.request_id;
    let parent = parent(context, &request);
    let arrived = context.clock.elapsed();
    let published = publish(context, &handle, &topic, (producer, name), request).await;
    if let Some(parent) = parent {
        let took = context.clock.elapsed().saturating_sub(arrived);
        let result = published.as_ref().copied().map_err(|fault| fault.kind);
        context.traces.published(handle.identity(), &parent, took, result);
    }
    published.inspect_err(|fault| handle.metrics().refused(fault.kind, 1))?;
    Ok(proto::MessageResponse { request_id })
}

/// The recorded trace that a message belongs to.
fn parent(context: &Context, request: &proto::StreamMessage) -> Option<Parent> {
    if !context.traces.is_on() {
        return None;
    }
    let attribute = |name| request.attributes.get(name).map(String::as_str);
    Parent::read(attribute(TRACEPARENT)?, attribute(TRACESTATE))
}

async fn publish(
    context: &Arc<Context>,
    handle: &TopicHandle,
    topic: &TopicName,
    (producer, name): (ProducerId, ProducerName),
    request: proto::StreamMessage,
) -> Result<Offset, Fault> {
    check_message_len(topic, &request, handle.limit(Limit::MaxMessageSize).into())?;
    if producer.topic() != Some(handle.identity().id) {
        return Err(Fault::retry(format!(
            "producer {producer} belongs to an earlier topic of the name `{topic}`; \
             create the producer again"
        )));
    }
    let tagged = Tagged {
        schema_id: request.schema_id,
        schema_version: request.schema_version,
        payload: &request.payload,
    };
    handle.gate().check(context, tagged)?;
    let record = record::encode(producer, &request);
    handle.publish(context, producer, name, record).await
}

/// A topic that is gone may come back where the client looks next, so it is told to look again.
fn moved(fault: Fault) -> Fault {
    match fault.kind {
        FaultKind::NotFound => Fault::new(FaultKind::Retry, fault.message),
        _ => fault,
    }
}
