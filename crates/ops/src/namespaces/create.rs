//! `namespaces create`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::NamespaceName;
use danube_wire::proto::danube_admin::NamespaceRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Create a namespace
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Create {
    /// Its name
    #[arg(value_name = "NAMESPACE")]
    name: String,
}

/// What was created.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Created {
    #[schemars(with = "String")]
    created: NamespaceName,
}

impl Operation for Create {
    type Output = Created;
    const SPEC: Spec = Spec {
        path: ("namespaces", "create"),
        permission: Permission::ManageNamespace,
        effect: Effect::Write,
        example: "agents",
    };

    async fn run(self, session: &Session) -> Result<Created, OpError> {
        let name = NamespaceName::parse(&self.name)?;
        let mut namespaces = session.namespaces().await?;
        let request = NamespaceRequest { name: name.to_string() };
        call(namespaces.create_namespace(session.request(request))).await.map_err(|status| {
            channel::error(&format!("namespace `{name}` cannot be created"), &status)
        })?;
        Ok(Created { created: name })
    }
}

impl Output for Created {
    fn text(&self) -> String {
        format!("created namespace {}", self.created)
    }
}
