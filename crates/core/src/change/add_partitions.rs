//! Adds partitions to a partitioned topic.

use super::{Outcome, PARTITIONS_MAX, Stamp, TopicRef};
use crate::catalog::{Catalog, Map, Subscription, Topic};
use crate::fault::Fault;
use crate::ids::Offset;
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "added",
    "unchanged",
    "no partitions: precondition",
    "fewer: precondition",
    "too many: invalid",
];

/// Brings the number of partitions of a topic to `partitions`. The new ones are set up as the first
/// one is, and have its subscriptions from their first message on, so that nothing that is
/// published to them passes anybody by.
///
/// Keys move: which partition a key goes to depends on their number.
///
/// ```
/// # use danube_core::{FaultKind, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let add = AddPartitions { topic: TopicName::parse("/default/jobs")?, partitions: 4 };
/// let command = Command::new(add.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::Precondition);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddPartitions {
    /// The base name of a partitioned topic.
    pub topic: TopicName,
    /// How many it has from now on.
    pub partitions: u32,
}

impl AddPartitions {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let (base, wanted) = (&self.topic, self.partitions);
        if wanted > PARTITIONS_MAX {
            return Err(Fault::invalid(format!(
                "topic `{base}` cannot have `{wanted}` partitions; give at most {PARTITIONS_MAX}"
            )));
        }
        let first = catalog.partitions(base).into_iter().next();
        let first = first.filter(|first| first != base).and_then(|first| catalog.topic(&first));
        let (Some(first), Some(count)) = (first.cloned(), catalog.partition_count(base)) else {
            return Err(Fault::precondition(format!(
                "topic `{base}` was not made with a number of partitions, so none can be added"
            )));
        };
        if wanted < count {
            return Err(Fault::precondition(format!(
                "topic `{base}` has {count} partitions; they cannot become {wanted}, since that \
                 would lose messages"
            )));
        }
        let mut created = Vec::new();
        for index in count..wanted {
            let name = base.with_partition(index)?;
            created.push(catalog.insert_topic(&name, |id| like(&first, id, stamp))?);
        }
        catalog.set_partition_count(base.clone(), wanted);
        let view = &*catalog;
        let topics = view.partitions(base).into_iter();
        let topics = topics.filter_map(|name| Some(TopicRef { id: view.topic(&name)?.id, name }));
        Ok(Outcome::TopicConfigured { topics: topics.collect(), created })
    }
}

fn like(first: &Topic, id: crate::ids::TopicId, stamp: Stamp) -> Topic {
    let made = Topic::new(
        id,
        stamp.at,
        first.delivery,
        first.settings.clone(),
        first.schema_subject.clone(),
    );
    let fresh = |known: &Subscription| Subscription {
        start: Offset(0),
        created_at: stamp.at,
        consumers: Map::new_sync(),
        ..known.clone()
    };
    Topic {
        schema: first.schema.clone(),
        overrides: first.overrides.clone(),
        subscriptions: first
            .subscriptions
            .iter()
            .map(|(name, known)| (name.clone(), fresh(known)))
            .collect(),
        policies_ahead: first.policies_ahead.clone(),
        next_subscription: first.next_subscription,
        ..made
    }
}
