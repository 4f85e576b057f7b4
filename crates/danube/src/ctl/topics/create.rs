//! `danube ctl topics create`: what a topic is for, or how it delivers, and how many partitions.

use crate::channel::{self, call};
use crate::ctl::admin::{Admin, TopicArgument};
use crate::failure::Failure;
use crate::output;
use danube_core::{Delivery, Intent};
use danube_wire::proto::control::CreateTopicRequest;

/// Create a topic, or all partitions of one
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    topic: TopicArgument,
    /// What it is for: realtime, event_stream, task_queue or audit_log, or another name of these
    #[arg(long, value_name = "INTENT")]
    intent: Option<String>,
    /// Make this many partitions of it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    partitions: Option<u32>,
    /// How it delivers; an intent says that by itself [default: non_reliable]
    #[arg(long, value_enum, value_name = "STRATEGY")]
    dispatch_strategy: Option<DispatchStrategy>,
    /// The schema subject its messages follow
    #[arg(long, value_name = "SUBJECT")]
    schema_subject: Option<String>,
}

/// How a topic delivers.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DispatchStrategy {
    /// In memory, to whoever listens now
    #[value(name = "non_reliable", alias = "non-reliable")]
    NonReliable,
    /// Through the log, at least once
    Reliable,
}

impl DispatchStrategy {
    fn delivery(self) -> Delivery {
        match self {
            DispatchStrategy::NonReliable => Delivery::NonReliable,
            DispatchStrategy::Reliable => Delivery::Reliable,
        }
    }
}

/// Creates it and prints the names of what was made.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments, admin: &Admin) -> Result<(), Failure> {
    let topic = arguments.topic.name()?;
    if let Some(intent) = &arguments.intent {
        Intent::parse(intent)?;
    }
    let delivery = arguments.dispatch_strategy.map(DispatchStrategy::delivery);
    let request = CreateTopicRequest {
        name: topic.to_string(),
        intent: arguments.intent,
        partitions: arguments.partitions,
        delivery: delivery.map(|delivery| delivery.as_str().to_owned()),
        schema_subject: arguments.schema_subject,
    };
    let mut control = admin.control().await?;
    let answer = call(control.create_topic(request)).await.map_err(|status| {
        channel::failure(&format!("topic `{topic}` cannot be created"), &status)
    })?;
    answer.topics.iter().try_for_each(|topic| output::line(format!("created topic {topic}")))
}
