//! Which brokers there are: this one.

use crate::context::{BROKER_ID, Context};
use danube_core::Fault;
use danube_wire::proto::danube_admin as proto;

pub(super) async fn list(
    context: &Context,
    _: proto::Empty,
) -> Result<proto::BrokerListResponse, Fault> {
    let addresses = context.addresses();
    Ok(proto::BrokerListResponse {
        brokers: vec![proto::BrokerInfo {
            broker_id: BROKER_ID.to_string(),
            broker_addr: context.broker_url().to_owned(),
            broker_role: "Cluster_Leader".to_owned(),
            admin_addr: format!("http://{}", addresses.admin),
            metrics_addr: format!("http://{}/metrics", addresses.http),
            broker_status: "active".to_owned(),
        }],
    })
}

pub(super) async fn leader(_: &Context, _: proto::Empty) -> Result<proto::BrokerResponse, Fault> {
    Ok(proto::BrokerResponse { leader: BROKER_ID.to_string() })
}
