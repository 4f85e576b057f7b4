//! The changes that move the catalog: a closed list, one file each.
//!
//! A change is data that travels through the consensus log as JSON; its file says what it does and
//! every way it can end. To add one: a file here, a line in [`Change`] and in its three matches, a
//! golden line in `docs/formats/golden/catalog-changes.jsonl`, and, because older brokers cannot
//! take it, a new [`LEVEL`].
//!
//! Law: what one broker has applied every broker applies, with the same outcome. So a change reads
//! nothing but itself, its stamp and the catalog, and one that this version cannot read is never
//! skipped: it is an error that says which level it needs.

mod add_partitions;
mod adopt_schema_subject;
mod apply_steps;
mod attach_consumer;
mod configure_topic;
mod configure_topic_schema;
mod create_namespace;
mod create_subscription;
mod create_topic;
mod delete_namespace;
mod delete_schema;
mod delete_subscription;
mod delete_topic;
mod register_schema;
mod set_compatibility;
mod set_dispatch_config;
mod set_failure_policy;
mod set_intent;
mod set_namespace_policies;
mod set_validation_policy;
mod start_incarnation;
#[cfg(test)]
mod tests;

pub use add_partitions::AddPartitions;
pub use adopt_schema_subject::{AdoptSchemaSubject, other_subject};
pub use apply_steps::{APPLY_STEPS_MAX, ApplyStep, ApplySteps, StepResult};
pub use attach_consumer::{AttachConsumer, KEY_FILTER_LEN_MAX, KEY_FILTERS_MAX};
pub use configure_topic::ConfigureTopic;
pub use configure_topic_schema::ConfigureTopicSchema;
pub use create_namespace::CreateNamespace;
pub use create_subscription::CreateSubscription;
pub use create_topic::{CreateTopic, PARTITIONS_MAX, SCHEMA_SUBJECT_LEN_MAX};
pub use delete_namespace::DeleteNamespace;
pub use delete_schema::DeleteSchema;
pub use delete_subscription::DeleteSubscription;
pub use delete_topic::DeleteTopic;
pub use register_schema::{DESCRIPTION_LEN_MAX, LABEL_LEN_MAX, RegisterSchema, TAGS_MAX};
pub use set_compatibility::SetCompatibility;
pub use set_dispatch_config::{SetDispatchConfig, UNACKED_MESSAGES_MAX};
pub use set_failure_policy::SetFailurePolicy;
pub use set_intent::SetIntent;
pub use set_namespace_policies::SetNamespacePolicies;
pub use set_validation_policy::SetValidationPolicy;
pub use start_incarnation::StartIncarnation;

use crate::catalog::{Catalog, ObjectKey, Promise, too_new};
use crate::fault::Fault;
use crate::ids::{Incarnation, SchemaId, SubscriptionId, TopicId, WallMs};
use crate::name::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The highest format level that this version can apply.
pub const LEVEL: u32 = 4;

/// What the proposer stamped on a command, so that nobody reads a clock while applying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// When it was proposed.
    pub at: WallMs,
}

/// A change as it travels: with the level it needs and its stamp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The format level that a broker must know to apply this.
    pub level: u32,
    /// What the proposer stamped.
    pub stamp: Stamp,
    /// Who asks, as far as the broker knows, where the trail is to have it. Level 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What is to change.
    pub change: Change,
}

impl Command {
    /// `change`, proposed at `at`.
    pub fn new(change: Change, at: WallMs) -> Command {
        Command { level: change.level(), stamp: Stamp { at }, by: None, change }
    }

    /// The same, asked for by `by`, which the trail is to have.
    #[must_use]
    pub fn by(self, by: impl Into<String>) -> Command {
        Command { level: self.level.max(4), by: Some(by.into()), ..self }
    }

    /// The stored form.
    pub fn encode(&self) -> Value {
        serde_json::to_value(self).expect("plain data with text keys is a JSON value")
    }

    /// Reads back what [`Command::encode`] made.
    ///
    /// # Errors
    /// [`Unsupported`](crate::FaultKind::Unsupported) when a later version wrote it, saying which
    /// level it needs; [`Internal`](crate::FaultKind::Internal) when it is damaged. Either way the
    /// reader has to stop: what follows builds on it.
    pub fn decode(stored: &Value) -> Result<Command, Fault> {
        let level = stored.get("level").and_then(Value::as_u64).ok_or_else(|| {
            Fault::internal(format!("catalog command is damaged: no level in `{stored}`"))
        })?;
        let level = u32::try_from(level).unwrap_or(u32::MAX);
        if level > LEVEL {
            return Err(too_new("command", level));
        }
        Command::deserialize(stored).map_err(|error| {
            Fault::internal(format!(
                "catalog command of level {level} cannot be read by this version of danube, which \
                 knows level {LEVEL}: {error}; it is damaged or a version of the same level differs"
            ))
        })
    }
}

