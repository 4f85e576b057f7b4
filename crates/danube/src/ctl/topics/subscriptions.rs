//! `danube ctl topics subscriptions` and `unsubscribe`.

use crate::channel::{self, call};
use crate::ctl::admin::{Admin, SubscriptionArgument, TopicArgument};
use crate::failure::Failure;
use crate::output::{self, Format};
use danube_wire::proto::danube_admin::{SubscriptionRequest, TopicRequest};
use serde_json::json;

/// Print the names of a topic's subscriptions
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    topic: TopicArgument,
    /// How to print them
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// Prints one name per line.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments, admin: &Admin) -> Result<(), Failure> {
    let topic = arguments.topic.name()?;
    let mut topics = admin.topics().await?;
    let request = TopicRequest { name: topic.to_string() };
    let answer = call(topics.list_subscriptions(request)).await.map_err(|status| {
        channel::failure(&format!("subscriptions of topic `{topic}` cannot be listed"), &status)
    })?;
    match arguments.output {
        Format::Text => answer.subscriptions.iter().try_for_each(output::line),
        Format::Json => output::json(&json!(answer.subscriptions)),
    }
}

/// Delete a subscription; its consumers are sent away
#[derive(Debug, clap::Args)]
pub struct UnsubscribeArguments {
    #[command(flatten)]
    subscription: SubscriptionArgument,
}

/// Deletes a subscription.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn unsubscribe(arguments: UnsubscribeArguments, admin: &Admin) -> Result<(), Failure> {
    let (topic, subscription) = arguments.subscription.names()?;
    let mut topics = admin.topics().await?;
    let request =
        SubscriptionRequest { topic: topic.to_string(), subscription: subscription.to_string() };
    call(topics.unsubscribe(request)).await.map_err(|status| {
        let doing = format!("subscription `{subscription}` of topic `{topic}` cannot be deleted");
        channel::failure(&doing, &status)
    })?;
    output::line(format!("deleted subscription {subscription} of topic {topic}"))
}
