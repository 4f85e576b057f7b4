//! The catalog: which namespaces, topics and subscriptions exist, and how they are set up.
//!
//! A [`Catalog`] is a value. [`Catalog::apply`] moves it by one [`Command`], and nothing else
//! does; every broker that applies the same commands holds the same catalog. Who orders and keeps
//! the commands is left to the `meta` crate, who acts on them to the broker. Messages and cursors
//! are not here.
//!
//! Law: a command that is refused changes nothing, and applying reads neither clock nor chance:
//! times come from the command's stamp, numbers from the catalog's own counters.

mod applied;
mod document;
mod namespace;
mod overrides;
mod snapshot;
mod subject;
#[cfg(test)]
mod tests;
mod topic;

pub use applied::{
    AppliedRecord, Fields, OBJECT_KINDS, OBJECTS_MAX, OWNER_LEN_MAX, OWNERS_MAX, ObjectKey,
    Objects, TRAIL_LEN_MAX, TrailLine,
};
pub use namespace::Namespace;
pub use overrides::{LABELS_MAX, TOPIC_LABEL_LEN_MAX, TopicOverrides};
pub use subject::{
    DEFINITIONS_LEN_MAX, HISTORY_LEN_MAX, Promise, SUBJECTS_MAX, SchemaVersion, Subject,
    SubjectEvent, SubjectRecord, VERSIONS_MAX,
};
pub use topic::{
    CONSUMERS_MAX, Consumer, POLICIES_AHEAD_MAX, SchemaConfig, Subscription, Topic, TopicSchema,
    TopicSchemaRecord,
};

use crate::change::{Command, LEVEL, Outcome, TopicRef};
use crate::fault::{Fault, FaultKind};
use crate::ids::{Incarnation, SchemaId, TopicId, WallMs};
use crate::name::{NamespaceName, TopicName};
use crate::schema::SubjectName;
use applied::Applied;
use std::ops::Bound;

/// A persistent map: a clone shares everything until one of the two changes.
pub type Map<K, V> = rpds::RedBlackTreeMapSync<K, V>;

/// The namespace that is there without being made.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The namespace of the product's own topics.
pub const SYSTEM_NAMESPACE: &str = "system";

/// Everything the brokers have agreed upon. A clone costs a few reference counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    /// The highest level that any applied command needed.
    level: u32,
    next_topic: TopicId,
    incarnation: Incarnation,
    namespaces: Map<NamespaceName, Namespace>,
    /// Topics that were made with a number of partitions; the partitions are in `topics`.
    partitioned: Map<TopicName, u32>,
    topics: Map<TopicName, Topic>,
    /// Follows from `topics`.
    names: Map<TopicId, TopicName>,
    next_schema: SchemaId,
    subjects: Map<SubjectName, Subject>,
    /// Follows from `subjects`.
    schema_names: Map<SchemaId, SubjectName>,
    /// Bytes of all definitions; follows from `subjects`.
    definitions_len: u64,
    /// How often anything changed that a broker validates by.
    schema_changes: u64,
    applied: Applied,
}

impl Default for Catalog {
    /// The catalog of a new installation: the namespaces `default` and `system`, and no topics.
    fn default() -> Catalog {
        let mut namespaces = Map::new_sync();
        for name in [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE] {
            let name = NamespaceName::parse(name).expect("our own names are well formed");
            namespaces.insert_mut(name, Namespace::new(WallMs(0)));
        }
        Catalog {
            level: 1,
            next_topic: TopicId(1),
            incarnation: Incarnation(0),
            namespaces,
            partitioned: Map::new_sync(),
            topics: Map::new_sync(),
            names: Map::new_sync(),
            next_schema: SchemaId(1),
            subjects: Map::new_sync(),
            schema_names: Map::new_sync(),
            definitions_len: 0,
            schema_changes: 0,
            applied: Applied::default(),
        }
    }
}

impl Catalog {
    /// Takes one command.
    ///
    /// # Errors
    /// The refusal of the change, as its own documentation lists them, or
    /// [`FaultKind::Unsupported`] for a command of a level above [`LEVEL`]. The catalog is then
    /// what it was before.
    pub fn apply(&mut self, command: &Command) -> Result<Outcome, Fault> {
        if command.level > LEVEL {
            return Err(too_new("command", command.level));
        }
        let mut next = self.clone();
        let outcome = command.change.apply(&mut next, command.stamp)?;
        if let (Some(by), Some(object)) = (&command.by, command.change.object()) {
            let change = command.change.tag();
            next.remember(TrailLine { at: command.stamp.at, by: by.clone(), change, object });
        }
        next.level = next.level.max(command.level);
        *self = next;
        Ok(outcome)
    }