/// Everything that can change in the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Makes a namespace.
    CreateNamespace(CreateNamespace),
    /// Removes an empty namespace.
    DeleteNamespace(DeleteNamespace),
    /// Makes a topic, all partitions of it at once.
    CreateTopic(CreateTopic),
    /// Removes a topic with all its partitions.
    DeleteTopic(DeleteTopic),
    /// Makes a subscription where there is none, and remembers a consumer of it.
    AttachConsumer(AttachConsumer),
    /// Removes a subscription.
    DeleteSubscription(DeleteSubscription),
    /// Says what a subscription does with failures.
    SetFailurePolicy(SetFailurePolicy),
    /// Says how many deliveries of a subscription may be unsettled. Level 2.
    SetDispatchConfig(SetDispatchConfig),
    /// Numbers the start of a process.
    StartIncarnation(StartIncarnation),
    /// Adds a version to a schema subject. Level 3.
    RegisterSchema(RegisterSchema),
    /// Removes a version of a schema subject, or all. Level 3.
    DeleteSchema(DeleteSchema),
    /// Says what a schema subject promises about its versions. Level 3.
    SetCompatibility(SetCompatibility),
    /// Says which subject a topic has and how it validates. Level 3.
    ConfigureTopicSchema(ConfigureTopicSchema),
    /// Says how a topic validates. Level 3.
    SetValidationPolicy(SetValidationPolicy),
    /// Gives a topic the subject of its first producer. Level 3.
    AdoptSchemaSubject(AdoptSchemaSubject),
    /// Sets limits of a namespace's topics. Level 4.
    SetNamespacePolicies(SetNamespacePolicies),
    /// Sets what a topic has beside its intent. Level 4.
    ConfigureTopic(ConfigureTopic),
    /// Gives a topic another intent. Level 4.
    SetIntent(SetIntent),
    /// Adds partitions to a partitioned topic. Level 4.
    AddPartitions(AddPartitions),
    /// Makes a subscription before its first consumer. Level 4.
    CreateSubscription(CreateSubscription),
    /// Takes steps of a plan, each if its object is as it was planned for. Level 4.
    ApplySteps(ApplySteps),
}

impl Change {
    /// The format level that a broker must know to apply this.
    pub fn level(&self) -> u32 {
        match self {
            Change::CreateNamespace(_)
            | Change::DeleteNamespace(_)
            | Change::DeleteTopic(_)
            | Change::AttachConsumer(_)
            | Change::DeleteSubscription(_)
            | Change::SetFailurePolicy(_)
            | Change::StartIncarnation(_) => 1,
            Change::CreateTopic(change) if change.dead_letter_topic.is_none() => 1,
            Change::CreateTopic(_) => 4,
            Change::SetDispatchConfig(_) => 2,
            Change::RegisterSchema(_)
            | Change::DeleteSchema(_)
            | Change::SetCompatibility(_)
            | Change::ConfigureTopicSchema(_)
            | Change::SetValidationPolicy(_)
            | Change::AdoptSchemaSubject(_) => 3,
            Change::SetNamespacePolicies(_)
            | Change::ConfigureTopic(_)
            | Change::SetIntent(_)
            | Change::AddPartitions(_)
            | Change::CreateSubscription(_) => 4,
            Change::ApplySteps(change) => change.level(),
        }
    }

