//! `namespaces topics`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::NamespaceName;
use danube_wire::proto::danube_admin::NamespaceRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the names of a namespace's topics
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Topics {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    namespace: String,
}

/// Names, in order.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Members {
    topics: Vec<String>,
}

impl Operation for Topics {
    type Output = Members;
    const SPEC: Spec = Spec {
        path: ("namespaces", "topics"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "default",
    };

    async fn run(self, session: &Session) -> Result<Members, OpError> {
        let namespace = NamespaceName::parse(&self.namespace)?;
        let mut namespaces = session.namespaces().await?;
        let request = NamespaceRequest { name: namespace.to_string() };
        let answer = call(namespaces.get_namespace_topics(request)).await.map_err(|status| {
            channel::error(&format!("topics of namespace `{namespace}` cannot be listed"), &status)
        })?;
        Ok(Members { topics: answer.topics })
    }
}

impl Output for Members {
    fn text(&self) -> String {
        self.topics.join("\n")
    }
}
