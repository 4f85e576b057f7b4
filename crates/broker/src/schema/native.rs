//! The native service `danube.stream.v1.Schemas`: a version with everything that it refers to.
//!
//! Law: what a definition refers to is given in the versions that it was registered with, so that a
//! client reads a payload as the broker checked it.

use super::get::existing;
use crate::context::Context;
use crate::rpc::unary;
use danube_core::{Fault, SchemaId};
use danube_wire::proto::stream as proto;
use danube_wire::proto::stream::schemas_server::Schemas;
use proto::get_schema_request::Which;
use std::collections::HashMap;
use std::sync::Arc;

/// The service.
#[derive(Clone)]
pub(crate) struct NativeSchemas {
    context: Arc<Context>,
}

impl NativeSchemas {
    pub(crate) fn new(context: Arc<Context>) -> NativeSchemas {
        NativeSchemas { context }
    }
}

impl Schemas for NativeSchemas {
    unary!("Schemas", get_schema, get, proto::GetSchemaRequest => proto::GetSchemaResponse);
}

async fn get(
    context: &Context,
    request: proto::GetSchemaRequest,
) -> Result<proto::GetSchemaResponse, Fault> {
    let view = context.meta.view();
    let (name, subject) = match &request.which {
        Some(Which::SchemaId(id)) => view.subject_by_id(SchemaId(*id)).map_or_else(
            || Err(Fault::not_found(format!("schema id `{id}` not found in this registry"))),
            |(name, subject)| Ok((name.to_string(), subject)),
        )?,
        Some(Which::Subject(name)) => (name.clone(), existing(view.subject(name), name)?),
        None => return Err(Fault::invalid("neither a schema id nor a subject is given; give one")),
    };
    let found = match request.version {
        None => subject.latest(),
        Some(version) => subject.versions.get(&version).map(|found| (version, found)),
    };
    let (number, version) = found.ok_or_else(|| {
        Fault::not_found(format!(
            "schema subject `{name}` has no version `{}`",
            request.version.unwrap_or_default()
        ))
    })?;
    let definition = |name: &str, version: &u32| {
        let found = view.subject_record(name)?.versions.get(version)?;
        Some(found.definition.as_bytes().to_vec().into())
    };
    let references: HashMap<_, _> = version
        .references
        .iter()
        .filter_map(|(name, pinned)| Some((name.to_string(), definition(name.as_str(), pinned)?)))
        .collect();
    Ok(proto::GetSchemaResponse {
        schema_id: subject.id.0,
        subject: name,
        version: number,
        schema_type: version.schema_type.to_string(),
        definition: version.definition.as_bytes().to_vec().into(),
        references,
    })
}
