//! `cluster status`: who belongs to it and who leads. A broker that stands alone says so.

use crate::brokers::{Broker, brokers, table};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_admin::Empty;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tonic::Code;

/// Print who belongs to the cluster and who leads
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Status {}

/// The cluster as it stands.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cluster {
    /// `standalone` or `cluster`.
    mode: String,
    /// Absent where the broker stands alone.
    consensus: Option<Consensus>,
    brokers: Vec<Broker>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Consensus {
    self_node_id: u64,
    raft_addr: String,
    leader_id: u64,
    current_term: u64,
    last_applied: u64,
    voters: Vec<u64>,
    learners: Vec<u64>,
}

impl Operation for Status {
    type Output = Cluster;
    const SPEC: Spec = Spec {
        path: ("cluster", "status"),
        permission: Permission::ManageCluster,
        effect: Effect::Read,
        example: "",
    };

    async fn run(self, session: &Session) -> Result<Cluster, OpError> {
        let mut cluster = session.cluster().await?;
        let consensus = match call(cluster.cluster_status(Empty {})).await {
            Ok(status) => Some(Consensus {
                self_node_id: status.self_node_id,
                raft_addr: status.raft_addr,
                leader_id: status.leader_id,
                current_term: status.current_term,
                last_applied: status.last_applied,
                voters: status.voters,
                learners: status.learners,
            }),
            Err(status) if status.code() == Code::Unimplemented => None,
            Err(status) => {
                return Err(channel::error("status of the cluster cannot be read", &status));
            }
        };
        let mode = if consensus.is_some() { "cluster" } else { "standalone" };
        Ok(Cluster { mode: mode.to_owned(), consensus, brokers: brokers(session).await? })
    }
}

impl Output for Cluster {
    fn text(&self) -> String {
        let mut text = format!("Mode: {}", self.mode);
        if let Some(known) = &self.consensus {
            text += &format!(
                "\nNode: {} ({})\nLeader: {}\nTerm: {}\nLast Applied: {}\nVoters: {:?}\nLearners: {:?}",
                known.self_node_id,
                known.raft_addr,
                known.leader_id,
                known.current_term,
                known.last_applied,
                known.voters,
                known.learners
            );
        }
        text + "\n\n" + &table(&self.brokers)
    }
}
