//! `namespaces delete`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::NamespaceName;
use danube_wire::proto::danube_admin::NamespaceRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delete a namespace that holds no topics
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Delete {
    /// Its name
    #[arg(value_name = "NAMESPACE")]
    name: String,
}

/// What was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    #[schemars(with = "String")]
    deleted: NamespaceName,
}

impl Operation for Delete {
    type Output = Deleted;
    const SPEC: Spec = Spec {
        path: ("namespaces", "delete"),
        permission: Permission::ManageNamespace,
        effect: Effect::Destructive,
        example: "agents",
    };

    async fn run(self, session: &Session) -> Result<Deleted, OpError> {
        let name = NamespaceName::parse(&self.name)?;
        let mut namespaces = session.namespaces().await?;
        let request = NamespaceRequest { name: name.to_string() };
        call(namespaces.delete_namespace(session.request(request))).await.map_err(|status| {
            channel::error(&format!("namespace `{name}` cannot be deleted"), &status)
        })?;
        Ok(Deleted { deleted: name })
    }
}

impl Output for Deleted {
    fn text(&self) -> String {
        format!("deleted namespace {}", self.deleted)
    }
}
