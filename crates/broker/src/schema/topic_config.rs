//! Which subject a topic has and how it validates: set by an administrator or by the first
//! producer, shown to everybody.

use super::caller::Caller;
use crate::clock::Clock;
use crate::context::Context;
use danube_core::catalog::{Catalog, Subject, Topic};
use danube_core::change::{
    AdoptSchemaSubject, ConfigureTopicSchema, SetValidationPolicy, other_subject,
};
use danube_core::name::ProducerName;
use danube_core::{Fault, SubjectName, TopicName};
use danube_wire::proto::danube::schema_reference::VersionRef;
use danube_wire::proto::danube_schema as proto;
use std::sync::Arc;

pub(super) async fn configure(
    context: &Arc<Context>,
    caller: Caller,
    request: proto::ConfigureTopicSchemaRequest,
) -> Result<proto::ConfigureTopicSchemaResponse, Fault> {
    let change = ConfigureTopicSchema {
        topic: TopicName::parse(&request.topic_name)?,
        subject: SubjectName::parse(&request.schema_subject)?,
        validation_policy: request.validation_policy.parse()?,
        enable_payload_validation: request.enable_payload_validation,
        by: caller.by(""),
    };
    let message = format!(
        "topic `{}`: schema subject `{}`, validation policy {}, payload validation {}",
        change.topic,
        change.subject,
        change.validation_policy,
        on_or_off(change.enable_payload_validation)
    );
    context.meta.propose(change, Clock::wall()).await?;
    super::refresh(context);
    tracing::info!("{message}");
    Ok(proto::ConfigureTopicSchemaResponse { success: true, message })
}

pub(super) async fn set_policy(
    context: &Arc<Context>,
    caller: Caller,
    request: proto::UpdateTopicValidationPolicyRequest,
) -> Result<proto::UpdateTopicValidationPolicyResponse, Fault> {
    let change = SetValidationPolicy {
        topic: TopicName::parse(&request.topic_name)?,
        validation_policy: request.validation_policy.parse()?,
        enable_payload_validation: request.enable_payload_validation,
        by: caller.by(""),
    };
    let message = format!(
        "topic `{}`: validation policy {}, payload validation {}",
        change.topic,
        change.validation_policy,
        on_or_off(change.enable_payload_validation)
    );
    context.meta.propose(change, Clock::wall()).await?;
    super::refresh(context);
    tracing::info!("{message}");
    Ok(proto::UpdateTopicValidationPolicyResponse { success: true, message })
}

fn on_or_off(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

pub(super) async fn get(
    context: &Context,
    request: proto::GetTopicSchemaConfigRequest,
) -> Result<proto::GetTopicSchemaConfigResponse, Fault> {
    let name = TopicName::parse(&request.topic_name)?;
    let view = context.meta.view();
    let partitions = crate::admin::partitions(context, &name)?;
    let topics = partitions.iter().filter_map(|partition| view.topic(partition));
    let found = topics.filter_map(|topic| Some((topic, topic.schema_subject.as_deref()?))).next();
    let (topic, subject) = found.ok_or_else(|| {
        Fault::not_found(format!(
            "topic `{name}` has no schema subject; give it one with `topics configure-schema`"
        ))
    })?;
    Ok(proto::GetTopicSchemaConfigResponse {
        schema_subject: subject.to_owned(),
        validation_policy: topic.schema.validation_policy.to_string(),
        enable_payload_validation: topic.schema.enable_payload_validation,
        schema_id: view.subject(subject).map_or(0, |known| known.id.0),
    })
}

/// The subject of `topic`, where it is registered.
pub(crate) fn describe<'a>(catalog: &'a Catalog, topic: &Topic) -> Option<&'a Subject> {
    catalog.subject(topic.schema_subject.as_deref()?)
}

/// Which version of a subject a producer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The latest.
    Latest,
    /// This one.
    Pinned(u32),
    /// The latest, if it is no older than this one.
    AtLeast(u32),
}

impl From<Option<VersionRef>> for Wanted {
    fn from(wire: Option<VersionRef>) -> Wanted {
        match wire {
            Some(VersionRef::PinnedVersion(version)) => Wanted::Pinned(version),
            Some(VersionRef::MinVersion(version)) => Wanted::AtLeast(version),
            Some(VersionRef::UseLatest(_)) | None => Wanted::Latest,
        }
    }
}

/// The version that a producer follows: what its messages carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) subject: SubjectName,
    pub(crate) schema_id: u64,
    pub(crate) version: u32,
}

/// Finds the version that a producer of `topic` wants. Nothing is changed, so that a producer that
/// is refused leaves nothing behind; [`adopt`] follows once the topic is there.
///
/// # Errors
/// `Precondition` when the subject or version is not registered, or the topic has another subject.
pub(crate) fn choose(
    context: &Context,
    topic: &TopicName,
    subject: &str,
    wanted: Wanted,
) -> Result<Choice, Fault> {
    let subject = SubjectName::parse(subject)?;
    let view = context.meta.view();
    let known = view.subject(subject.as_str()).ok_or_else(|| {
        Fault::precondition(format!(
            "schema subject `{subject}` not found; register a version of it before the producer of \
             topic `{topic}`"
        ))
    })?;
    let (latest, _) = known.latest().expect("a subject that is shown has a version");
    let missing = |what: String| {
        Fault::precondition(format!(
            "schema subject `{subject}`: {what} not found; its latest version is {latest}"
        ))
    };
    let version = match wanted {
        Wanted::Pinned(version) if !known.versions.contains_key(&version) => {
            return Err(missing(format!("version {version}")));
        }
        Wanted::AtLeast(version) if version > latest => {
            return Err(missing(format!("a version of at least {version}")));
        }
        Wanted::Pinned(version) => version,
        Wanted::Latest | Wanted::AtLeast(_) => latest,
    };
    let has = view.topic(topic).and_then(|topic| topic.schema_subject.as_deref());
    match has {
        Some(other) if other != subject.as_str() => Err(other_subject(topic, &subject, other)),
        _ => Ok(Choice { subject, schema_id: known.id.0, version }),
    }
}

/// Makes the subject of its first producer the topic's, before that producer is answered.
///
/// # Errors
/// As [`choose`]: somebody else may have been first.
pub(crate) async fn adopt(
    context: &Arc<Context>,
    topic: &TopicName,
    producer: &ProducerName,
    choice: &Choice,
) -> Result<(), Fault> {
    let Choice { subject, schema_id, version } = choice;
    let view = context.meta.view();
    let has = view.topic(topic).and_then(|topic| topic.schema_subject.as_deref());
    if has == Some(subject.as_str()) {
        return Ok(());
    }
    let by = format!("producer {producer}");
    let change = AdoptSchemaSubject { topic: topic.clone(), subject: subject.clone(), by };
    context.meta.propose(change, Clock::wall()).await?;
    super::refresh(context);
    tracing::info!(%topic, %subject, schema_id, version, %producer, "the topic has the schema subject of its first producer");
    Ok(())
}
