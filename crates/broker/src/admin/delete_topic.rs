//! Remove a topic with all its partitions, subscriptions and messages. Its dead letters stay: they
//! are a topic of their own, and may be the only copy of something.

use super::follow::follow;
use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::catalog::ObjectKey;
use danube_core::change::DeleteTopic;
use danube_core::{Fault, TopicName};
use danube_wire::proto::danube_admin as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    caller: Caller,
    request: proto::TopicRequest,
) -> Result<proto::TopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let change = DeleteTopic { name: name.clone() };
    // From here on nobody loads it again; then whoever has it loaded lets go.
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    follow(context, &ObjectKey::Topic(name.clone()), outcome).await;
    tracing::info!(topic = %name, "deleted");
    Ok(proto::TopicResponse { success: true })
}
