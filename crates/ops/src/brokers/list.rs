//! `brokers list`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_wire::proto::danube_admin::Empty;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the brokers, their addresses and state
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct List {}

/// The brokers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Brokers(Vec<Broker>);

/// A broker.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Broker {
    broker_id: String,
    broker_status: String,
    broker_addr: String,
    broker_role: String,
    admin_addr: String,
    metrics_addr: String,
}

impl Operation for List {
    type Output = Brokers;
    const SPEC: Spec = Spec {
        path: ("brokers", "list"),
        permission: Permission::ManageCluster,
        effect: Effect::Read,
        example: "",
    };

    async fn run(self, session: &Session) -> Result<Brokers, OpError> {
        brokers(session).await.map(Brokers)
    }
}

/// All brokers.
pub(crate) async fn brokers(session: &Session) -> Result<Vec<Broker>, OpError> {
    let mut brokers = session.brokers().await?;
    let answer = call(brokers.list_brokers(Empty {})).await;
    let answer = answer.map_err(|status| channel::error("brokers cannot be listed", &status))?;
    let broker = |known: danube_wire::proto::danube_admin::BrokerInfo| Broker {
        broker_id: known.broker_id,
        broker_status: known.broker_status,
        broker_addr: known.broker_addr,
        broker_role: known.broker_role,
        admin_addr: known.admin_addr,
        metrics_addr: known.metrics_addr,
    };
    Ok(answer.brokers.into_iter().map(broker).collect())
}

impl Output for Brokers {
    fn text(&self) -> String {
        table(&self.0)
    }
}

/// Brokers as a table.
pub(crate) fn table(brokers: &[Broker]) -> String {
    let mut table = Table::new(&["BROKER", "STATUS", "ADDRESS", "ROLE", "ADMIN", "METRICS"]);
    for broker in brokers {
        table.row([
            broker.broker_id.clone(),
            broker.broker_status.clone(),
            broker.broker_addr.clone(),
            broker.broker_role.clone(),
            broker.admin_addr.clone(),
            broker.metrics_addr.clone(),
        ]);
    }
    table.render()
}
