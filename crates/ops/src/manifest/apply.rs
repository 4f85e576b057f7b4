//! `apply`: make what a manifest declares.

use super::files::ManifestArgs;
use super::plan::{How, Plan, ask};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use serde::{Deserialize, Serialize};

/// Make namespaces, schemas, topics and subscriptions what a manifest declares
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Apply {
    #[command(flatten)]
    #[serde(flatten)]
    manifest: ManifestArgs,
    /// Print the plan and change nothing; exit code 10 when something would change
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    /// Remove what the same owner declared before and declares no longer
    #[arg(long)]
    #[serde(default)]
    prune: bool,
    /// Let --prune remove even what has messages or consumers
    #[arg(long, requires = "prune")]
    #[serde(default)]
    force: bool,
}

impl Operation for Apply {
    type Output = Plan;
    const SPEC: Spec = Spec {
        path: ("", "apply"),
        permission: Permission::ManageCluster,
        effect: Effect::Write,
        example: "-f cluster-topology.yaml --dry-run",
    };

    async fn run(self, session: &Session) -> Result<Plan, OpError> {
        let Apply { manifest, dry_run, prune, force } = self;
        ask(&manifest, How { dry_run, prune, force }, session).await
    }
}
