//! `apply`: make what a manifest declares.

use super::files::ManifestArgs;
use super::plan::{APPLY_TIMEOUT_S, How, Plan, ask, validate};
use crate::args::topic_name;
use crate::error::OpError;
use crate::operation::{Effect, Operation, Permission, Spec};
use crate::session::Session;
use clap::ArgGroup;
use danube_core::catalog::OBJECT_KINDS;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Make namespaces, schemas, topics and subscriptions what a manifest declares
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(group = ArgGroup::new("removal").args(["prune", "replace"]).multiple(true))]
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
    /// Let --prune remove only objects of this kind; can be given several times
    #[arg(long, value_name = "KIND", value_parser = OBJECT_KINDS, requires = "prune")]
    #[serde(default)]
    prune_allow: Vec<String>,
    /// Delete this topic and make it anew if it cannot become what is declared
    #[arg(long, value_name = "TOPIC")]
    #[serde(default)]
    replace: Vec<String>,
    /// Let --prune and --replace remove even what has messages or consumers
    #[arg(long, requires = "removal")]
    #[serde(default)]
    force: bool,
    /// Where an intent changes, give subscriptions what they inherit from the new one
    #[arg(long)]
    #[serde(default)]
    update_subscriptions: bool,
    /// Check the manifest without asking a broker
    #[arg(long, conflicts_with_all = ["dry_run", "prune", "replace"])]
    #[serde(default)]
    validate_only: bool,
    /// Longest wait for the broker, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = APPLY_TIMEOUT_S)]
    #[serde(default = "default_timeout")]
    timeout: u32,
}

fn default_timeout() -> u32 {
    APPLY_TIMEOUT_S
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
        if self.validate_only {
            return validate(&self.manifest);
        }
        let how = How {
            dry_run: self.dry_run,
            prune: self.prune,
            prune_kinds: self.prune_allow,
            replace: self
                .replace
                .iter()
                .map(|name| Ok(topic_name(name)?.to_string()))
                .collect::<Result<_, OpError>>()?,
            update_subscriptions: self.update_subscriptions,
            force: self.force,
            timeout: Duration::from_secs(self.timeout.into()),
        };
        ask(&self.manifest, how, session).await
    }
}
