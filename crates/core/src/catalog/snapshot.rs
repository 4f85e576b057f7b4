//! The catalog as one piece of JSON, to be kept and read back.
//!
//! Where it is kept is left to the `meta` crate.
//!
//! Law: what was encoded decodes to an equal catalog, and bytes that are not a catalog give an
//! error that says why, never a catalog that is half of one.

use super::applied::Applied;
use super::namespace::limits_before_level_4;
use super::{Catalog, Map, Namespace, Subject, Topic, too_new};
use crate::change::LEVEL;
use crate::fault::Fault;
use crate::ids::{Incarnation, SchemaId, TopicId};
use crate::name::{NamespaceName, TopicName};
use crate::schema::SubjectName;
use crate::settings::Limits;
use serde::{Deserialize, Serialize};

/// The stored form; `docs/formats/catalog.md` describes it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapshot {
    level: u32,
    next_topic: TopicId,
    incarnation: Incarnation,
    namespaces: Map<NamespaceName, Namespace>,
    partitioned: Map<TopicName, u32>,
    topics: Map<TopicName, Topic>,
    // Left out while there are none, so that a catalog which needs no level 3 does not claim it.
    #[serde(default = "first_schema", skip_serializing_if = "is_first_schema")]
    next_schema: SchemaId,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    subjects: Map<SubjectName, Subject>,
    #[serde(default, skip_serializing_if = "is_zero")]
    schema_changes: u64,
    // The same for level 4.
    #[serde(default, skip_serializing_if = "Applied::is_empty")]
    applied: Applied,
}

/// The namespaces with `policies` instead of their own.
fn with_policies(
    namespaces: &Map<NamespaceName, Namespace>,
    policies: &Limits,
) -> Map<NamespaceName, Namespace> {
    let with =
        |namespace: &Namespace| Namespace { policies: policies.clone(), ..namespace.clone() };
    namespaces.iter().map(|(name, namespace)| (name.clone(), with(namespace))).collect()
}

fn first_schema() -> SchemaId {
    SchemaId(1)
}

fn is_first_schema(id: &SchemaId) -> bool {
    *id == first_schema()
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Deserialize)]
struct Level {
    level: u32,
}

impl Catalog {
    /// The whole catalog as JSON.
    pub fn encode(&self) -> Vec<u8> {
        let snapshot = Snapshot {
            level: self.level,
            next_topic: self.next_topic,
            incarnation: self.incarnation,
            // Below level 4 nobody can have set limits, and older versions want to read numbers.
            namespaces: match self.level {
                0..4 => with_policies(&self.namespaces, &limits_before_level_4()),
                _ => self.namespaces.clone(),
            },
            partitioned: self.partitioned.clone(),
            topics: self.topics.clone(),
            next_schema: self.next_schema,
            subjects: self.subjects.clone(),
            schema_changes: self.schema_changes,
            applied: self.applied.clone(),
        };
        serde_json::to_vec(&snapshot).expect("plain data with text keys is JSON")
    }

    /// Reads back what [`Catalog::encode`] wrote.
    ///
    /// # Errors
    /// [`Unsupported`](crate::FaultKind::Unsupported) when a later version wrote it, saying which
    /// level it needs; [`Internal`](crate::FaultKind::Internal) when it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Catalog, Fault> {
        let damaged = |why: String| Fault::internal(format!("catalog snapshot is damaged: {why}"));
        // The level first: of a later version's snapshot nothing else need be readable.
        let Level { level } = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        if level > LEVEL {
            return Err(too_new("snapshot", level));
        }
        let read: Snapshot = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        let mut names = Map::new_sync();
        for (name, topic) in read.topics.iter() {
            if topic.id >= read.next_topic {
                return Err(damaged(format!("topic `{name}` has the unused number {}", topic.id)));
            }
            if let Some(other) = names.get(&topic.id) {
                let id = topic.id;
                return Err(damaged(format!("topics `{other}` and `{name}` share number {id}")));
            }
            names.insert_mut(topic.id, name.clone());
        }
        let mut schema_names = Map::new_sync();
        let mut definitions_len = 0_u64;
        for (name, subject) in read.subjects.iter() {
            if subject.id >= read.next_schema {
                return Err(damaged(format!("subject `{name}` has the unused id {}", subject.id)));
            }
            if let Some(other) = schema_names.get(&subject.id) {
                let id = subject.id;
                return Err(damaged(format!("subjects `{other}` and `{name}` share id {id}")));
            }
            if subject.versions.keys().any(|version| *version >= subject.next_version) {
                return Err(damaged(format!("subject `{name}` has an unused version")));
            }
            schema_names.insert_mut(subject.id, name.clone());
            let lens = subject.versions.values().map(|version| version.definition.len() as u64);
            definitions_len = definitions_len.saturating_add(lens.sum());
        }
        Ok(Catalog {
            level: read.level,
            next_topic: read.next_topic,
            incarnation: read.incarnation,
            namespaces: match read.level {
                0..4 => with_policies(&read.namespaces, &Limits::default()),
                _ => read.namespaces,
            },
            partitioned: read.partitioned,
            topics: read.topics,
            names,
            next_schema: read.next_schema,
            subjects: read.subjects,
            schema_names,
            definitions_len,
            schema_changes: read.schema_changes,
            applied: read.applied,
        })
    }
}
