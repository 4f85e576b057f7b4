//! `ConsumerService/Ack`: a message is done.
//!
//! The answer comes once the ack is as durable as a publish of the topic. An ack for a message
//! that is settled already, or is not known, is fine and changes nothing.

use super::Settled;
use crate::context::Context;
use crate::topic::{Claim, Verdict};
use danube_core::Fault;
use danube_wire::proto::danube as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::AckRequest,
) -> Result<proto::AckResponse, Fault> {
    let settled = Settled::parse(request.msg_id, &request.subscription_name)?;
    let handle = context.topics.get(context, &settled.topic)?;
    let claim = Claim::of(settled.offset, Verdict::Ack);
    handle.settle(settled.subscription, vec![claim]).await?;
    Ok(proto::AckResponse { request_id: request.request_id })
}
