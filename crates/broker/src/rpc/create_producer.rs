//! `ProducerService/CreateProducer`: attach a producer, creating the topic for its first one.
//!
//! The stored delivery strategy wins over the one asked for: clients ask for `NonReliable` when
//! nobody told them otherwise, and must still be able to publish to a durable topic. A schema
//! reference is checked before anything is made, and its subject becomes the topic's where the topic
//! has none.

use crate::context::Context;
use crate::schema;
use crate::topic::AccessMode;
use danube_core::{Fault, TopicName};
use danube_wire::convert;
use danube_wire::proto::danube as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::ProducerRequest,
) -> Result<proto::ProducerResponse, Fault> {
    let topic = TopicName::parse(&request.topic_name)?;
    let name = super::producer_name(&request.producer_name)?;
    // Before the topic is made, so that a refused producer leaves nothing behind.
    let choice = match &request.schema_ref {
        Some(wish) => {
            Some(schema::choose(context, &topic, &wish.subject, wish.version_ref.into())?)
        }
        None => None,
    };
    let delivery = convert::delivery(request.dispatch_strategy)?;
    let mode = match request.producer_access_mode() {
        proto::ProducerAccessMode::Shared => AccessMode::Shared,
        proto::ProducerAccessMode::Exclusive => AccessMode::Exclusive,
    };
    let handle = context.topics.get_or_create(context, &topic, delivery).await?;
    let stored = handle.identity().delivery;
    if stored != delivery {
        tracing::info!(%topic, producer = %name, asked = delivery.as_str(), stored = stored.as_str(), "the topic's stored delivery holds");
    }
    if let Some(choice) = choice {
        schema::adopt(context, &topic, &name, &choice).await?;
    }
    let id = handle.create_producer(name.clone(), mode).await?;
    Ok(proto::ProducerResponse {
        request_id: request.request_id,
        producer_id: id.0,
        producer_name: name.to_string(),
    })
}
