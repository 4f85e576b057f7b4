//! `danube ctl topics`: one file per verb.

mod create;
mod delete;
mod describe;
mod failure_policy;
mod list;
mod subscriptions;
mod why;

use super::admin::Admin;
use crate::channel::{self, call};
use crate::failure::Failure;
use danube_core::TopicName;
use danube_wire::proto::control::{DescribeTopicRequest, DescribeTopicResponse};

/// What can be done with topics.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Create a topic, or all partitions of one
    Create(create::Arguments),
    /// Print what a topic is, and where its subscriptions stand
    Describe(describe::Arguments),
    /// Print the topics of all namespaces, or of one
    List(list::Arguments),
    /// Delete a topic with all its messages and subscriptions
    Delete(delete::Arguments),
    /// Print the names of a topic's subscriptions
    Subscriptions(subscriptions::Arguments),
    /// Delete a subscription; its consumers are sent away
    Unsubscribe(subscriptions::UnsubscribeArguments),
    /// Print what a subscription does with failures
    GetFailurePolicy(failure_policy::GetArguments),
    /// Change what a subscription does with failures; what is not given stays
    SetFailurePolicy(failure_policy::SetArguments),
    /// Print why a subscription does not move
    Why(why::Arguments),
}

/// Runs one verb.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(verb: Verb, admin: &Admin) -> Result<(), Failure> {
    match verb {
        Verb::Create(arguments) => create::run(arguments, admin).await,
        Verb::Describe(arguments) => describe::run(arguments, admin).await,
        Verb::List(arguments) => list::run(arguments, admin).await,
        Verb::Delete(arguments) => delete::run(arguments, admin).await,
        Verb::Subscriptions(arguments) => subscriptions::run(arguments, admin).await,
        Verb::Unsubscribe(arguments) => subscriptions::unsubscribe(arguments, admin).await,
        Verb::GetFailurePolicy(arguments) => failure_policy::get(arguments, admin).await,
        Verb::SetFailurePolicy(arguments) => failure_policy::set(arguments, admin).await,
        Verb::Why(arguments) => why::run(arguments, admin).await,
    }
}

/// Everything the broker tells of a topic.
async fn description(topic: &TopicName, admin: &Admin) -> Result<DescribeTopicResponse, Failure> {
    let mut control = admin.control().await?;
    let request = DescribeTopicRequest { name: topic.to_string() };
    call(control.describe_topic(request)).await.map_err(|status| {
        channel::failure(&format!("topic `{topic}` cannot be described"), &status)
    })
}
