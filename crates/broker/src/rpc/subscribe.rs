//! `ConsumerService/Subscribe`: attach a consumer to a subscription, creating it if it is new.
//!
//! A subscription that this call makes starts after what was published before.

use super::attach;
use crate::context::Context;
use crate::topic::Subscribe;
use danube_core::{Fault, SubscriptionName, TopicName};
use danube_wire::convert;
use danube_wire::proto::danube as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::ConsumerRequest,
) -> Result<proto::ConsumerResponse, Fault> {
    let topic = TopicName::parse(&request.topic_name)?;
    let wish = Subscribe {
        subscription: SubscriptionName::parse(&request.subscription)?,
        kind: convert::subscription_type(request.subscription_type)?,
        consumer: super::consumer_name(&request.consumer_name)?,
        key_filters: attach::filters(request.key_filters)?,
    };
    let name = wish.consumer.clone();
    let (_, consumer) = attach::attach(context, &topic, wish, None).await?;
    Ok(proto::ConsumerResponse {
        request_id: request.request_id,
        consumer_id: consumer.0,
        consumer_name: name.to_string(),
    })
}
