//! `brokers leader-broker`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_wire::proto::danube_admin::Empty;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print which broker leads
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Leader {}

/// The broker that leads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Leading {
    leader: String,
}

impl Operation for Leader {
    type Output = Leading;
    const SPEC: Spec = Spec {
        path: ("brokers", "leader-broker"),
        permission: Permission::ManageCluster,
        effect: Effect::Read,
        example: "",
    };

    async fn run(self, session: &Session) -> Result<Leading, OpError> {
        let mut brokers = session.brokers().await?;
        let answer = call(brokers.get_leader_broker(Empty {})).await;
        let answer = answer.map_err(|status| channel::error("no leader is known", &status))?;
        Ok(Leading { leader: answer.leader })
    }
}

impl Output for Leading {
    fn text(&self) -> String {
        format!("Leader: {}", self.leader)
    }
}
