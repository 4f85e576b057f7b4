//! What the catalog knows of a topic, its subscriptions and their consumers.
//!
//! These are records. How far a subscription has come is in the log, who is connected is with the
//! broker.
//!
//! Law: a subscription's number is never given twice within its topic, and everything that a
//! client can make grow has a bound here.

use super::subject::keep_latest;
use super::{Map, TopicOverrides};
use crate::fault::{Fault, FaultKind};
use crate::ids::{Epoch, Offset, SubscriptionId, TopicId, WallMs};
use crate::intent::{Delivery, StreamSettings, WalSyncMode};
use crate::name::{ConsumerName, SubscriptionName, TopicName};
use crate::policy::{FailurePolicy, SubscriptionType};
use crate::schema::ValidationPolicy;
use serde::{Deserialize, Serialize};

/// Consumers remembered per subscription; the one that attached longest ago gives way.
pub const CONSUMERS_MAX: usize = 256;
/// Failure policies of one topic that were set for subscriptions that do not exist yet.
pub const POLICIES_AHEAD_MAX: usize = 256;

/// A topic or topic partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Its number, never given to another.
    pub id: TopicId,
    /// Grows with each assignment to a broker.
    pub epoch: Epoch,
    /// When it was made.
    pub created_at: WallMs,
    /// How messages travel.
    pub delivery: Delivery,
    /// The expanded intent, if it was made with one.
    pub settings: Option<StreamSettings>,
    /// The schema subject that its messages belong to.
    pub schema_subject: Option<String>,
    /// What it does with messages that do not fit their schema.
    #[serde(default, skip_serializing_if = "TopicSchema::is_default")]
    pub schema: TopicSchema,
    /// What was set for it beside its intent.
    #[serde(default, skip_serializing_if = "TopicOverrides::is_empty")]
    pub overrides: TopicOverrides,
    /// Its subscriptions.
    pub subscriptions: Map<SubscriptionName, Subscription>,
    /// Failure policies that wait for their subscription.
    pub policies_ahead: Map<SubscriptionName, FailurePolicy>,
    /// The number of the next subscription.
    pub(crate) next_subscription: SubscriptionId,
}

impl Topic {
    pub(crate) fn new(
        id: TopicId,
        created_at: WallMs,
        delivery: Delivery,
        settings: Option<StreamSettings>,
        schema_subject: Option<String>,
    ) -> Topic {
        Topic {
            id,
            epoch: Epoch(1),
            created_at,
            delivery: settings.as_ref().map_or(delivery, |settings| settings.delivery),
            settings,
            schema_subject,
            schema: TopicSchema::default(),
            overrides: TopicOverrides::default(),
            subscriptions: Map::new_sync(),
            policies_ahead: Map::new_sync(),
            next_subscription: SubscriptionId(1),
        }
    }

    /// What an acknowledged publish survives: what was set for the topic, else the intent's choice,
    /// else `os_cache_flush`.
    pub fn wal_sync_mode(&self) -> WalSyncMode {
        let intent = || self.settings.as_ref().map(|settings| settings.wal_sync_mode);
        self.overrides.wal_sync_mode.or_else(intent).unwrap_or(WalSyncMode::OsCacheFlush)
    }

    /// The policy that a new subscription gets: one that was set ahead, else the intent's, else
    /// the fallback; `None` where delivery is `NonReliable`.
    pub fn inherited_policy(
        &self,
        topic: &TopicName,
        subscription: &SubscriptionName,
    ) -> Option<FailurePolicy> {
        let own = self.own_policy(topic)?;
        Some(self.policies_ahead.get(subscription).cloned().unwrap_or(own))
    }

    /// The policy of its subscriptions where nobody sets another: the intent's, else the fallback;
    /// `None` where delivery is `NonReliable`.
    pub fn own_policy(&self, topic: &TopicName) -> Option<FailurePolicy> {
        let policy = match &self.settings {
            _ if self.delivery == Delivery::NonReliable => None,
            Some(settings) => settings.failure_policy(topic),
            None => Some(FailurePolicy::default()),
        };
        policy.map(|policy| FailurePolicy {
            dead_letter_topic: self.dead_letter_topic(topic),
            ..policy
        })
    }

    /// Where the dead letters of `topic` go unless a subscription sends them elsewhere: what was set
    /// for the topic, else the intent's choice.
    pub fn dead_letter_topic(&self, topic: &TopicName) -> Option<TopicName> {
        let intent = || self.settings.as_ref()?.dead_letter_topic(topic);
        self.overrides.dead_letter_topic.clone().or_else(intent)
    }

