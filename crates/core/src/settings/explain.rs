//! Every effective setting of a topic in words: value, origin, and what follows from it.
//!
//! Law: nothing is decided here; each line is read from the value that the broker acts by.

use super::{BrokerDefaults, LIMITS, Origin, Setting, TopicSettings};
use crate::catalog::{Catalog, Subscription, Topic};
use crate::intent::{Delivery, PoisonPolicy, WalSyncMode};
use crate::name::{SubscriptionName, TopicName};
use crate::policy::{Backoff, FailurePolicy, PolicySource};

/// One setting as it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The subscription it belongs to; `None` for the topic's own.
    pub subscription: Option<SubscriptionName>,
    /// Its name, for example `wal_sync_mode`.
    pub name: &'static str,
    /// What holds, for example `fsync_batch`, `no limit` or `30000`.
    pub value: String,
    /// What the value counts; empty for words.
    pub unit: &'static str,
    /// Which layer says so.
    pub origin: Origin,
}

/// Everything that holds for a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The settings: the topic's own, then those of each subscription by name.
    pub settings: Vec<Explained>,
    /// What a publish that was acknowledged survives, in a sentence.
    pub publish: String,
    /// What an ack that was answered survives, in a sentence.
    pub ack: String,
    /// By subscription: what becomes of a message that fails, in a sentence.
    pub failures: Vec<(SubscriptionName, String)>,
}

/// Explains the topic `name`.
pub fn explain(
    catalog: &Catalog,
    name: &TopicName,
    topic: &Topic,
    broker: &BrokerDefaults,
) -> Explanation {
    let settings = TopicSettings::resolve(catalog, name, topic, broker);
    let mut lines = topic_lines(&settings, name, topic);
    let mut failures = Vec::new();
    for (subscription, record) in topic.subscriptions.iter() {
        lines.extend(window_lines(subscription, record, broker));
        if let Some(policy) = &record.failure_policy {
            lines.extend(policy_lines(subscription, policy, name, topic));
            failures.push((subscription.clone(), failure_sentence(policy)));
        }
    }
    for (subscription, policy) in topic.policies_ahead.iter() {
        lines.extend(policy_lines(subscription, policy, name, topic));
        failures.push((subscription.clone(), failure_sentence(policy)));
    }
    let (publish, ack) = survival(settings.delivery.value, settings.wal_sync_mode.value);
    Explanation { settings: lines, publish, ack, failures }
}

fn topic_lines(settings: &TopicSettings, name: &TopicName, topic: &Topic) -> Vec<Explained> {
    let line = |name: &'static str, value: String, unit, origin| Explained {
        subscription: None,
        name,
        value,
        unit,
        origin,
    };
    let limited = |setting: Setting<u64>, none: &str| match setting.value {
        0 => none.to_owned(),
        value => value.to_string(),
    };
    let Setting { value: sync, origin: sync_origin } = settings.wal_sync_mode;
    let mut lines = vec![line(
        "delivery",
        settings.delivery.value.as_str().to_owned(),
        "",
        settings.delivery.origin,
    )];
    if let Some(profile) = &topic.settings {
        lines.push(line("intent", profile.intent.to_string(), "", Origin::Override));
    }
    if settings.delivery.value == Delivery::Reliable {
        let (age, size) = (settings.retention_time_ms, settings.retention_bytes);
        lines.push(line("wal_sync_mode", sync.as_str().to_owned(), "", sync_origin));
        lines.push(line("retention_time_ms", limited(age, "for ever"), "ms", age.origin));
        lines.push(line("retention_bytes", limited(size, "no limit"), "bytes", size.origin));
        if let Some(target) = topic.dead_letter_topic(name) {
            let is_set = topic.overrides.dead_letter_topic.is_some();
            let origin = if is_set { Origin::Override } else { Origin::Intent };
            lines.push(line("dead_letter_topic", target.to_string(), "", origin));
        }
        let Setting { value, origin } = settings.drop_finished;
        lines.push(line("drop_finished", value.to_string(), "", origin));
    }
    for limit in LIMITS {
        let Setting { value, origin } = settings.limit(limit);
        let shown = limited(Setting { value: value.into(), origin }, "no limit");
        lines.push(line(limit.as_str(), shown, limit.unit(), origin));
    }
    if let Some(subject) = &topic.schema_subject {
        lines.push(line("schema_subject", subject.clone(), "", Origin::Override));
    }
    let is_set = topic.schema.validation_policy != crate::schema::ValidationPolicy::default();
    let origin = if is_set { Origin::Override } else { Origin::BrokerDefault };
    lines.push(line("validation_policy", topic.schema.validation_policy.to_string(), "", origin));
    let checks = topic.schema.enable_payload_validation;
    let origin = if checks { Origin::Override } else { Origin::BrokerDefault };
    lines.push(line("payload_validation", checks.to_string(), "", origin));
    lines
}

