//! Namespaces: list, create, delete, and what is in them.

use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::change::{Change, CreateNamespace, DeleteNamespace};
use danube_core::{Fault, NamespaceName};
use danube_wire::proto::danube_admin as proto;
use std::collections::BTreeMap;

pub(super) async fn list(
    context: &Context,
    _: proto::Empty,
) -> Result<proto::NamespaceListResponse, Fault> {
    let view = context.meta.view();
    let namespaces = view.namespaces().map(|(name, _)| name.to_string()).collect();
    Ok(proto::NamespaceListResponse { namespaces })
}

pub(super) async fn topics(
    context: &Context,
    request: proto::NamespaceRequest,
) -> Result<proto::TopicListResponse, Fault> {
    let namespace = super::existing_namespace(context, &request.name)?;
    let view = context.meta.view();
    let topics = view.topics_in(&namespace).map(|(name, _)| name.to_string()).collect();
    Ok(proto::TopicListResponse { topics })
}

pub(super) async fn policies(
    context: &Context,
    request: proto::NamespaceRequest,
) -> Result<proto::PolicyResponse, Fault> {
    let namespace = super::existing_namespace(context, &request.name)?;
    // What holds, in the compatible form: a number for each limit, 0 for none.
    let policies = super::namespace_policies::effective(context, &namespace);
    let policies: BTreeMap<&str, u32> =
        policies.into_iter().map(|(limit, setting)| (limit.as_str(), setting.value)).collect();
    let policies = serde_json::to_string(&policies).expect("plain data with text keys is JSON");
    Ok(proto::PolicyResponse { policies })
}

pub(super) async fn create(
    context: &Context,
    caller: Caller,
    request: proto::NamespaceRequest,
) -> Result<proto::NamespaceResponse, Fault> {
    let name = NamespaceName::parse(&request.name)?;
    let change = Change::CreateNamespace(CreateNamespace { name: name.clone() });
    context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    tracing::info!(namespace = %name, "created");
    Ok(proto::NamespaceResponse { success: true })
}

pub(super) async fn delete(
    context: &Context,
    caller: Caller,
    request: proto::NamespaceRequest,
) -> Result<proto::NamespaceResponse, Fault> {
    let name = NamespaceName::parse(&request.name)?;
    let change = Change::DeleteNamespace(DeleteNamespace { name: name.clone() });
    context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    tracing::info!(namespace = %name, "deleted");
    Ok(proto::NamespaceResponse { success: true })
}
