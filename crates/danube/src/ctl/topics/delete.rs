//! `danube ctl topics delete`.

use crate::channel::{self, call};
use crate::ctl::admin::{Admin, TopicArgument};
use crate::failure::Failure;
use crate::output;
use danube_wire::proto::danube_admin::TopicRequest;

/// Delete a topic with all its messages and subscriptions
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    topic: TopicArgument,
}

/// Deletes it; a partitioned one with all its partitions.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments, admin: &Admin) -> Result<(), Failure> {
    let topic = arguments.topic.name()?;
    let mut topics = admin.topics().await?;
    let request = TopicRequest { name: topic.to_string() };
    call(topics.delete_topic(request)).await.map_err(|status| {
        channel::failure(&format!("topic `{topic}` cannot be deleted"), &status)
    })?;
    output::line(format!("deleted topic {topic}"))
}
