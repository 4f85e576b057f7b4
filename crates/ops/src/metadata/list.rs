//! `metadata list`.

use super::value;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::control::ListDocumentsRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Print all documents, or those under a prefix
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct List {
    /// What the keys begin with
    #[arg(default_value = "")]
    #[serde(default)]
    prefix: String,
}

/// Documents by their keys.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Documents(BTreeMap<String, Value>);

impl Operation for List {
    type Output = Documents;
    const SPEC: Spec = Spec {
        path: ("metadata", "list"),
        permission: Permission::ManageCluster,
        effect: Effect::Read,
        example: "/topics/default/agent-jobs",
    };

    async fn run(self, session: &Session) -> Result<Documents, OpError> {
        let prefix = self.prefix;
        let doing = format!("documents under `{}` cannot be read", prefix.escape_debug());
        let mut control = session.control().await?;
        let answer = call(control.list_documents(ListDocumentsRequest { prefix })).await;
        let answer = answer.map_err(|status| channel::error(&doing, &status))?;
        let documents = answer.documents.into_iter();
        Ok(Documents(documents.map(|one| (one.key, value(&one.json))).collect()))
    }
}

impl Output for Documents {
    fn text(&self) -> String {
        let lines = self.0.iter().map(|(key, document)| format!("{key} {document}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}