    /// The policy of `subscription` as it is, or as it was set ahead.
    pub fn failure_policy(&self, subscription: &SubscriptionName) -> Option<&FailurePolicy> {
        match self.subscriptions.get(subscription) {
            Some(existing) => existing.failure_policy.as_ref(),
            None => self.policies_ahead.get(subscription),
        }
    }

    /// Whether attaching this consumer would change nothing, so that nobody need be asked.
    pub fn knows_consumer(
        &self,
        subscription: &SubscriptionName,
        kind: SubscriptionType,
        consumer: &ConsumerName,
        key_filters: &[String],
    ) -> bool {
        self.subscriptions.get(subscription).is_some_and(|subscription| {
            subscription.kind == kind
                && subscription
                    .consumers
                    .get(consumer)
                    .is_some_and(|known| known.key_filters == key_filters)
        })
    }

    /// Subject and validation, as one value.
    pub fn schema_config(&self) -> SchemaConfig {
        SchemaConfig {
            subject: self.schema_subject.clone(),
            validation_policy: self.schema.validation_policy,
            enable_payload_validation: self.schema.enable_payload_validation,
        }
    }

    /// Sets subject and validation, and remembers who did; whether that changed anything.
    pub(crate) fn set_schema_config(&mut self, to: SchemaConfig, at: WallMs, by: &str) -> bool {
        let from = self.schema_config();
        if from == to {
            return false;
        }
        self.schema_subject.clone_from(&to.subject);
        self.schema.validation_policy = to.validation_policy;
        self.schema.enable_payload_validation = to.enable_payload_validation;
        let line = TopicSchemaRecord { at, by: by.into(), from, to };
        keep_latest(&mut self.schema.history, line);
        true
    }

    /// The number for a new subscription.
    pub(crate) fn take_subscription_id(&mut self) -> Result<SubscriptionId, Fault> {
        let id = self.next_subscription;
        self.next_subscription = SubscriptionId(id.0.checked_add(1).ok_or_else(|| {
            Fault::new(FaultKind::Exhausted, "all subscription numbers of the topic have been used")
        })?);
        Ok(id)
    }
}

/// How a topic validates, and who said so.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicSchema {
    /// What becomes of a message that does not fit.
    pub validation_policy: ValidationPolicy,
    /// Whether payloads are decoded and checked, not only their schema ids.
    pub enable_payload_validation: bool,
    /// Who changed the subject or this, the latest [`HISTORY_LEN_MAX`](super::HISTORY_LEN_MAX) of it.
    pub history: Vec<TopicSchemaRecord>,
}

impl TopicSchema {
    fn is_default(&self) -> bool {
        *self == TopicSchema::default()
    }
}

/// The document at `/topics/{ns}/{topic}/schema_config`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaConfig {
    /// The subject that messages belong to.
    pub subject: Option<String>,
    /// What becomes of a message that does not fit.
    pub validation_policy: ValidationPolicy,
    /// Whether payloads are decoded and checked, not only their schema ids.
    pub enable_payload_validation: bool,
}

/// One line of a topic's schema history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicSchemaRecord {
    /// When.
    pub at: WallMs,
    /// Who, as far as the broker knows.
    pub by: String,
    /// What it was.
    pub from: SchemaConfig,
    /// What it is.
    pub to: SchemaConfig,
}

/// A subscription of a topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// Its number within the topic, never given to another.
    pub id: SubscriptionId,
    /// Who receives a message.
    pub kind: SubscriptionType,
    /// Where it began: the first offset it is to see.
    pub start: Offset,
    /// When it was made.
    pub created_at: WallMs,
    /// What it does with failures; `None` where nothing can fail.
    pub failure_policy: Option<FailurePolicy>,
    /// How many unsettled deliveries it may have; `None` for the broker's default.
    pub max_unacked_messages: Option<u32>,
    /// The consumers that attached, the latest [`CONSUMERS_MAX`] of them.
    pub consumers: Map<ConsumerName, Consumer>,
}

impl Subscription {
    /// Remembers a consumer. Where that is one too many, the one that attached longest ago goes.
    pub(crate) fn remember(&mut self, name: ConsumerName, consumer: Consumer) {
        if !self.consumers.contains_key(&name) && self.consumers.size() >= CONSUMERS_MAX {
            let oldest = self.consumers.iter().min_by_key(|(_, known)| known.attached_at);
            let oldest = oldest.map(|(name, _)| name.clone()).expect("the map is full");
            self.consumers.remove_mut(&oldest);
        }
        self.consumers.insert_mut(name, consumer);
    }
}

/// A consumer that attached to a subscription at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// Which keys it wants; none means all.
    pub key_filters: Vec<String>,
    /// When it attached first, or with other filters.
    pub attached_at: WallMs,
}
