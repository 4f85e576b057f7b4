//! The compatible service `danube_schema.SchemaRegistry`, on the client and the admin port.

use super::{check, compatibility, delete, get, register, topic_config};
use crate::context::Context;
use crate::rpc::{attributed, unary};
use danube_wire::proto::danube_schema as proto;
use danube_wire::proto::danube_schema::schema_registry_server::SchemaRegistry;
use std::sync::Arc;

/// The schema registry's service.
#[derive(Clone)]
pub(crate) struct Registry {
    context: Arc<Context>,
}

impl Registry {
    pub(crate) fn new(context: Arc<Context>) -> Registry {
        Registry { context }
    }
}

impl SchemaRegistry for Registry {
    attributed!("SchemaRegistry", register_schema, register::call, proto::RegisterSchemaRequest => proto::RegisterSchemaResponse);
    unary!("SchemaRegistry", get_schema, get::by_id, proto::GetSchemaRequest => proto::GetSchemaResponse);
    unary!("SchemaRegistry", get_latest_schema, get::latest, proto::GetLatestSchemaRequest => proto::GetSchemaResponse);
    unary!("SchemaRegistry", list_versions, get::versions, proto::ListVersionsRequest => proto::ListVersionsResponse);
    unary!("SchemaRegistry", check_compatibility, check::call, proto::CheckCompatibilityRequest => proto::CheckCompatibilityResponse);
    attributed!("SchemaRegistry", delete_schema_version, delete::version, proto::DeleteSchemaVersionRequest => proto::DeleteSchemaVersionResponse);
    attributed!("SchemaRegistry", set_compatibility_mode, compatibility::set, proto::SetCompatibilityModeRequest => proto::SetCompatibilityModeResponse);
    attributed!("SchemaRegistry", configure_topic_schema, topic_config::configure, proto::ConfigureTopicSchemaRequest => proto::ConfigureTopicSchemaResponse);
    attributed!("SchemaRegistry", update_topic_validation_policy, topic_config::set_policy, proto::UpdateTopicValidationPolicyRequest => proto::UpdateTopicValidationPolicyResponse);
    unary!("SchemaRegistry", get_topic_schema_config, topic_config::get, proto::GetTopicSchemaConfigRequest => proto::GetTopicSchemaConfigResponse);
    unary!("SchemaRegistry", list_subjects, get::subjects, proto::ListSubjectsRequest => proto::ListSubjectsResponse);
}
