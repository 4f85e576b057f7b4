//! Says which subject the messages of a topic belong to, and what becomes of those that do not.

use super::delete_schema::unknown_subject;
use super::{Outcome, Stamp, TopicRef};
use crate::catalog::{Catalog, SchemaConfig};
use crate::fault::Fault;
use crate::name::TopicName;
use crate::schema::{SubjectName, ValidationPolicy};
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "set",
    "set on partitions",
    "unchanged",
    "unknown topic: not_found",
    "unknown subject: not_found",
];

/// Sets subject, policy and payload validation of a topic, or of all its partitions. A subject that
/// was there is replaced.
///
/// ```
/// # use danube_core::{FaultKind, SubjectName, TopicName, ValidationPolicy, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let configure = ConfigureTopicSchema {
///     topic: TopicName::parse("/default/orders")?,
///     subject: SubjectName::parse("orders")?,
///     validation_policy: ValidationPolicy::Enforce,
///     enable_payload_validation: true,
///     by: "docs".into(),
/// };
/// let command = Command::new(configure.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigureTopicSchema {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// The subject.
    pub subject: SubjectName,
    /// What becomes of a message that does not fit.
    pub validation_policy: ValidationPolicy,
    /// Whether payloads are decoded and checked, not only their schema ids.
    pub enable_payload_validation: bool,
    /// Who asks, as far as the broker knows.
    pub by: String,
}

impl ConfigureTopicSchema {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        if catalog.subject(self.subject.as_str()).is_none() {
            return Err(unknown_subject(&self.subject));
        }
        let to = SchemaConfig {
            subject: Some(self.subject.as_str().into()),
            validation_policy: self.validation_policy,
            enable_payload_validation: self.enable_payload_validation,
        };
        Ok(set(catalog, partitions, stamp, &self.by, |_| to.clone()))
    }
}

/// Gives each of `topics` the configuration that `to` makes of its present one.
pub(super) fn set(
    catalog: &mut Catalog,
    topics: Vec<TopicName>,
    stamp: Stamp,
    by: &str,
    to: impl Fn(SchemaConfig) -> SchemaConfig,
) -> Outcome {
    let mut touched = Vec::with_capacity(topics.len());
    let mut changed = false;
    for name in topics {
        let topic = catalog.topic_mut(&name).expect("the catalog listed it");
        let next = to(topic.schema_config());
        changed |= topic.set_schema_config(next, stamp.at, by);
        touched.push(TopicRef { name, id: topic.id });
    }
    if changed {
        catalog.schema_changed();
    }
    Outcome::TopicSchemaSet { topics: touched }
}
