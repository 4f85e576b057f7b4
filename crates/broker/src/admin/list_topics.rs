//! Which topics there are.

use crate::context::{BROKER_ID, Context};
use danube_core::{Fault, TopicName, catalog};
use danube_wire::proto::danube_admin as proto;

pub(super) async fn of_namespace(
    context: &Context,
    request: proto::NamespaceRequest,
) -> Result<proto::TopicInfoListResponse, Fault> {
    let namespace = super::existing_namespace(context, &request.name)?;
    let topics = context.meta.view().topics_in(&namespace).map(info).collect();
    Ok(proto::TopicInfoListResponse { topics })
}

pub(super) async fn of_broker(
    context: &Context,
    request: proto::BrokerRequest,
) -> Result<proto::TopicInfoListResponse, Fault> {
    if request.broker_id != BROKER_ID.to_string() {
        return Err(Fault::not_found(format!(
            "broker `{}` not found; the only one is {BROKER_ID}",
            request.broker_id.escape_debug()
        )));
    }
    let topics = context.meta.view().topics().map(info).collect();
    Ok(proto::TopicInfoListResponse { topics })
}

fn info((name, topic): (&TopicName, &catalog::Topic)) -> proto::TopicInfo {
    proto::TopicInfo {
        name: name.to_string(),
        broker_id: BROKER_ID.to_string(),
        delivery: topic.delivery.as_str().to_owned(),
    }
}
