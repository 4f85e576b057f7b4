//! What the registry has: a version by its id, the latest of a subject, all versions, all subjects.
//!
//! A definition goes out exactly as it came in.

use crate::context::Context;
use danube_core::catalog::{SchemaVersion, Subject};
use danube_core::{Fault, SchemaId, SubjectName};
use danube_wire::proto::danube_schema as proto;

pub(super) async fn by_id(
    context: &Context,
    request: proto::GetSchemaRequest,
) -> Result<proto::GetSchemaResponse, Fault> {
    let view = context.meta.view();
    let id = request.schema_id;
    let (name, subject) = view.subject_by_id(SchemaId(id)).ok_or_else(|| {
        Fault::not_found(format!("schema id `{id}` not found; no subject of this registry has it"))
    })?;
    let found = match request.version {
        None => subject.latest(),
        Some(version) => subject.versions.get(&version).map(|found| (version, found)),
    };
    match found {
        Some((number, version)) => Ok(response(name.as_str(), subject, number, version)),
        None => Err(Fault::not_found(format!(
            "schema subject `{name}` (id {id}) has no version `{}`",
            request.version.unwrap_or_default()
        ))),
    }
}

pub(super) async fn latest(
    context: &Context,
    request: proto::GetLatestSchemaRequest,
) -> Result<proto::GetSchemaResponse, Fault> {
    let view = context.meta.view();
    let subject = existing(view.subject(&request.subject), &request.subject)?;
    let (number, version) = subject.latest().expect("a subject that is shown has a version");
    Ok(response(&request.subject, subject, number, version))
}

pub(super) async fn versions(
    context: &Context,
    request: proto::ListVersionsRequest,
) -> Result<proto::ListVersionsResponse, Fault> {
    let view = context.meta.view();
    let subject = existing(view.subject(&request.subject), &request.subject)?;
    let versions = subject.versions.iter().map(|(number, version)| proto::SchemaVersionInfo {
        version: *number,
        created_at: seconds(version),
        created_by: version.created_by.as_ref().into(),
        description: version.description.as_ref().into(),
        fingerprint: version.fingerprint.as_ref().into(),
        schema_id: subject.id.0,
    });
    Ok(proto::ListVersionsResponse { versions: versions.collect() })
}

pub(super) async fn subjects(
    context: &Context,
    _: proto::ListSubjectsRequest,
) -> Result<proto::ListSubjectsResponse, Fault> {
    let view = context.meta.view();
    let subjects = view.subjects().filter_map(|(name, subject)| {
        let (number, version) = subject.latest()?;
        Some(proto::SubjectSummary {
            subject: name.to_string(),
            schema_type: version.schema_type.to_string(),
            latest_version: number,
            compatibility_mode: subject.compatibility.as_str().to_ascii_uppercase(),
            schema_id: subject.id.0,
            tags: version.tags.clone(),
        })
    });
    Ok(proto::ListSubjectsResponse { subjects: subjects.collect() })
}

/// A subject that must be there.
pub(super) fn existing<'a>(found: Option<&'a Subject>, name: &str) -> Result<&'a Subject, Fault> {
    // A name that cannot be is told as such, and not as one that nobody has registered.
    SubjectName::parse(name)?;
    found.ok_or_else(|| {
        Fault::not_found(format!(
            "schema subject `{name}` not found; `danube ctl schemas list-subjects` shows what is \
             registered"
        ))
    })
}

fn response(
    name: &str,
    subject: &Subject,
    number: u32,
    version: &SchemaVersion,
) -> proto::GetSchemaResponse {
    proto::GetSchemaResponse {
        schema_id: subject.id.0,
        version: number,
        subject: name.to_owned(),
        schema_type: version.schema_type.to_string(),
        schema_definition: version.definition.as_bytes().to_vec().into(),
        description: version.description.as_ref().into(),
        created_at: seconds(version),
        created_by: version.created_by.as_ref().into(),
        tags: version.tags.clone(),
        fingerprint: version.fingerprint.as_ref().into(),
        compatibility_mode: subject.compatibility.to_string(),
    }
}

/// The compatible wire counts seconds.
fn seconds(version: &SchemaVersion) -> u64 {
    version.created_at.0 / 1_000
}
