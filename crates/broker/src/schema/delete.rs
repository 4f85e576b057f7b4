//! `DeleteSchemaVersion`, and our own for all versions of a subject.

use super::caller::Caller;
use crate::clock::Clock;
use crate::context::Context;
use danube_core::change::{DeleteSchema, Outcome};
use danube_core::{Fault, SubjectName};
use danube_wire::proto::{control, danube_schema as proto};
use std::sync::Arc;

pub(super) async fn version(
    context: &Arc<Context>,
    caller: Caller,
    request: proto::DeleteSchemaVersionRequest,
) -> Result<proto::DeleteSchemaVersionResponse, Fault> {
    let deleted = delete(context, &caller, &request.subject, Some(request.version)).await?;
    let deleted: Vec<String> = deleted.iter().map(u32::to_string).collect();
    Ok(proto::DeleteSchemaVersionResponse {
        success: true,
        message: format!(
            "version {} of schema subject `{}` deleted",
            deleted.join(", "),
            request.subject
        ),
    })
}

pub(crate) async fn subject(
    context: &Arc<Context>,
    caller: Caller,
    request: control::DeleteSubjectRequest,
) -> Result<control::DeleteSubjectResponse, Fault> {
    let versions = delete(context, &caller, &request.subject, None).await?;
    Ok(control::DeleteSubjectResponse { versions })
}

async fn delete(
    context: &Arc<Context>,
    caller: &Caller,
    subject: &str,
    version: Option<u32>,
) -> Result<Vec<u32>, Fault> {
    let subject = SubjectName::parse(subject)?;
    let change = DeleteSchema { subject: subject.clone(), version, by: caller.by("") };
    let outcome = context.meta.propose(change, Clock::wall()).await?;
    super::refresh(context);
    let Outcome::SchemaDeleted { versions } = outcome else {
        return Err(Fault::internal(format!("asked to delete a version, got {outcome:?}")));
    };
    tracing::info!(%subject, ?versions, "schema versions deleted");
    Ok(versions)
}