    /// Every way this change can end, as its file lists them.
    pub fn outcomes(&self) -> &'static [&'static str] {
        match self {
            Change::CreateNamespace(_) => create_namespace::OUTCOMES,
            Change::DeleteNamespace(_) => delete_namespace::OUTCOMES,
            Change::CreateTopic(_) => create_topic::OUTCOMES,
            Change::DeleteTopic(_) => delete_topic::OUTCOMES,
            Change::AttachConsumer(_) => attach_consumer::OUTCOMES,
            Change::DeleteSubscription(_) => delete_subscription::OUTCOMES,
            Change::SetFailurePolicy(_) => set_failure_policy::OUTCOMES,
            Change::SetDispatchConfig(_) => set_dispatch_config::OUTCOMES,
            Change::StartIncarnation(_) => start_incarnation::OUTCOMES,
            Change::RegisterSchema(_) => register_schema::OUTCOMES,
            Change::DeleteSchema(_) => delete_schema::OUTCOMES,
            Change::SetCompatibility(_) => set_compatibility::OUTCOMES,
            Change::ConfigureTopicSchema(_) => configure_topic_schema::OUTCOMES,
            Change::SetValidationPolicy(_) => set_validation_policy::OUTCOMES,
            Change::AdoptSchemaSubject(_) => adopt_schema_subject::OUTCOMES,
            Change::SetNamespacePolicies(_) => set_namespace_policies::OUTCOMES,
            Change::ConfigureTopic(_) => configure_topic::OUTCOMES,
            Change::SetIntent(_) => set_intent::OUTCOMES,
            Change::AddPartitions(_) => add_partitions::OUTCOMES,
            Change::CreateSubscription(_) => create_subscription::OUTCOMES,
            Change::ApplySteps(_) => apply_steps::OUTCOMES,
        }
    }

    /// The name of the change, as stored.
    pub fn tag(&self) -> String {
        let stored = serde_json::to_value(self).expect("plain data with text keys is a JSON value");
        let tags = stored.as_object().expect("a change is an object with one key");
        tags.keys().next().cloned().unwrap_or_default()
    }

    /// What it is about, where that is one thing that a person can change.
    pub fn object(&self) -> Option<ObjectKey> {
        let topic = |name: &TopicName| Some(ObjectKey::Topic(name.base()));
        let subscription = |topic: &TopicName, name: &SubscriptionName| {
            Some(ObjectKey::Subscription(topic.base(), name.clone()))
        };
        match self {
            Change::CreateNamespace(change) => Some(ObjectKey::Namespace(change.name.clone())),
            Change::DeleteNamespace(change) => Some(ObjectKey::Namespace(change.name.clone())),
            Change::SetNamespacePolicies(change) => {
                Some(ObjectKey::Namespace(change.namespace.clone()))
            }
            Change::CreateTopic(change) => topic(&change.name),
            Change::DeleteTopic(change) => topic(&change.name),
            Change::ConfigureTopic(change) => topic(&change.topic),
            Change::SetIntent(change) => topic(&change.topic),
            Change::AddPartitions(change) => topic(&change.topic),
            Change::ConfigureTopicSchema(change) => topic(&change.topic),
            Change::SetValidationPolicy(change) => topic(&change.topic),
            Change::AdoptSchemaSubject(change) => topic(&change.topic),
            Change::DeleteSubscription(change) => subscription(&change.topic, &change.subscription),
            Change::SetFailurePolicy(change) => subscription(&change.topic, &change.subscription),
            Change::SetDispatchConfig(change) => subscription(&change.topic, &change.subscription),
            Change::CreateSubscription(change) => subscription(&change.topic, &change.subscription),
            Change::RegisterSchema(change) => Some(ObjectKey::Schema(change.subject.clone())),
            Change::DeleteSchema(change) => Some(ObjectKey::Schema(change.subject.clone())),
            Change::SetCompatibility(change) => Some(ObjectKey::Schema(change.subject.clone())),
            Change::AttachConsumer(_) | Change::StartIncarnation(_) | Change::ApplySteps(_) => None,
        }
    }

    /// Makes the change in `catalog`, which may be left half changed when it is refused; the
    /// caller then throws it away.
    pub(crate) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        match self {
            Change::CreateNamespace(change) => change.apply(catalog, stamp),
            Change::DeleteNamespace(change) => change.apply(catalog, stamp),
            Change::CreateTopic(change) => change.apply(catalog, stamp),
            Change::DeleteTopic(change) => change.apply(catalog, stamp),
            Change::AttachConsumer(change) => change.apply(catalog, stamp),
            Change::DeleteSubscription(change) => change.apply(catalog, stamp),
            Change::SetFailurePolicy(change) => change.apply(catalog, stamp),
            Change::SetDispatchConfig(change) => change.apply(catalog, stamp),
            Change::StartIncarnation(change) => change.apply(catalog, stamp),
            Change::RegisterSchema(change) => change.apply(catalog, stamp),
            Change::DeleteSchema(change) => change.apply(catalog, stamp),
            Change::SetCompatibility(change) => change.apply(catalog, stamp),
            Change::ConfigureTopicSchema(change) => change.apply(catalog, stamp),
            Change::SetValidationPolicy(change) => change.apply(catalog, stamp),
            Change::AdoptSchemaSubject(change) => change.apply(catalog, stamp),
            Change::SetNamespacePolicies(change) => change.apply(catalog, stamp),
            Change::ConfigureTopic(change) => change.apply(catalog, stamp),
            Change::SetIntent(change) => change.apply(catalog, stamp),
            Change::AddPartitions(change) => change.apply(catalog, stamp),
            Change::CreateSubscription(change) => change.apply(catalog, stamp),
            Change::ApplySteps(change) => change.apply(catalog, stamp),
        }
    }
}

