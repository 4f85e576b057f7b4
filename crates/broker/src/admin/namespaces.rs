//! Namespaces: list, create, delete, and what is in them.

use crate::clock::Clock;
use crate::context::Context;
use danube_core::change::{Change, CreateNamespace, DeleteNamespace};
use danube_core::{Fault, NamespaceName};
use danube_wire::proto::danube_admin as proto;

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
    let document = context.meta.view().document(&format!("/namespaces/{namespace}/policy"));
    let policies = document.map(|policies| policies.to_string()).unwrap_or_default();
    Ok(proto::PolicyResponse { policies })
}

pub(super) async fn create(
    context: &Context,
    request: proto::NamespaceRequest,
) -> Result<proto::NamespaceResponse, Fault> {
    let name = NamespaceName::parse(&request.name)?;
    let change = Change::CreateNamespace(CreateNamespace { name: name.clone() });
    context.meta.propose(change, Clock::wall()).await?;
    tracing::info!(namespace = %name, "created");
    Ok(proto::NamespaceResponse { success: true })
}

pub(super) async fn delete(
    context: &Context,
    request: proto::NamespaceRequest,
) -> Result<proto::NamespaceResponse, Fault> {
    let name = NamespaceName::parse(&request.name)?;
    let change = Change::DeleteNamespace(DeleteNamespace { name: name.clone() });
    context.meta.propose(change, Clock::wall()).await?;
    tracing::info!(namespace = %name, "deleted");
    Ok(proto::NamespaceResponse { success: true })
}
