//! Makes a topic: plain, partitioned, or one partition at the wish of a producer.

use super::{Outcome, Stamp, TopicRef};
use crate::catalog::{Catalog, SYSTEM_NAMESPACE, SchemaConfig, Topic};
use crate::fault::Fault;
use crate::ids::WallMs;
use crate::intent::{Delivery, Intent, PoisonPolicy, StreamSettings, WalSyncMode};
use crate::name::TopicName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "created plain",
    "created with partitions",
    "created one partition",
    "created one partition, with the schema of the others",
    "created with dead letters",
    "created, keeping the dead letters",
    "created as dead letters of its source",
    "reserved: precondition",
    "no namespace: not_found",
    "partition by name: invalid",
    "partition beyond the count: precondition",
    "partition number too high: invalid",
    "partition of a partition: invalid",
    "partition count: invalid",
    "name too long: invalid",
    "schema subject: invalid",
    "exists: already_exists",
    "plain and partitioned: already_exists",
    "dead letters not reliable: precondition",
    "dead letters partitioned: precondition",
    "created with dead letters elsewhere",
    "its own dead letters: invalid",
    "nothing fails: precondition",
];

/// Partitions of one topic.
pub const PARTITIONS_MAX: u32 = 1024;
/// Longest schema subject, in bytes.
pub const SCHEMA_SUBJECT_LEN_MAX: usize = 255;

/// Makes a topic. With an intent its settings are resolved here, once, and every partition gets
/// the same; where they want dead letters, the dead-letter topic is made along.
///
/// A name that ends in `-part-<n>` is one partition. Only a producer that makes what it misses
/// (`implicit`) may ask for that: the official clients make their partitions one by one. A
/// dead-letter topic that is made implicitly gets the settings that its source would have given it.
///
/// ```
/// # use danube_core::{Delivery, Intent, TopicName, WallMs, catalog::Catalog, change::*};
/// let jobs = TopicName::parse("/default/jobs")?;
/// let create = CreateTopic {
///     name: jobs.clone(),
///     partitions: Some(2),
///     intent: Some(Intent::TaskQueue),
///     delivery: Delivery::NonReliable, // the intent decides
///     schema_subject: None,
///     dead_letter_topic: None, // the intent decides
///     implicit: false,
/// };
/// let mut catalog = Catalog::default();
/// catalog.apply(&Command::new(create.into(), WallMs(5)))?;
/// let names: Vec<&str> = catalog.topics().map(|(name, _)| name.as_str()).collect();
/// assert_eq!(names, ["/default/jobs-dlq", "/default/jobs-part-0", "/default/jobs-part-1"]);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateTopic {
    /// Its name.
    pub name: TopicName,
    /// `None` for a plain topic, else 1 to [`PARTITIONS_MAX`].
    pub partitions: Option<u32>,
    /// What it is for.
    pub intent: Option<Intent>,
    /// How messages travel; ignored where an intent is given.
    pub delivery: Delivery,
    /// The schema subject that its messages belong to.
    pub schema_subject: Option<String>,
    /// Where its dead letters go, instead of where the intent sends them; made along when it does
    /// not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_topic: Option<TopicName>,
    /// Whether a producer asks, that found no such topic.
    pub implicit: bool,
}

