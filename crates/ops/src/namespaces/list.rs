//! `namespaces list`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_admin::Empty;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the names of all namespaces
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct List {}

/// Names, in order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Names(Vec<String>);

impl Operation for List {
    type Output = Names;
    const SPEC: Spec = Spec {
        path: ("namespaces", "list"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "",
    };

    async fn run(self, session: &Session) -> Result<Names, OpError> {
        names(session).await.map(Names)
    }
}

impl Output for Names {
    fn text(&self) -> String {
        self.0.join("\n")
    }
}

/// The names of all namespaces.
pub(crate) async fn names(session: &Session) -> Result<Vec<String>, OpError> {
    let mut brokers = session.brokers().await?;
    let answer = call(brokers.list_namespaces(Empty {})).await;
    let answer = answer.map_err(|status| channel::error("namespaces cannot be listed", &status))?;
    Ok(answer.namespaces)
}
