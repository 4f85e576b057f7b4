//! Gives a topic the subject of its first producer.

use super::configure_topic_schema::set;
use super::delete_schema::unknown_subject;
use super::{Outcome, Stamp};
use crate::catalog::{Catalog, SchemaConfig};
use crate::fault::Fault;
use crate::name::TopicName;
use crate::schema::SubjectName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "adopted",
    "unchanged",
    "unknown topic: not_found",
    "unknown subject: not_found",
    "other subject: precondition",
];

/// Gives a topic, and the other partitions of it that have none, a subject; the same again changes
/// nothing, and another is refused.
///
/// ```
/// # use danube_core::{FaultKind, SubjectName, TopicName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let adopt = AdoptSchemaSubject {
///     topic: TopicName::parse("/default/orders")?,
///     subject: SubjectName::parse("orders")?,
///     by: "docs".into(),
/// };
/// let command = Command::new(adopt.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such topic");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptSchemaSubject {
    /// A topic or a topic partition.
    pub topic: TopicName,
    /// The subject.
    pub subject: SubjectName,
    /// Who brings it, as far as the broker knows.
    pub by: String,
}

impl AdoptSchemaSubject {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let topic = catalog
            .topic(&self.topic)
            .ok_or_else(|| Fault::not_found(format!("topic `{}` does not exist", self.topic)))?;
        if let Some(other) = &topic.schema_subject
            && other != self.subject.as_str()
        {
            return Err(other_subject(&self.topic, &self.subject, other));
        }
        if catalog.subject(self.subject.as_str()).is_none() {
            return Err(unknown_subject(&self.subject));
        }
        let mut bare = catalog.partitions(&self.topic.base());
        bare.retain(|name| catalog.topic(name).is_some_and(|topic| topic.schema_subject.is_none()));
        Ok(set(catalog, bare, stamp, &self.by, |now| SchemaConfig {
            subject: Some(self.subject.as_str().into()),
            ..now
        }))
    }
}

/// The refusal of a producer that brings another subject than the topic has.
pub fn other_subject(topic: &TopicName, wanted: &SubjectName, has: &str) -> Fault {
    Fault::precondition(format!(
        "topic `{topic}` has schema subject `{has}` and cannot use `{wanted}`; use that subject, or \
         let an administrator set another with `topics configure-schema`"
    ))
}
