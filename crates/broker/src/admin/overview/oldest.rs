//! The oldest message that a subscription has yet to finish.
//!
//! When a message was published stands in its record, so the first unfinished one is read, once per
//! place where a subscription stands.
//!
//! Law: one look reads at most so many messages, and remembers at most so many.

use super::Part;
use crate::context::Context;
use crate::scan;
use danube_core::{Offset, SubscriptionId, TopicId};
use danube_store::ReadLimit;
use danube_wire::proto::control::Unfinished;
use danube_wire::record::Record;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Topic partitions that one look considers: those with the largest backlog.
const PARTS_MAX: usize = 64;
/// Subscriptions of one of them.
const SUBSCRIPTIONS_MAX: usize = 8;
/// Places that are remembered.
const PLACES_MAX: usize = 1_024;
/// One message, whatever its size.
const READ: ReadLimit = ReadLimit { records_max: 1, bytes_max: 1 };

/// Of which subscription, its first unfinished offset, and when that message was published.
type Places = HashMap<(TopicId, SubscriptionId), (Offset, u64)>;

/// What earlier looks found.
#[derive(Default)]
pub(crate) struct Ages {
    places: Mutex<Places>,
}

pub(super) async fn of(context: &Arc<Context>, parts: &[Part<'_>]) -> Option<Unfinished> {
    let mut behind: Vec<&Part<'_>> =
        parts.iter().filter(|part| part.vital.sums.backlog > 0).collect();
    behind.sort_unstable_by_key(|part| std::cmp::Reverse(part.vital.sums.backlog));
    let mut oldest: Option<Unfinished> = None;
    for part in behind.into_iter().take(PARTS_MAX) {
        let Some(log) = &part.log else { continue };
        for (name, known) in part.topic.subscriptions.iter().take(SUBSCRIPTIONS_MAX) {
            let progress = log.subscription(known.id, known.start);
            let offset = progress.first_unfinished(part.bounds.start);
            if offset >= part.bounds.next {
                continue;
            }
            let key = (part.topic.id, known.id);
            let before = context.ages.places.lock().get(&key).copied();
            let publish_time = match before {
                Some((at, time)) if at == offset => time,
                _ => {
                    // What cannot be read is told elsewhere.
                    let Ok(batch) = scan::read(log, offset, READ).await else { continue };
                    let Some((_, stored)) = batch.records.into_iter().next() else { continue };
                    let Ok(record) = Record::parse(stored) else { continue };
                    let time = record.publish_time().0;
                    remember(&mut context.ages.places.lock(), key, (offset, time));
                    time
                }
            };
            if oldest.as_ref().is_none_or(|oldest| publish_time < oldest.publish_time) {
                oldest = Some(Unfinished {
                    topic: part.name.to_string(),
                    subscription: name.to_string(),
                    offset: offset.0,
                    publish_time,
                });
            }
        }
    }
    oldest
}

fn remember(places: &mut Places, key: (TopicId, SubscriptionId), place: (Offset, u64)) {
    if places.len() >= PLACES_MAX && !places.contains_key(&key) {
        places.clear();
    }
    places.insert(key, place);
}
