//! What administrators ask: the compatible package `danube_admin`, and our own
//! `danube.control.v1` for what that one has no words for.
//!
//! Each operation is a function in a file of its own; the services below only translate. What
//! changes the catalog is proposed to it first, and the loaded topics are told after.

mod apply;
mod brokers;
mod configure_topic;
mod create_topic;
mod delete_topic;
mod describe_topic;
mod documents;
mod explain;
mod failure_policy;
mod follow;
mod list_topics;
mod manifests;
mod namespace_policies;
mod namespaces;
mod overview;
mod peek_messages;
mod replay_dead_letters;
mod seek_subscription;
mod subscriptions;
mod unload_topic;

pub(crate) use apply::Applying;
pub(crate) use overview::Ages;
pub(crate) use replay_dead_letters::Replays;

use crate::context::Context;
use crate::rpc::{attributed, unary};
use crate::schema;
use danube_core::{Delivery, Fault, FaultKind, NamespaceName, Offset, Position, TopicName};
use danube_wire::proto::control::control_server::Control;
use danube_wire::proto::danube_admin::broker_admin_server::BrokerAdmin;
use danube_wire::proto::danube_admin::cluster_admin_server::ClusterAdmin;
use danube_wire::proto::danube_admin::namespace_admin_server::NamespaceAdmin;
use danube_wire::proto::danube_admin::topic_admin_server::TopicAdmin;
use danube_wire::proto::{control, danube_admin as proto};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All services for administrators.
#[derive(Clone)]
pub(crate) struct Admin {
    context: Arc<Context>,
}

impl Admin {
    pub(crate) fn new(context: Arc<Context>) -> Admin {
        Admin { context }
    }
}

/// Refuses what has no meaning with a single broker.
async fn needs_cluster<R, T>(_: &Context, _: R) -> Result<T, Fault> {
    Err(Fault::new(
        FaultKind::Unsupported,
        "this broker runs in standalone mode, a cluster of one; there is nothing to move or join",
    ))
}

impl BrokerAdmin for Admin {
    unary!("BrokerAdmin", list_brokers, brokers::list, proto::Empty => proto::BrokerListResponse);
    unary!("BrokerAdmin", get_leader_broker, brokers::leader, proto::Empty => proto::BrokerResponse);
    unary!("BrokerAdmin", list_namespaces, namespaces::list, proto::Empty => proto::NamespaceListResponse);
    unary!("BrokerAdmin", unload_broker, needs_cluster, proto::UnloadBrokerRequest => proto::UnloadBrokerResponse);
    unary!("BrokerAdmin", activate_broker, needs_cluster, proto::ActivateBrokerRequest => proto::ActivateBrokerResponse);
    unary!("BrokerAdmin", get_cluster_balance, needs_cluster, proto::ClusterBalanceRequest => proto::ClusterBalanceResponse);
    unary!("BrokerAdmin", trigger_rebalance, needs_cluster, proto::RebalanceRequest => proto::RebalanceResponse);
}

impl ClusterAdmin for Admin {
    unary!("ClusterAdmin", cluster_status, needs_cluster, proto::Empty => proto::ClusterStatusResponse);
    unary!("ClusterAdmin", add_node, needs_cluster, proto::AddNodeRequest => proto::AddNodeResponse);
    unary!("ClusterAdmin", promote_node, needs_cluster, proto::PromoteNodeRequest => proto::PromoteNodeResponse);
    unary!("ClusterAdmin", remove_node, needs_cluster, proto::RemoveNodeRequest => proto::RemoveNodeResponse);
}

impl NamespaceAdmin for Admin {
    unary!("NamespaceAdmin", get_namespace_topics, namespaces::topics, proto::NamespaceRequest => proto::TopicListResponse);
    unary!("NamespaceAdmin", get_namespace_policies, namespaces::policies, proto::NamespaceRequest => proto::PolicyResponse);
    attributed!("NamespaceAdmin", create_namespace, namespaces::create, proto::NamespaceRequest => proto::NamespaceResponse);
    attributed!("NamespaceAdmin", delete_namespace, namespaces::delete, proto::NamespaceRequest => proto::NamespaceResponse);
}

impl TopicAdmin for Admin {
    unary!("TopicAdmin", list_namespace_topics, list_topics::of_namespace, proto::NamespaceRequest => proto::TopicInfoListResponse);
    unary!("TopicAdmin", list_broker_topics, list_topics::of_broker, proto::BrokerRequest => proto::TopicInfoListResponse);
    attributed!("TopicAdmin", create_topic, create_topic::plain, proto::NewTopicRequest => proto::TopicResponse);
    attributed!("TopicAdmin", create_partitioned_topic, create_topic::partitioned, proto::PartitionedTopicRequest => proto::TopicResponse);
    attributed!("TopicAdmin", delete_topic, delete_topic::call, proto::TopicRequest => proto::TopicResponse);
    unary!("TopicAdmin", unload_topic, unload_topic::call, proto::TopicRequest => proto::TopicResponse);
    unary!("TopicAdmin", list_subscriptions, subscriptions::list, proto::TopicRequest => proto::SubscriptionListResponse);
    attributed!("TopicAdmin", unsubscribe, subscriptions::delete, proto::SubscriptionRequest => proto::SubscriptionResponse);
    unary!("TopicAdmin", describe_topic, describe_topic::compatible, proto::DescribeTopicRequest => proto::DescribeTopicResponse);
    attributed!("TopicAdmin", set_subscription_failure_policy, failure_policy::set, proto::SetSubscriptionFailurePolicyRequest => proto::SubscriptionResponse);
    unary!("TopicAdmin", get_subscription_failure_policy, failure_policy::get, proto::GetSubscriptionFailurePolicyRequest => proto::GetSubscriptionFailurePolicyResponse);
    attributed!("TopicAdmin", set_subscription_dispatch_config, subscriptions::set_dispatch, proto::SetSubscriptionDispatchConfigRequest => proto::SubscriptionResponse);
    unary!("TopicAdmin", get_subscription_dispatch_config, subscriptions::get_dispatch, proto::GetSubscriptionDispatchConfigRequest => proto::GetSubscriptionDispatchConfigResponse);
}

