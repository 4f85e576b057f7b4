//! Gives a topic another intent.

use super::create_topic::make_dead_letters;
use super::{Outcome, Stamp, TopicRef};
use crate::catalog::Catalog;
use crate::fault::Fault;
use crate::intent::Intent;
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "set",
    "set on partitions",
    "set, making dead letters",
    "unknown topic: not_found",
    "one partition: invalid",
    "other delivery: precondition",
];

/// Gives a topic, or all its partitions, another intent with the same delivery. Subscriptions that
/// exist keep the failure policy that they have.
///
/// ```
/// # use danube_core::{FaultKind, Intent, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let set = SetIntent { topic: TopicName::parse("/default/jobs")?, intent: Intent::AuditLog };
/// let command = Command::new(set.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetIntent {
    /// A topic without partitions, or the base name of a partitioned topic.
    pub topic: TopicName,
    /// What it is for from now on.
    pub intent: Intent,
}

impl SetIntent {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        if let Some((base, _)) = self.topic.partition() {
            return Err(Fault::invalid(format!(
                "topic `{}` is one partition; all partitions of `{base}` are for the same, so name \
                 that",
                self.topic
            )));
        }
        let settings = self.intent.expand(&self.topic);
        let mut topics = Vec::with_capacity(partitions.len());
        for name in partitions {
            let topic = catalog.topic_mut(&name).expect("the catalog listed it");
            if topic.delivery != settings.delivery {
                return Err(Fault::precondition(format!(
                    "topic `{name}` is {}, and intent `{}` means {}; make another topic",
                    topic.delivery.as_str(),
                    self.intent,
                    settings.delivery.as_str()
                )));
            }
            topic.settings = Some(settings.clone());
            topics.push(TopicRef { id: topic.id, name });
        }
        let first = topics.first().and_then(|topic| catalog.topic(&topic.name));
        let target = first.and_then(|topic| topic.dead_letter_topic(&self.topic));
        let made = match target {
            Some(target) => make_dead_letters(catalog, &self.topic, &target, stamp.at)?,
            None => None,
        };
        Ok(Outcome::TopicConfigured { topics, created: made.into_iter().collect() })
    }
}
