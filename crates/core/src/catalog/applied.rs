//! What manifests have declared, and who changed what.
//!
//! For each owner of manifests the catalog keeps what was declared last of each object, so that the
//! next apply knows what is no longer declared, and everybody can see what drifted away. Beside it
//! is a trail of the latest changes by people.
//!
//! Law: everything that a client can make grow has a bound here.

use super::{Catalog, Map};
use crate::fault::Fault;
use crate::ids::WallMs;
use crate::name::{NamespaceName, SubscriptionName, TopicName};
use crate::schema::SubjectName;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Owners of manifests.
pub const OWNERS_MAX: usize = 256;
/// Objects that one owner has declared.
pub const OBJECTS_MAX: usize = 100_000;
/// Changes by people that are remembered; the oldest gives way.
pub const TRAIL_LEN_MAX: usize = 1_000;
/// Longest name of an owner, in bytes.
pub const OWNER_LEN_MAX: usize = 64;

/// Something that a manifest can declare, in the order in which it is made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ObjectKey {
    /// A namespace.
    Namespace(NamespaceName),
    /// A schema subject.
    Schema(SubjectName),
    /// A topic, by its base name.
    Topic(TopicName),
    /// A subscription of a topic, on all its partitions.
    Subscription(TopicName, SubscriptionName),
}

/// Every [`ObjectKey::kind`].
pub const OBJECT_KINDS: [&str; 4] = ["namespace", "schema", "topic", "subscription"];

impl ObjectKey {
    /// One of [`OBJECT_KINDS`].
    pub fn kind(&self) -> &'static str {
        match self {
            ObjectKey::Namespace(_) => "namespace",
            ObjectKey::Schema(_) => "schema",
            ObjectKey::Topic(_) => "topic",
            ObjectKey::Subscription(..) => "subscription",
        }
    }

    /// Its name; a subscription's is `/namespace/topic:subscription`.
    pub fn name(&self) -> String {
        match self {
            ObjectKey::Namespace(name) => name.to_string(),
            ObjectKey::Schema(name) => name.to_string(),
            ObjectKey::Topic(name) => name.to_string(),
            ObjectKey::Subscription(topic, name) => format!("{topic}:{name}"),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind(), self.name())
    }
}

impl From<ObjectKey> for String {
    fn from(key: ObjectKey) -> String {
        format!("{}:{}", key.kind(), key.name())
    }
}

impl TryFrom<String> for ObjectKey {
    type Error = Fault;

    fn try_from(text: String) -> Result<ObjectKey, Fault> {
        let malformed = || Fault::invalid(format!("`{text}` is not the name of an object"));
        let (kind, name) = text.split_once(':').ok_or_else(malformed)?;
        match kind {
            "namespace" => NamespaceName::parse(name).map(ObjectKey::Namespace),
            "schema" => SubjectName::parse(name).map(ObjectKey::Schema),
            "topic" => TopicName::parse(name).map(ObjectKey::Topic),
            "subscription" => {
                let (topic, name) = name.split_once(':').ok_or_else(malformed)?;
                let (topic, name) = (TopicName::parse(topic)?, SubscriptionName::parse(name)?);
                Ok(ObjectKey::Subscription(topic, name))
            }
            _ => Err(malformed()),
        }
    }
}

/// Fields of an object, by name.
pub type Fields = BTreeMap<String, Value>;

/// What a manifest declared last of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedRecord {
    /// The declared fields.
    pub fields: Fields,
    /// When.
    pub at: WallMs,
    /// Who applied it, as far as the broker knows.
    pub by: String,
}

/// One change by a person or a program, as far as the broker knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrailLine {
    /// When.
    pub at: WallMs,
    /// Who.
    pub by: String,
    /// The change, for example `set_failure_policy`.
    pub change: String,
    /// What was changed.
    pub object: ObjectKey,
}

/// The objects of one owner.
pub type Objects = Map<ObjectKey, AppliedRecord>;

/// What manifests have declared, and the trail.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Applied {
    owners: Map<String, Objects>,
    trail: Map<u64, TrailLine>,
    next_line: u64,
}

impl Applied {
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.next_line == 0
    }
}

impl Catalog {
    /// Who has applied manifests, and what of.
    pub fn owners(&self) -> impl Iterator<Item = (&str, &Objects)> {
        self.applied.owners.iter().map(|(owner, objects)| (owner.as_str(), objects))
    }

    /// What `owner` declared last of each object.
    pub fn applied_by(&self, owner: &str) -> Option<&Objects> {
        self.applied.owners.get(owner)
    }

    /// Whose manifest declares `key`.
    pub fn owner_of(&self, key: &ObjectKey) -> Option<&str> {
        self.owners().find(|(_, objects)| objects.contains_key(key)).map(|(owner, _)| owner)
    }

    /// The latest changes by people, oldest first.
    pub fn trail(&self) -> impl DoubleEndedIterator<Item = &TrailLine> {
        self.applied.trail.values()
    }

    pub(crate) fn remember(&mut self, line: TrailLine) {
        let number = self.applied.next_line;
        self.applied.next_line += 1;
        self.applied.trail.insert_mut(number, line);
        if let Some(old) = number.checked_sub(TRAIL_LEN_MAX as u64) {
            self.applied.trail.remove_mut(&old);
        }
    }

    pub(crate) fn set_applied(
        &mut self,
        owner: &str,
        key: &ObjectKey,
        record: AppliedRecord,
    ) -> Result<(), Fault> {
        let owners = &mut self.applied.owners;
        if !owners.contains_key(owner) {
            if owner.is_empty() || owner.len() > OWNER_LEN_MAX {
                return Err(Fault::invalid(format!(
                    "owner `{}` has {} bytes, not 1 to {OWNER_LEN_MAX}",
                    owner.escape_debug(),
                    owner.len()
                )));
            }
            if owners.size() >= OWNERS_MAX {
                return Err(Fault::exhausted(format!(
                    "{OWNERS_MAX} owners have applied manifests; use one of theirs"
                )));
            }
            owners.insert_mut(owner.to_owned(), Map::new_sync());
        }
        let objects = owners.get_mut(owner).expect("it is there by now");
        if !objects.contains_key(key) && objects.size() >= OBJECTS_MAX {
            return Err(Fault::exhausted(format!(
                "owner `{owner}` has declared {OBJECTS_MAX} objects; split its manifest"
            )));
        }
        objects.insert_mut(key.clone(), record);
        Ok(())
    }

    pub(crate) fn remove_applied(&mut self, owner: &str, key: &ObjectKey) {
        if let Some(objects) = self.applied.owners.get_mut(owner) {
            objects.remove_mut(key);
            if objects.is_empty() {
                self.applied.owners.remove_mut(owner);
            }
        }
    }
}