impl CreateTopic {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        self.check_namespace(catalog)?;
        self.check_subject()?;
        self.check_partition(catalog)?;
        self.check_free(catalog)?;
        let settings = self.settings(catalog);
        let sibling = self.configured_sibling(catalog);
        let names = match self.partitions {
            None => vec![self.name.clone()],
            Some(count) => {
                let names: Result<_, _> =
                    (0..count).map(|index| self.name.with_partition(index)).collect();
                catalog.set_partition_count(self.name.clone(), count);
                names?
            }
        };
        let mut created = Vec::with_capacity(names.len());
        for name in names {
            let (settings, subject) = (settings.clone(), self.schema_subject.clone());
            created.push(catalog.insert_topic(&name, |id| {
                let mut topic = Topic::new(id, stamp.at, self.delivery, settings, subject);
                topic.overrides.dead_letter_topic.clone_from(&self.dead_letter_topic);
                if let Some(config) = sibling.clone() {
                    topic.set_schema_config(config, stamp.at, "its partitions");
                }
                topic
            })?);
        }
        let first = created.first().and_then(|made| catalog.topic(&made.name));
        let target = first.and_then(|topic| topic.dead_letter_topic(&self.name));
        let dead_letter = match target {
            Some(target) => make_dead_letters(catalog, &self.name, &target, stamp.at)?,
            None => None,
        };
        Ok(Outcome::TopicCreated { created, dead_letter })
    }

    fn check_namespace(&self, catalog: &Catalog) -> Result<(), Fault> {
        let (name, namespace) = (&self.name, self.name.namespace());
        if namespace.as_str() == SYSTEM_NAMESPACE {
            return Err(Fault::precondition(format!(
                "topic `{name}` cannot be created: namespace `{namespace}` is reserved; use another"
            )));
        }
        if catalog.namespace(&namespace).is_none() {
            return Err(Fault::not_found(format!(
                "topic `{name}` cannot be created: namespace `{namespace}` does not exist; \
                 create it first"
            )));
        }
        Ok(())
    }

    fn check_subject(&self) -> Result<(), Fault> {
        match &self.schema_subject {
            Some(subject) if subject.is_empty() || subject.len() > SCHEMA_SUBJECT_LEN_MAX => {
                Err(Fault::invalid(format!(
                    "topic `{}` cannot be created: its schema subject has {} bytes, not 1 to \
                     {SCHEMA_SUBJECT_LEN_MAX}",
                    self.name,
                    subject.len()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Checks the count of partitions, and a name that is one partition's.
    fn check_partition(&self, catalog: &Catalog) -> Result<(), Fault> {
        let name = &self.name;
        if let Some(count) = self.partitions
            && !(1..=PARTITIONS_MAX).contains(&count)
        {
            return Err(Fault::invalid(format!(
                "topic `{name}` cannot have `{count}` partitions; give 1 to {PARTITIONS_MAX}"
            )));
        }
        let Some((base, index)) = name.partition() else { return Ok(()) };
        if base.partition().is_some() {
            return Err(Fault::invalid(format!(
                "topic `{name}` would be a partition of the partition `{base}`; choose another name"
            )));
        }
        if !self.implicit || self.partitions.is_some() {
            return Err(Fault::invalid(format!(
                "topic `{name}` cannot be created: names ending in `-part-<number>` are for \
                 partitions; create `{base}` with a number of partitions, or choose another name"
            )));
        }
        match catalog.partition_count(&base) {
            Some(count) if index >= count => Err(Fault::precondition(format!(
                "topic `{name}` cannot be created: `{base}` has {count} partitions, numbered 0 to {}",
                count - 1
            ))),
            None if index >= PARTITIONS_MAX => Err(Fault::invalid(format!(
                "topic `{name}` cannot be created: a topic has at most {PARTITIONS_MAX} partitions"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that neither the name nor its other form, plain or partitioned, is taken.
    fn check_free(&self, catalog: &Catalog) -> Result<(), Fault> {
        let (name, base) = (&self.name, self.name.base());
        let exists = |why: String| Fault::already_exists(format!("topic `{name}` {why}"));
        if catalog.topic(name).is_some() {
            return Err(exists("exists".to_owned()));
        }
        if catalog.topic(&base).is_some() {
            return Err(exists(format!(
                "cannot be created: `{base}` exists and has no partitions; delete it first or \
                 choose another name"
            )));
        }
        // A partition may join partitions; anything else must be the first of its base.
        let is_partition = base != *name;
        let partitions = catalog.partitions(name);
        if is_partition || partitions.is_empty() {
            return Ok(());
        }
        let count = partitions.len();
        Err(if self.partitions.is_some() {
            exists(format!("exists, with {count} partitions"))
        } else {
            exists(format!("exists, with {count} partitions; it cannot also be a plain topic"))
        })
    }

    /// A partition that its producer makes gets subject and validation of those that are there. No
    /// topic has a history of that before level 3, so older logs are applied as ever.
    fn configured_sibling(&self, catalog: &Catalog) -> Option<SchemaConfig> {
        let (base, _) = self.name.partition()?;
        let first = catalog.partitions(&base).into_iter().next()?;
        let topic = catalog.topic(&first).filter(|topic| !topic.schema.history.is_empty())?;
        Some(topic.schema_config())
    }

    fn settings(&self, catalog: &Catalog) -> Option<StreamSettings> {
        match self.intent {
            Some(intent) => Some(intent.expand(&self.name)),
            None if self.implicit => {
                let siblings = || settings_of_siblings(catalog, &self.name);
                siblings().or_else(|| dead_letter_settings_of_source(catalog, &self.name))
            }
            None => None,
        }
    }
}

/// Makes `target` for the dead letters of `source`, which exists, unless it is there.
pub(super) fn make_dead_letters(
    catalog: &mut Catalog,
    source: &TopicName,
    target: &TopicName,
    at: WallMs,
) -> Result<Option<TopicRef>, Fault> {
    let refused = |why: &str| {
        Fault::precondition(format!(
            "topic `{source}` cannot send dead letters to `{target}`: {why}; name another topic for \
             them, or delete `{target}` first"
        ))
    };
    let sources = catalog.partitions(source);
    if sources.contains(target) || target == source {
        return Err(Fault::invalid(format!(
            "topic `{target}` cannot be its own dead-letter topic; name another"
        )));
    }
    let first = sources.first().and_then(|name| catalog.topic(name));
    if first.is_some_and(|topic| topic.delivery == Delivery::NonReliable) {
        return Err(Fault::precondition(format!(
            "topic `{source}` is NonReliable: nothing is delivered again there, so it has no dead \
             letters; leave the dead-letter topic out"
        )));
    }
    let mode = first.map(Topic::wal_sync_mode).unwrap_or(WalSyncMode::OsCacheFlush);
    match catalog.topic(target) {
        Some(topic) if topic.delivery == Delivery::Reliable => return Ok(None),
        Some(_) => return Err(refused("that is NonReliable and would lose them")),
        None if !catalog.partitions(target).is_empty() => {
            return Err(refused("that has partitions"));
        }
        None => {}
    }
    let namespace = target.namespace();
    if catalog.namespace(&namespace).is_none() {
        return Err(refused(&format!("namespace `{namespace}` does not exist")));
    }
    let settings = dead_letter_settings(target, mode);
    let make = |id| Topic::new(id, at, settings.delivery, Some(settings), None);
    catalog.insert_topic(target, make).map(Some)
}

/// What a dead-letter topic is made with: it keeps what its source kept, and blocks.
fn dead_letter_settings(name: &TopicName, wal_sync_mode: WalSyncMode) -> StreamSettings {
    StreamSettings {
        wal_sync_mode,
        poison_policy: PoisonPolicy::Block,
        dlq_suffix: None,
        ..Intent::EventStream.expand(name)
    }
}

/// The settings for `name` when it joins partitions that have some.
fn settings_of_siblings(catalog: &Catalog, name: &TopicName) -> Option<StreamSettings> {
    let (base, _) = name.partition()?;
    let first = catalog.partitions(&base).into_iter().next()?;
    catalog.topic(&first)?.settings.clone()
}

/// The settings for `name` when it is the dead-letter topic of a topic that wants one.
fn dead_letter_settings_of_source(catalog: &Catalog, name: &TopicName) -> Option<StreamSettings> {
    let source = TopicName::parse(name.as_str().strip_suffix("-dlq")?).ok()?;
    let first = catalog.partitions(&source).into_iter().next()?;
    let settings = catalog.topic(&first)?.settings.as_ref()?;
    (settings.dead_letter_topic(&first).as_ref() == Some(name))
        .then(|| dead_letter_settings(name, settings.wal_sync_mode))
}
