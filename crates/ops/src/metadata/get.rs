//! `metadata get`.

use super::value;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::control::GetDocumentRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Print one document
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Get {
    /// Its key, such as /topics/default/jobs/intent
    key: String,
}

/// A document.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Document(Value);

impl Operation for Get {
    type Output = Document;
    const SPEC: Spec = Spec {
        path: ("metadata", "get"),
        permission: Permission::ManageCluster,
        effect: Effect::Read,
        example: "/topics/default/agent-jobs/intent",
    };

    async fn run(self, session: &Session) -> Result<Document, OpError> {
        let key = self.key;
        let doing = format!("document `{}` cannot be read", key.escape_debug());
        let mut control = session.control().await?;
        let answer = call(control.get_document(GetDocumentRequest { key })).await;
        let answer = answer.map_err(|status| channel::error(&doing, &status))?;
        Ok(Document(value(&answer.document.unwrap_or_default().json)))
    }
}

impl Output for Document {
    fn text(&self) -> String {
        format!("{:#}", self.0)
    }
}