impl Control for Admin {
    attributed!("Control", create_topic, create_topic::with_intent, control::CreateTopicRequest => control::CreateTopicResponse);
    unary!("Control", describe_topic, describe_topic::whole, control::DescribeTopicRequest => control::DescribeTopicResponse);
    unary!("Control", get_document, documents::get, control::GetDocumentRequest => control::GetDocumentResponse);
    unary!("Control", list_documents, documents::list, control::ListDocumentsRequest => control::ListDocumentsResponse);
    unary!("Control", peek_messages, peek_messages::call, control::PeekMessagesRequest => control::PeekMessagesResponse);
    unary!("Control", seek_subscription, seek_subscription::call, control::SeekSubscriptionRequest => control::SeekSubscriptionResponse);
    unary!("Control", explain_failure_policy, failure_policy::explain, control::ExplainFailurePolicyRequest => control::ExplainFailurePolicyResponse);
    unary!("Control", replay_dead_letters, replay_dead_letters::call, control::ReplayDeadLettersRequest => control::ReplayDeadLettersResponse);
    unary!("Control", check_schema, schema::control::check, control::CheckSchemaRequest => control::CheckSchemaResponse);
    unary!("Control", describe_subject, schema::control::describe, control::DescribeSubjectRequest => control::DescribeSubjectResponse);
    attributed!("Control", set_compatibility, schema::control::set_with_levels, control::SetCompatibilityRequest => control::SetCompatibilityResponse);
    attributed!("Control", delete_subject, schema::control::delete_subject, control::DeleteSubjectRequest => control::DeleteSubjectResponse);
    unary!("Control", explain_topic, explain::call, control::ExplainTopicRequest => control::ExplainTopicResponse);
    attributed!("Control", configure_topic, configure_topic::call, control::ConfigureTopicRequest => control::ConfigureTopicResponse);
    unary!("Control", get_namespace_policies, namespace_policies::get, control::GetNamespacePoliciesRequest => control::GetNamespacePoliciesResponse);
    attributed!("Control", set_namespace_policies, namespace_policies::set, control::SetNamespacePoliciesRequest => control::GetNamespacePoliciesResponse);
    attributed!("Control", create_subscription, subscriptions::create, control::CreateSubscriptionRequest => control::CreateSubscriptionResponse);
    attributed!("Control", apply_manifest, apply::call, control::ApplyManifestRequest => control::ApplyManifestResponse);
    unary!("Control", export_manifest, manifests::export, control::ExportManifestRequest => control::ExportManifestResponse);
    unary!("Control", overview, overview::call, control::OverviewRequest => control::OverviewResponse);
    unary!("Control", list_drift, manifests::drift, control::ListDriftRequest => control::ListDriftResponse);
    unary!("Control", list_schema_history, schema::control::history, control::ListSchemaHistoryRequest => control::ListSchemaHistoryResponse);
}

/// The topic, or the partitions of it, that `name` stands for.
pub(crate) fn partitions(context: &Context, name: &TopicName) -> Result<Vec<TopicName>, Fault> {
    let partitions = context.meta.view().partitions(name);
    if partitions.is_empty() {
        return Err(Fault::not_found(format!(
            "topic `{name}` not found; `danube ctl topics list --namespace {}` shows what is there",
            name.namespace()
        )));
    }
    Ok(partitions)
}

/// A namespace that must exist.
fn existing_namespace(context: &Context, name: &str) -> Result<NamespaceName, Fault> {
    let name = NamespaceName::parse(name)?;
    if context.meta.view().namespace(&name).is_none() {
        return Err(Fault::not_found(format!(
            "namespace `{name}` not found; `danube ctl namespaces list` shows what is there"
        )));
    }
    Ok(name)
}

/// The offsets that a new subscription of `topic` starts at, by partition. A `NonReliable` topic
/// has no places to choose from.
async fn starts(
    context: &Context,
    topic: &TopicName,
    position: Position,
) -> Result<BTreeMap<TopicName, Offset>, Fault> {
    let view = context.meta.view();
    let mut starts = BTreeMap::new();
    for partition in partitions(context, topic)? {
        let Some(known) = view.topic(&partition) else { continue };
        if known.delivery == Delivery::NonReliable {
            continue;
        }
        let log = crate::scan::log_of(context, &partition, known)?;
        let wanted = crate::scan::locate(&log, position).await?;
        let bounds = log.bounds();
        starts.insert(partition, wanted.clamp(bounds.start, bounds.next));
    }
    Ok(starts)
}
