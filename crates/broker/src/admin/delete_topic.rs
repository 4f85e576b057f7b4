//! Remove a topic with all its partitions, subscriptions and messages. Its dead letters stay: they
//! are a topic of their own, and may be the only copy of something.

use crate::clock::Clock;
use crate::context::Context;
use crate::topic::StopReason;
use danube_core::change::{Change, DeleteTopic, Outcome};
use danube_core::{Fault, TopicName};
use danube_wire::proto::danube_admin as proto;
use std::sync::Arc;

pub(super) async fn call(
    context: &Arc<Context>,
    request: proto::TopicRequest,
) -> Result<proto::TopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let change = Change::DeleteTopic(DeleteTopic { name: name.clone() });
    // From here on nobody loads it again; then whoever has it loaded lets go.
    let outcome = context.meta.propose(change, Clock::wall()).await?;
    if let Outcome::TopicDeleted { deleted } = outcome {
        for topic in deleted {
            context.topics.stop(topic.id, StopReason::Deleted).await;
            context.topics.forget(topic.id);
            context.store.forget_topic(topic.id);
        }
    }
    tracing::info!(topic = %name, "deleted");
    Ok(proto::TopicResponse { success: true })
}
