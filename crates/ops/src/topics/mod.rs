//! Operations on topics and their subscriptions: one file per verb.

mod configure;
mod configure_schema;
mod create;
mod create_subscription;
mod delete;
mod describe;
mod explain;
mod failure_policy;
mod get_dispatch_config;
mod get_failure_policy;
mod get_schema_config;
mod list;
mod peek;
mod publish;
mod replay_dlq;
mod seek;
mod set_dispatch_config;
mod set_failure_policy;
mod set_validation_policy;
mod subscriptions;
mod unload;
mod unsubscribe;
mod why;

pub use configure::Configure;
pub use configure_schema::ConfigureSchema;
pub use create::Create;
pub use create_subscription::CreateSubscription;
pub use delete::Delete;
pub use describe::Describe;
pub use explain::Explain;
pub(crate) use explain::{Setting, table};
pub use get_dispatch_config::GetDispatchConfig;
pub use get_failure_policy::GetFailurePolicy;
pub use get_schema_config::GetSchemaConfig;
pub use list::List;
pub use peek::Peek;
pub use publish::Publish;
pub use replay_dlq::ReplayDlq;
pub use seek::Seek;
pub use set_dispatch_config::SetDispatchConfig;
pub use set_failure_policy::SetFailurePolicy;
pub use set_validation_policy::SetValidationPolicy;
pub use subscriptions::Subscriptions;
pub use unload::Unload;
pub use unsubscribe::Unsubscribe;
pub use why::Why;

use crate::channel::{self, call};
use crate::error::OpError;
use crate::session::Session;
use danube_core::TopicName;
use danube_wire::proto::control::{DescribeTopicRequest, DescribeTopicResponse};

/// Everything the broker tells of a topic.
async fn description(
    topic: &TopicName,
    session: &Session,
) -> Result<DescribeTopicResponse, OpError> {
    let mut control = session.control().await?;
    let request = DescribeTopicRequest { name: topic.to_string() };
    call(control.describe_topic(request))
        .await
        .map_err(|status| channel::error(&format!("topic `{topic}` cannot be described"), &status))
}