macro_rules! change_from {
    ($($change:ident),+) => {
        $(impl From<$change> for Change {
            fn from(change: $change) -> Change {
                Change::$change(change)
            }
        })+
    };
}

change_from!(
    CreateNamespace,
    DeleteNamespace,
    CreateTopic,
    DeleteTopic,
    AttachConsumer,
    DeleteSubscription,
    SetFailurePolicy,
    SetDispatchConfig,
    StartIncarnation,
    RegisterSchema,
    DeleteSchema,
    SetCompatibility,
    ConfigureTopicSchema,
    SetValidationPolicy,
    AdoptSchemaSubject,
    SetNamespacePolicies,
    ConfigureTopic,
    SetIntent,
    AddPartitions,
    CreateSubscription,
    ApplySteps
);

/// A topic or topic partition by name and number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TopicRef {
    /// Its name.
    pub name: TopicName,
    /// Its number.
    pub id: TopicId,
}

/// What a change that was taken has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The namespace is there.
    NamespaceCreated,
    /// The namespace is gone.
    NamespaceDeleted,
    /// The topic is there.
    TopicCreated {
        /// The topic, or its partitions in order.
        created: Vec<TopicRef>,
        /// The dead-letter topic, when it had to be made as well.
        dead_letter: Option<TopicRef>,
    },
    /// The topic is gone.
    TopicDeleted {
        /// The topic, or its partitions in order.
        deleted: Vec<TopicRef>,
    },
    /// The consumer is known to the subscription.
    ConsumerAttached {
        /// The subscription's number.
        subscription: SubscriptionId,
        /// What had to change for that.
        attachment: Attachment,
    },
    /// The subscription is gone.
    SubscriptionDeleted {
        /// The topic, or those of its partitions that had the subscription, each with the number
        /// that the subscription had there.
        deleted: Vec<(TopicRef, SubscriptionId)>,
    },
    /// The failure policy is set on the topic, or on all its partitions.
    FailurePolicySet {
        /// The topic, or its partitions in order.
        topics: Vec<TopicRef>,
    },
    /// The dispatch config is set on the topic, or on those of its partitions that have the
    /// subscription.
    DispatchConfigSet {
        /// The topic, or these partitions in order.
        topics: Vec<TopicRef>,
    },
    /// The namespace has these limits.
    NamespacePoliciesSet,
    /// The topic, or its partitions, are set up as asked.
    TopicConfigured {
        /// The topic, or its partitions in order.
        topics: Vec<TopicRef>,
        /// Those that had to be made, partitions and dead letters.
        created: Vec<TopicRef>,
    },
    /// The subscription is there.
    SubscriptionCreated {
        /// The topic, or those of its partitions that did not have it.
        topics: Vec<TopicRef>,
    },
    /// The steps were looked at, in order.
    StepsApplied {
        /// What became of each.
        results: Vec<StepResult>,
    },
    /// The process start has a number.
    IncarnationStarted {
        /// The number.
        incarnation: Incarnation,
    },
    /// The definition is a version of its subject.
    SchemaRegistered {
        /// The subject's number.
        id: SchemaId,
        /// The version.
        version: u32,
        /// Whether it was not there before.
        is_new: bool,
    },
    /// These versions are gone.
    SchemaDeleted {
        /// Their numbers.
        versions: Vec<u32>,
    },
    /// The subject promises this.
    CompatibilitySet {
        /// Mode and levels.
        promise: Promise,
    },
    /// The topic, or these partitions of it, have the subject and the policy.
    TopicSchemaSet {
        /// In order.
        topics: Vec<TopicRef>,
    },
}

/// What [`AttachConsumer`] had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// The subscription did not exist.
    SubscriptionCreated,
    /// The subscription existed; the consumer, its filters or the kind were new.
    Updated,
    /// Everything was so already.
    Unchanged,
}
