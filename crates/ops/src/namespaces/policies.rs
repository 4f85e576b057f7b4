//! `namespaces policies`: the limits that hold for the topics of a namespace.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::topics::{Setting, table};
use danube_core::NamespaceName;
use danube_wire::proto::control::{GetNamespacePoliciesRequest, GetNamespacePoliciesResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the limits of a namespace's topics, and where each comes from
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Policies {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    namespace: String,
}

/// The limits that hold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Limits {
    namespace: String,
    policies: Vec<Setting>,
}

impl Limits {
    pub(super) fn of(namespace: &NamespaceName, answer: GetNamespacePoliciesResponse) -> Limits {
        let policies = answer.policies.into_iter().map(Setting::from).collect();
        Limits { namespace: namespace.to_string(), policies }
    }
}

impl Operation for Policies {
    type Output = Limits;
    const SPEC: Spec = Spec {
        path: ("namespaces", "policies"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "default",
    };

    async fn run(self, session: &Session) -> Result<Limits, OpError> {
        let namespace = NamespaceName::parse(&self.namespace)?;
        let mut control = session.control().await?;
        let request = GetNamespacePoliciesRequest { namespace: namespace.to_string() };
        let answer = call(control.get_namespace_policies(request)).await.map_err(|status| {
            channel::error(&format!("policies of namespace `{namespace}` cannot be read"), &status)
        })?;
        Ok(Limits::of(&namespace, answer))
    }
}

impl Output for Limits {
    fn text(&self) -> String {
        format!("Namespace: {}\n\n{}", self.namespace, table(&self.policies))
    }
}
