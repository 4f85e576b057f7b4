//! The catalog as one piece of JSON, to be kept and read back.
//!
//! Where it is kept is left to the `meta` crate.
//!
//! Law: what was encoded decodes to an equal catalog, and bytes that are not a catalog give an
//! error that says why, never a catalog that is half of one.

use super::{Catalog, Map, Namespace, Topic, too_new};
use crate::change::LEVEL;
use crate::fault::Fault;
use crate::ids::{Incarnation, TopicId};
use crate::name::{NamespaceName, TopicName};
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
            namespaces: self.namespaces.clone(),
            partitioned: self.partitioned.clone(),
            topics: self.topics.clone(),
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
        Ok(Catalog {
            level: read.level,
            next_topic: read.next_topic,
            incarnation: read.incarnation,
            namespaces: read.namespaces,
            partitioned: read.partitioned,
            topics: read.topics,
            names,
        })
    }
}
