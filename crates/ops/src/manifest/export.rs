//! `export`: what there is, as a manifest.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::control::ExportManifestRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print what there is as a manifest; applied where it came from, it changes nothing
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Export {
    /// Only this namespace [default: all]
    #[arg(long, value_name = "NAMESPACE")]
    #[serde(default)]
    namespace: Vec<String>,
    /// Whose manifest it is to be
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    owner: Option<String>,
}

/// A manifest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Exported {
    /// The manifest, in YAML.
    manifest: String,
}

impl Operation for Export {
    type Output = Exported;
    const SPEC: Spec = Spec {
        path: ("", "export"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "--namespace agents",
    };

    async fn run(self, session: &Session) -> Result<Exported, OpError> {
        let request = ExportManifestRequest { namespaces: self.namespace, owner: self.owner };
        let mut control = session.control().await?;
        let answer = call(control.export_manifest(request)).await;
        let answer = answer.map_err(|status| channel::error("no manifest can be made", &status))?;
        Ok(Exported { manifest: answer.text })
    }
}

impl Output for Exported {
    fn text(&self) -> String {
        self.manifest.trim_end().to_owned()
    }
}
