//! Sets what a topic has beside its intent: durability, retention, limits, labels.

use super::create_topic::make_dead_letters;
use super::{Outcome, Stamp, TopicRef};
use crate::catalog::{Catalog, TopicOverrides};
use crate::fault::Fault;
use crate::intent::Delivery;
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "set",
    "set on partitions",
    "cleared",
    "unknown topic: not_found",
    "unknown setting: invalid",
    "settings: invalid",
    "not reliable: precondition",
    "set, making dead letters",
    "its own dead letters: invalid",
];

/// Sets some settings of a topic, or of all its partitions, and leaves others to the intent, the
/// namespace and the broker again; what is in neither list stays.
///
/// ```
/// # use danube_core::{FaultKind, TopicName, WallMs};
/// # use danube_core::{catalog::{Catalog, TopicOverrides}, change::*};
/// let configure = ConfigureTopic {
///     topic: TopicName::parse("/default/jobs")?,
///     set: TopicOverrides { retention_time_ms: Some(60_000), ..TopicOverrides::default() },
///     clear: vec!["max_publish_rate".into()],
/// };
/// let command = Command::new(configure.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigureTopic {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// What is set from now on.
    pub set: TopicOverrides,
    /// Names of what is left to the layers below from now on.
    pub clear: Vec<String>,
}

impl ConfigureTopic {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        let stores = self.set.wal_sync_mode.is_some()
            || self.set.retention_time_ms.is_some()
            || self.set.retention_bytes.is_some();
        let mut topics = Vec::with_capacity(partitions.len());
        for name in partitions {
            let topic = catalog.topic_mut(&name).expect("the catalog listed it");
            if stores && topic.delivery == Delivery::NonReliable {
                return Err(Fault::precondition(format!(
                    "topic `{name}` is NonReliable: nothing is stored there, so it can have neither \
                     a wal_sync_mode nor retention"
                )));
            }
            topic.overrides.merge(&self.set);
            for name in &self.clear {
                topic.overrides.clear(name)?;
            }
            topic.overrides.check()?;
            topics.push(TopicRef { id: topic.id, name });
        }
        let made = match &self.set.dead_letter_topic {
            Some(target) => make_dead_letters(catalog, &self.topic, target, stamp.at)?,
            None => None,
        };
        Ok(Outcome::TopicConfigured { topics, created: made.into_iter().collect() })
    }
}
