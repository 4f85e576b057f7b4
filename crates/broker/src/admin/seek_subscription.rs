//! Put a subscription's cursor: to a place of the log, on one topic or on all its partitions.
//!
//! Every partition is asked where it would go before the first one moves, so that a position which
//! one of them refuses moves none.

use crate::context::Context;
use crate::scan;
use danube_core::{Fault, Offset, Position, SubscriptionName, TopicName};
use danube_store::Bounds;
use danube_wire::proto::control;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: control::SeekSubscriptionRequest,
) -> Result<control::SeekSubscriptionResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let subscription = SubscriptionName::parse(&request.subscription)?;
    let position = Position::parse(&request.position)?;
    let moves = plan(context, &name, &subscription, position, request.clamp).await?;
    let mut partitions = Vec::with_capacity(moves.len());
    for Move { partition, old, new } in moves {
        let mut sought = control::SoughtPartition {
            topic: partition.to_string(),
            old_offset: old.0,
            new_offset: new.0,
            error: None,
        };
        if !request.dry_run {
            match seek(context, &partition, &subscription, new).await {
                Ok(old) => {
                    sought.old_offset = old.0;
                    tracing::info!(topic = %partition, %subscription, %old, %new, "sought");
                }
                Err(fault) => sought.error = Some(fault.message),
            }
        }
        partitions.push(sought);
    }
    Ok(control::SeekSubscriptionResponse { partitions })
}

/// What is to be done in one partition.
struct Move {
    partition: TopicName,
    old: Offset,
    new: Offset,
}

async fn plan(
    context: &Context,
    name: &TopicName,
    subscription: &SubscriptionName,
    position: Position,
    clamp: bool,
) -> Result<Vec<Move>, Fault> {
    let view = context.meta.view();
    let mut moves = Vec::new();
    for partition in super::partitions(context, name)? {
        let Some(topic) = view.topic(&partition) else { continue };
        let log = scan::log_of(context, &partition, topic)?;
        let Some(known) = topic.subscriptions.get(subscription) else { continue };
        let wanted = scan::locate(&log, position).await?;
        let new = within(&partition, log.bounds(), wanted, clamp)?;
        let old = log.subscription(known.id, known.start).cursor();
        moves.push(Move { partition, old, new });
    }
    if moves.is_empty() {
        return Err(Fault::not_found(format!(
            "topic `{name}` has no subscription `{subscription}`; `danube ctl topics subscriptions \
             {name}` shows what it has"
        )));
    }
    Ok(moves)
}

/// `wanted`, if the log has it or ends there; the nearest offset that it has, if that will do.
fn within(
    partition: &TopicName,
    bounds: Bounds,
    wanted: Offset,
    clamp: bool,
) -> Result<Offset, Fault> {
    let nearest = wanted.clamp(bounds.start, bounds.next);
    if nearest == wanted || clamp {
        return Ok(nearest);
    }
    let why = if wanted < bounds.start { "is not kept any more" } else { "is not there yet" };
    Err(Fault::precondition(format!(
        "offset {wanted} of topic `{partition}` {why}: it has {} up to {}; choose one of these, or \
         take the nearest with --clamp",
        bounds.start, bounds.next
    )))
}

async fn seek(
    context: &Arc<Context>,
    partition: &TopicName,
    subscription: &SubscriptionName,
    to: Offset,
) -> Result<Offset, Fault> {
    context.topics.get(context, partition)?.seek(subscription.clone(), to).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outside_the_log_is_refused_or_moved_to_the_nearest() {
        let topic = TopicName::parse("/n/t").expect("well formed");
        let bounds = Bounds { start: Offset(10), next: Offset(20) };
        for (wanted, nearest, refusal) in [
            (0, 10, Some("is not kept any more")),
            (9, 10, Some("is not kept any more")),
            (10, 10, None),
            (19, 19, None),
            (20, 20, None),
            (21, 20, Some("is not there yet")),
        ] {
            let wanted = Offset(wanted);
            assert_eq!(within(&topic, bounds, wanted, true), Ok(Offset(nearest)));
            match (within(&topic, bounds, wanted, false), refusal) {
                (Ok(offset), None) => assert_eq!(offset, wanted),
                (Err(fault), Some(why)) => assert!(fault.message.contains(why), "{fault}"),
                (other, _) => panic!("{wanted}: {other:?}"),
            }
        }
    }
}
