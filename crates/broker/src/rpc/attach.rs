//! Attaching a consumer to a subscription, which is made if it is new; for both wires.
//!
//! Law: the catalog learns of a new subscription or consumer before the client gets its id, so
//! that the id is good after a restart.

use crate::clock::Clock;
use crate::context::Context;
use crate::topic::{Subscribe, TopicHandle};
use danube_core::change::{AttachConsumer, Change};
use danube_core::{ConsumerId, Fault, Offset, TopicName};
use std::sync::Arc;

/// Key filters of one consumer, and bytes of one filter.
const FILTERS_MAX: usize = 256;
const FILTER_LEN_MAX: usize = 1024;

/// Attaches a consumer. A new subscription starts at `start`, or after what was published before.
///
/// # Errors
/// `NotFound` without such a topic, `Precondition` while another consumer is in the way, and
/// whatever the catalog refuses.
pub(crate) async fn attach(
    context: &Arc<Context>,
    topic: &TopicName,
    wish: Subscribe,
    start: Option<Offset>,
) -> Result<(TopicHandle, ConsumerId), Fault> {
    let handle = context.topics.get(context, topic)?;
    let end = handle.admit(wish.clone()).await?;
    let view = context.meta.view();
    let known = view.topic(topic).is_some_and(|topic| {
        topic.knows_consumer(&wish.subscription, wish.kind, &wish.consumer, &wish.key_filters)
    });
    if !known {
        let change = Change::AttachConsumer(AttachConsumer {
            topic: handle.identity().id,
            subscription: wish.subscription.clone(),
            kind: wish.kind,
            start: start.unwrap_or(end),
            consumer: wish.consumer.clone(),
            key_filters: wish.key_filters.clone(),
        });
        context.meta.propose(change, Clock::wall()).await?;
    }
    let view = context.meta.view();
    let record = view
        .topic(topic)
        .and_then(|topic| topic.subscriptions.get(&wish.subscription))
        .cloned()
        .ok_or_else(|| {
            Fault::retry(format!(
                "subscription `{}` of `{topic}` was removed meanwhile; subscribe again",
                wish.subscription
            ))
        })?;
    let consumer = handle.attach(wish, record).await?;
    context.topics.not_closing(consumer);
    Ok((handle, consumer))
}

/// Key filters, if they are within the bounds.
///
/// # Errors
/// `Invalid`, naming the bound.
pub(crate) fn filters(filters: Vec<String>) -> Result<Vec<String>, Fault> {
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
