//! Says what becomes of messages that do not fit their topic's subject.

use super::configure_topic_schema::set;
use super::{Outcome, Stamp};
use crate::catalog::{Catalog, SchemaConfig};
use crate::fault::Fault;
use crate::name::TopicName;
use crate::schema::ValidationPolicy;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] =
    &["set", "set on partitions", "unknown topic: not_found", "no subject: precondition"];

/// Sets policy and payload validation of a topic that has a subject, or of all its partitions.
///
/// ```
/// # use danube_core::{FaultKind, TopicName, ValidationPolicy, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let set = SetValidationPolicy {
///     topic: TopicName::parse("/default/orders")?,
///     validation_policy: ValidationPolicy::Warn,
///     enable_payload_validation: false,
///     by: "docs".into(),
/// };
/// let command = Command::new(set.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetValidationPolicy {
    /// A topic, a topic partition, or a partitioned topic.
    pub topic: TopicName,
    /// What becomes of a message that does not fit.
    pub validation_policy: ValidationPolicy,
    /// Whether payloads are decoded and checked, not only their schema ids.
    pub enable_payload_validation: bool,
    /// Who asks, as far as the broker knows.
    pub by: String,
}

impl SetValidationPolicy {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let partitions = catalog.partitions(&self.topic);
        if partitions.is_empty() {
            return Err(Fault::not_found(format!("topic `{}` does not exist", self.topic)));
        }
        let bare = partitions
            .iter()
            .find(|name| catalog.topic(name).is_some_and(|topic| topic.schema_subject.is_none()));
        if let Some(bare) = bare {
            return Err(Fault::precondition(format!(
                "topic `{bare}` has no schema subject to validate by; give it one with \
                 `topics configure-schema`, or let a producer bring one"
            )));
        }
        Ok(set(catalog, partitions, stamp, &self.by, |now| SchemaConfig {
            validation_policy: self.validation_policy,
            enable_payload_validation: self.enable_payload_validation,
            ..now
        }))
    }
}