fn window_lines(
    subscription: &SubscriptionName,
    record: &Subscription,
    broker: &BrokerDefaults,
) -> Vec<Explained> {
    let line = |name, value: u32, origin| Explained {
        subscription: Some(subscription.clone()),
        name,
        value: value.to_string(),
        unit: "messages",
        origin,
    };
    match record.max_unacked_messages {
        Some(own) => vec![line("max_unacked_messages", own, Origin::Override)],
        None => vec![
            line("max_unacked_messages", broker.max_unacked_messages, Origin::BrokerDefault),
            line(
                "max_unacked_messages_native",
                broker.max_unacked_messages_native,
                Origin::BrokerDefault,
            ),
        ],
    }
}

fn policy_lines(
    subscription: &SubscriptionName,
    policy: &FailurePolicy,
    name: &TopicName,
    topic: &Topic,
) -> Vec<Explained> {
    let inherited = topic.own_policy(name).unwrap_or_default();
    let mut sources = policy.sources(&inherited, topic.settings.is_some());
    if topic.overrides.dead_letter_topic.is_some() {
        sources.dead_letter_topic = PolicySource::Override;
    }
    let line = |name, value: String, unit, source| Explained {
        subscription: Some(subscription.clone()),
        name,
        value,
        unit,
        origin: match source {
            PolicySource::Fallback => Origin::BrokerDefault,
            PolicySource::Intent => Origin::Intent,
            PolicySource::Override => Origin::Override,
        },
    };
    let target = policy.dead_letter_topic.as_ref();
    vec![
        line(
            "max_redelivery_count",
            policy.max_redelivery_count.to_string(),
            "re-deliveries",
            sources.max_redelivery_count,
        ),
        line("ack_timeout_ms", policy.ack_timeout_ms.to_string(), "ms", sources.ack_timeout_ms),
        line(
            "base_redelivery_delay_ms",
            policy.base_redelivery_delay_ms.to_string(),
            "ms",
            sources.base_redelivery_delay_ms,
        ),
        line(
            "max_redelivery_delay_ms",
            policy.max_redelivery_delay_ms.to_string(),
            "ms",
            sources.max_redelivery_delay_ms,
        ),
        line(
            "backoff_strategy",
            policy.backoff_strategy.as_str().to_owned(),
            "",
            sources.backoff_strategy,
        ),
        line(
            "dead_letter_topic",
            target.map_or_else(|| "none".to_owned(), ToString::to_string),
            "",
            sources.dead_letter_topic,
        ),
        line("poison_policy", policy.poison_policy.as_str().to_owned(), "", sources.poison_policy),
    ]
}

/// What an acknowledged publish and an answered ack survive.
fn survival(delivery: Delivery, mode: WalSyncMode) -> (String, String) {
    if delivery == Delivery::NonReliable {
        return (
            "an acknowledged publish was offered to whoever listened at that moment; it is kept in \
             memory only, is never delivered again, and survives nothing"
                .to_owned(),
            "an ack has no effect: nothing is delivered again".to_owned(),
        );
    }
    (
        format!("an acknowledged publish survives {}", mode.survives()),
        format!("an answered ack survives {}", mode.survives()),
    )
}

fn failure_sentence(policy: &FailurePolicy) -> String {
    let FailurePolicy { max_redelivery_count: count, base_redelivery_delay_ms: base, .. } = policy;
    let growth = match policy.backoff_strategy {
        Backoff::Fixed => format!("each after {base} ms"),
        Backoff::Exponential => format!(
            "the first after {base} ms, each after twice the time before, at most {} ms",
            policy.max_redelivery_delay_ms
        ),
    };
    let end = match (policy.poison_policy, &policy.dead_letter_topic) {
        (PoisonPolicy::DeadLetter, Some(target)) => {
            format!("a copy goes to `{target}` and the cursor moves on")
        }
        (PoisonPolicy::Drop | PoisonPolicy::None, _) => "it counts as done and is lost".to_owned(),
        (PoisonPolicy::Block | PoisonPolicy::DeadLetter, _) => {
            "delivery halts on it (KeyShared: on its key) until an ack, another policy or a seek"
                .to_owned()
        }
    };
    let timeout = policy.ack_timeout_ms;
    match count {
        0 => format!(
            "a message that is nacked, or not acked within {timeout} ms, fails for good: {end}"
        ),
        _ => format!(
            "a message that is nacked, or not acked within {timeout} ms, is delivered again up to \
             {count} times, {growth}; then {end}"
        ),
    }
}
