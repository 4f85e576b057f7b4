//! `diff`: what an apply would change.

use super::files::ManifestArgs;
use super::plan::{How, Plan, ask};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use serde::{Deserialize, Serialize};

/// Print what differs from a manifest; exit code 1 when something does
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Diff {
    #[command(flatten)]
    #[serde(flatten)]
    manifest: ManifestArgs,
    /// Count what the same owner declared before and declares no longer
    #[arg(long)]
    #[serde(default)]
    prune: bool,
}

impl Operation for Diff {
    type Output = Plan;
    const SPEC: Spec = Spec {
        path: ("", "diff"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "-f cluster-topology.yaml",
    };

    async fn run(self, session: &Session) -> Result<Plan, OpError> {
        let how = How { dry_run: true, prune: self.prune, ..How::default() };
        let mut plan = ask(&self.manifest, how, session).await?;
        plan.is_diff = true;
        Ok(plan)
    }
}
