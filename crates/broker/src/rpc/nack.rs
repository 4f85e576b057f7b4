//! `ConsumerService/Nack`: a message could not be handled and shall come again, or be poison.

use super::Settled;
use crate::context::Context;
use crate::topic::{Claim, Verdict};
use danube_core::Fault;
use danube_wire::limit::cut_reason;
use danube_wire::proto::danube as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::NackRequest,
) -> Result<proto::NackResponse, Fault> {
    let settled = Settled::parse(request.msg_id, &request.subscription_name)?;
    let handle = context.topics.get(context, &settled.topic)?;
    let reason = request.reason.map(|reason| cut_reason(&reason).to_owned());
    let verdict = Verdict::Nack { delay_ms: request.delay_ms, reason };
    handle.settle(settled.subscription, vec![Claim::of(settled.offset, verdict)]).await?;
    Ok(proto::NackResponse { request_id: request.request_id })
}