    /// The topic, or topic partition, called `name`.
    pub fn topic(&self, name: &TopicName) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// The topic, or topic partition, with the number `id`.
    pub fn topic_by_id(&self, id: TopicId) -> Option<(&TopicName, &Topic)> {
        let name = self.names.get(&id)?;
        self.topics.get_key_value(name)
    }

    /// All topics and topic partitions, by name.
    pub fn topics(&self) -> impl Iterator<Item = (&TopicName, &Topic)> {
        self.topics.iter()
    }

    /// The topics and topic partitions of `namespace`, by name.
    pub fn topics_in(
        &self,
        namespace: &NamespaceName,
    ) -> impl Iterator<Item = (&TopicName, &Topic)> {
        // `-` is the lowest character that a name may have.
        self.topics_with_prefix(format!("/{namespace}/"), "-")
    }

    /// The namespace called `name`.
    pub fn namespace(&self, name: &NamespaceName) -> Option<&Namespace> {
        self.namespaces.get(name)
    }

    /// All namespaces, by name.
    pub fn namespaces(&self) -> impl Iterator<Item = (&NamespaceName, &Namespace)> {
        self.namespaces.iter()
    }

    /// What `base` consists of: a plain topic or a single partition of itself, a partitioned topic
    /// of its partitions by number, an unknown one of nothing.
    pub fn partitions(&self, base: &TopicName) -> Vec<TopicName> {
        if self.topics.contains_key(base) {
            return vec![base.clone()];
        }
        let mut found: Vec<(u32, TopicName)> = self
            .topics_with_prefix(format!("{base}-part-"), "")
            .filter_map(|(name, _)| match name.partition() {
                Some((of, index)) if of == *base => Some((index, name.clone())),
                _ => None,
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// With how many partitions `base` was made; `None` for a plain topic, and for one whose
    /// partitions were made one by one by their producers.
    pub fn partition_count(&self, base: &TopicName) -> Option<u32> {
        self.partitioned.get(base).copied()
    }

    /// Topics that were made with a number of partitions, by name.
    pub fn partitioned(&self) -> impl Iterator<Item = (&TopicName, u32)> {
        self.partitioned.iter().map(|(name, count)| (name, *count))
    }

    /// The last process start that was granted; 0 before the first.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The subject called `name`, unless it has no version.
    pub fn subject(&self, name: &str) -> Option<&Subject> {
        self.subject_record(name).filter(|subject| !subject.versions.is_empty())
    }

    /// The subject called `name`, also when all its versions were deleted: its history is kept.
    pub fn subject_record(&self, name: &str) -> Option<&Subject> {
        self.subjects.get(name)
    }

    /// The subject with the number `id`, unless it has no version.
    pub fn subject_by_id(&self, id: SchemaId) -> Option<(&SubjectName, &Subject)> {
        let name = self.schema_names.get(&id)?;
        self.subjects.get_key_value(name).filter(|(_, subject)| !subject.versions.is_empty())
    }

    /// All subjects that have a version, by name.
    pub fn subjects(&self) -> impl Iterator<Item = (&SubjectName, &Subject)> {
        self.subjects.iter().filter(|(_, subject)| !subject.versions.is_empty())
    }

    /// Grows with every change that a broker validates by: a version, a topic's subject or policy.
    pub fn schema_changes(&self) -> u64 {
        self.schema_changes
    }

    /// The topics and topic partitions whose messages belong to `subject`, by name.
    pub fn topics_of_subject(&self, subject: &str) -> impl Iterator<Item = &TopicName> {
        let of = self
            .topics()
            .filter(move |(_, topic)| topic.schema_subject.as_deref() == Some(subject));
        of.map(|(name, _)| name)
    }

    /// Topics whose name begins with `prefix`, seeking to `prefix` + `seek`.
    fn topics_with_prefix(
        &self,
        prefix: String,
        seek: &str,
    ) -> impl Iterator<Item = (&TopicName, &Topic)> {
        // No topic can have a prefix that is too long for a name.
        let start = TopicName::parse(&format!("{prefix}{seek}")).ok();
        start
            .map(|start| self.topics.range((Bound::Included(start), Bound::Unbounded)))
            .into_iter()
            .flatten()
            .take_while(move |(name, _)| name.as_str().starts_with(&prefix))
    }
}

/// What the changes are made of.
impl Catalog {
    pub(crate) fn insert_namespace(&mut self, name: NamespaceName, namespace: Namespace) {
        self.namespaces.insert_mut(name, namespace);
    }

    pub(crate) fn namespace_mut(&mut self, name: &NamespaceName) -> Option<&mut Namespace> {
        self.namespaces.get_mut(name)
    }

    pub(crate) fn remove_namespace(&mut self, name: &NamespaceName) -> bool {
        self.namespaces.remove_mut(name)
    }

    pub(crate) fn set_partition_count(&mut self, base: TopicName, count: u32) {
        self.partitioned.insert_mut(base, count);
    }

    /// Adds a topic under the next free number.
    pub(crate) fn insert_topic(
        &mut self,
        name: &TopicName,
        make: impl FnOnce(TopicId) -> Topic,
    ) -> Result<TopicRef, Fault> {
        let id = self.next_topic;
        self.next_topic = TopicId(id.0.checked_add(1).ok_or_else(|| {
            Fault::new(
                FaultKind::Exhausted,
                format!("topic `{name}` cannot be created: all topic numbers have been used"),
            )
        })?);
        self.topics.insert_mut(name.clone(), make(id));
        self.names.insert_mut(id, name.clone());
        Ok(TopicRef { name: name.clone(), id })
    }

    /// Removes a topic, and the base record of that name; `None` when there was no such topic.
    pub(crate) fn remove_topic(&mut self, name: &TopicName) -> Option<TopicRef> {
        let id = self.topics.get(name)?.id;
        self.topics.remove_mut(name);
        self.names.remove_mut(&id);
        Some(TopicRef { name: name.clone(), id })
    }

    pub(crate) fn remove_partition_count(&mut self, base: &TopicName) {
        self.partitioned.remove_mut(base);
    }

    pub(crate) fn topic_mut(&mut self, name: &TopicName) -> Option<&mut Topic> {
        self.topics.get_mut(name)
    }

    /// Adds a subject under the next free number.
    pub(crate) fn insert_subject(&mut self, name: &SubjectName) -> Result<(), Fault> {
        if self.subjects.size() >= SUBJECTS_MAX && !self.forget_oldest_subject() {
            return Err(Fault::exhausted(format!(
                "schema subject `{name}` cannot be added: there are {SUBJECTS_MAX}; delete one that \
                 nobody uses"
            )));
        }
        let id = self.next_schema;
        self.next_schema = SchemaId(
            id.0.checked_add(1).ok_or_else(|| Fault::exhausted("all schema ids have been used"))?,
        );
        self.subjects.insert_mut(name.clone(), Subject::new(id));
        self.schema_names.insert_mut(id, name.clone());
        Ok(())
    }

    /// Forgets the subject that has had no version for the longest time; whether there was one.
    fn forget_oldest_subject(&mut self) -> bool {
        let empty = self.subjects.iter().filter(|(_, subject)| subject.versions.is_empty());
        let oldest = empty.min_by_key(|(_, subject)| subject.history.last().map(|line| line.at));
        let Some((name, id)) = oldest.map(|(name, subject)| (name.clone(), subject.id)) else {
            return false;
        };
        self.schema_names.remove_mut(&id);
        self.subjects.remove_mut(&name)
    }

    pub(crate) fn subject_mut(&mut self, name: &str) -> Option<&mut Subject> {
        self.subjects.get_mut(name)
    }

    /// Counts a definition that is added; refuses one that is too much.
    pub(crate) fn add_definition(&mut self, len: usize) -> Result<(), Fault> {
        let total = self.definitions_len.saturating_add(len as u64);
        if total > DEFINITIONS_LEN_MAX {
            return Err(Fault::exhausted(format!(
                "the registry has {} bytes of definitions and may have {DEFINITIONS_LEN_MAX}; \
                 delete versions that nobody uses",
                self.definitions_len
            )));
        }
        self.definitions_len = total;
        Ok(())
    }

    pub(crate) fn remove_definition(&mut self, len: usize) {
        self.definitions_len = self.definitions_len.saturating_sub(len as u64);
    }

    pub(crate) fn schema_changed(&mut self) {
        self.schema_changes += 1;
    }

    pub(crate) fn start_incarnation(&mut self) -> Result<Incarnation, Fault> {
        let next = self.incarnation.0.checked_add(1).ok_or_else(|| {
            Fault::new(FaultKind::Exhausted, "all process start numbers have been used")
        })?;
        self.incarnation = Incarnation(next);
        Ok(self.incarnation)
    }
}

/// The refusal of something that a later version wrote.
pub(crate) fn too_new(what: &str, level: u32) -> Fault {
    Fault::new(
        FaultKind::Unsupported,
        format!(
            "catalog {what} needs level {level}, this version of danube knows level {LEVEL}; \
             start a version that knows level {level}"
        ),
    )
}
