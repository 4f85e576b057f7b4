//! `namespaces set-policies`.

use super::policies::Limits;
use crate::args::{Pair, limits};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use danube_core::NamespaceName;
use danube_wire::proto::control::SetNamespacePoliciesRequest;
use serde::{Deserialize, Serialize};

/// Set limits of a namespace's topics; what is not given stays
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct SetPolicies {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    namespace: String,
    #[command(flatten)]
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(required = true, multiple = true)]
struct Change {
    /// A limit, such as max_producers_per_topic=10; 0 is no limit
    #[arg(long, value_name = "NAME=N")]
    #[serde(default)]
    limit: Vec<Pair>,
    /// Leave this limit to the broker again
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    unset: Vec<String>,
}

impl Operation for SetPolicies {
    type Output = Limits;
    const SPEC: Spec = Spec {
        path: ("namespaces", "set-policies"),
        permission: Permission::ManageNamespace,
        effect: Effect::Write,
        example: "default --limit max_producers_per_topic=10 --unset max_publish_rate",
    };

    async fn run(self, session: &Session) -> Result<Limits, OpError> {
        let namespace = NamespaceName::parse(&self.namespace)?;
        let request = SetNamespacePoliciesRequest {
            namespace: namespace.to_string(),
            set: limits(&self.change.limit)?,
            clear: self.change.unset,
        };
        let mut control = session.control().await?;
        let answer = call(control.set_namespace_policies(session.request(request))).await;
        let answer = answer.map_err(|status| {
            channel::error(&format!("policies of namespace `{namespace}` cannot be set"), &status)
        })?;
        Ok(Limits::of(&namespace, answer))
    }
}
