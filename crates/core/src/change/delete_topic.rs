//! Removes a topic.

use super::{Outcome, Stamp};
use crate::catalog::Catalog;
use crate::fault::Fault;
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "deleted plain",
    "deleted with partitions",
    "deleted one partition",
    "partition alone: precondition",
    "unknown: not_found",
];

/// Removes a topic with all its partitions, subscriptions and policies. Its dead-letter topic
/// stays: somebody may still want what is in it.
///
/// One partition goes alone only where its producer made it alone.
///
/// ```
/// # use danube_core::{FaultKind, TopicName, WallMs, catalog::Catalog, change::*};
/// let command =
///     Command::new(DeleteTopic { name: TopicName::parse("/default/jobs")? }.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("there is none");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteTopic {
    /// The name of a plain topic, of a partitioned one, or of a partition made alone.
    pub name: TopicName,
}

impl DeleteTopic {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        let name = &self.name;
        let partitions = catalog.partitions(name);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{name}` does not exist")));
        }
        if let Some((base, _)) = name.partition()
            && let Some(count) = catalog.partition_count(&base)
        {
            return Err(Fault::precondition(format!(
                "topic `{name}` is one of {count} partitions and cannot be deleted alone; \
                 delete `{base}` with all of them"
            )));
        }
        catalog.remove_partition_count(name);
        let deleted = partitions.iter().filter_map(|name| catalog.remove_topic(name)).collect();
        Ok(Outcome::TopicDeleted { deleted })
    }
}
