//! `ConsumerService/Subscribe`: attach a consumer to a subscription, creating it if it is new.
//!
//! The catalog learns of a new subscription or consumer before the client gets its id, so that
//! the id is good after a restart. A subscription starts after what was published before.

use crate::clock::Clock;
use crate::context::Context;
use crate::topic::Subscribe;
use danube_core::change::{AttachConsumer, Change};
use danube_core::{Fault, SubscriptionName, TopicName};
use danube_wire::convert;
use danube_wire::proto::danube as proto;
use std::sync::Arc;

/// Key filters of one consumer, and bytes of one filter.
const FILTERS_MAX: usize = 256;
const FILTER_LEN_MAX: usize = 1024;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::ConsumerRequest,
) -> Result<proto::ConsumerResponse, Fault> {
    let topic = TopicName::parse(&request.topic_name)?;
    let wish = Subscribe {
        subscription: SubscriptionName::parse(&request.subscription)?,
        kind: convert::subscription_type(request.subscription_type)?,
        consumer: super::consumer_name(&request.consumer_name)?,
        key_filters: filters(request.key_filters)?,
    };
    let handle = context.topics.get(context, &topic)?;
    let start = handle.admit(wish.clone()).await?;
    let view = context.meta.view();
    let known = view.topic(&topic).is_some_and(|topic| {
        topic.knows_consumer(&wish.subscription, wish.kind, &wish.consumer, &wish.key_filters)
    });
    if !known {
        let change = Change::AttachConsumer(AttachConsumer {
            topic: handle.identity().id,
            subscription: wish.subscription.clone(),
            kind: wish.kind,
            start,
            consumer: wish.consumer.clone(),
            key_filters: wish.key_filters.clone(),
        });
        context.meta.propose(change, Clock::wall()).await?;
    }
    let view = context.meta.view();
    let record = view
        .topic(&topic)
        .and_then(|topic| topic.subscriptions.get(&wish.subscription))
        .cloned()
        .ok_or_else(|| {
            Fault::retry(format!(
                "subscription `{}` of `{topic}` was removed meanwhile; subscribe again",
                wish.subscription
            ))
        })?;
    let name = wish.consumer.clone();
    let consumer = handle.attach(wish, record).await?;
    context.topics.not_closing(consumer);
    Ok(proto::ConsumerResponse {
        request_id: request.request_id,
        consumer_id: consumer.0,
        consumer_name: name.to_string(),
    })
}

fn filters(filters: Vec<String>) -> Result<Vec<String>, Fault> {
    if filters.len() > FILTERS_MAX {
        return Err(Fault::invalid(format!(
            "{} key filters; at most {FILTERS_MAX} are allowed",
            filters.len()
        )));
    }
    match filters.iter().find(|filter| filter.len() > FILTER_LEN_MAX) {
        Some(filter) => Err(Fault::invalid(format!(
            "a key filter has {} bytes; at most {FILTER_LEN_MAX} are allowed",
            filter.len()
        ))),
        None => Ok(filters),
    }
}
