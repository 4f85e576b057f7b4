//! What a subject promises about its versions: show it, and set it.

use super::caller::Caller;
use super::get::existing;
use crate::clock::Clock;
use crate::context::Context;
use danube_core::catalog::Promise;
use danube_core::change::{Outcome, SetCompatibility};
use danube_core::{Fault, SubjectName};
use danube_wire::proto::{control, danube_schema as proto};
use std::sync::Arc;

pub(super) async fn set(
    context: &Arc<Context>,
    caller: Caller,
    request: proto::SetCompatibilityModeRequest,
) -> Result<proto::SetCompatibilityModeResponse, Fault> {
    let change = SetCompatibility {
        subject: SubjectName::parse(&request.subject)?,
        mode: Some(request.compatibility_mode.parse()?),
        json: None,
        protobuf: None,
        by: caller.by(""),
    };
    let subject = change.subject.clone();
    let Promise { mode, .. } = propose(context, change).await?;
    Ok(proto::SetCompatibilityModeResponse {
        success: true,
        message: format!("schema subject `{subject}` promises {mode} compatibility"),
    })
}

pub(crate) async fn set_with_levels(
    context: &Arc<Context>,
    caller: Caller,
    request: control::SetCompatibilityRequest,
) -> Result<control::SetCompatibilityResponse, Fault> {
    let change = SetCompatibility {
        subject: SubjectName::parse(&request.subject)?,
        mode: request.compatibility_mode.as_deref().map(str::parse).transpose()?,
        json: request.json_level.as_deref().map(str::parse).transpose()?,
        protobuf: request.protobuf_level.as_deref().map(str::parse).transpose()?,
        by: caller.by(""),
    };
    let Promise { mode, levels } = propose(context, change).await?;
    Ok(control::SetCompatibilityResponse {
        compatibility_mode: mode.to_string(),
        json_level: levels.json.to_string(),
        protobuf_level: levels.protobuf.to_string(),
    })
}

async fn propose(context: &Arc<Context>, change: SetCompatibility) -> Result<Promise, Fault> {
    let subject = change.subject.clone();
    match context.meta.propose(change, Clock::wall()).await? {
        Outcome::CompatibilitySet { promise } => {
            tracing::info!(%subject, mode = %promise.mode, "compatibility set");
            Ok(promise)
        }
        other => Err(Fault::internal(format!("asked to set a mode, got {other:?}"))),
    }
}

pub(crate) async fn describe(
    context: &Context,
    request: control::DescribeSubjectRequest,
) -> Result<control::DescribeSubjectResponse, Fault> {
    let view = context.meta.view();
    let subject = existing(view.subject(&request.subject), &request.subject)?;
    let (_, latest) = subject.latest().expect("a subject that is shown has a version");
    let topics = view.topics_of_subject(&request.subject).map(ToString::to_string).collect();
    Ok(control::DescribeSubjectResponse {
        schema_id: subject.id.0,
        schema_type: latest.schema_type.to_string(),
        compatibility_mode: subject.compatibility.to_string(),
        json_level: subject.levels.json.to_string(),
        protobuf_level: subject.levels.protobuf.to_string(),
        versions: subject.versions.keys().copied().collect(),
        topics,
        subject: request.subject,
    })
}
