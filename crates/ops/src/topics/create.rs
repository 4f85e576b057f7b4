//! `topics create`: what a topic is for, or how it delivers, and how many partitions.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::{Delivery, Intent};
use danube_wire::proto::control::CreateTopicRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Create a topic, or all partitions of one
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Create {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
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
#[derive(Debug, Clone, Copy, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// What was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Created {
    /// The topic or its partitions, then its dead-letter topic.
    created: Vec<String>,
}

impl Operation for Create {
    type Output = Created;
    const SPEC: Spec = Spec {
        path: ("topics", "create"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs --intent task_queue --partitions 3",
    };

    async fn run(self, session: &Session) -> Result<Created, OpError> {
        let topic = self.topic.name()?;
        if let Some(intent) = &self.intent {
            Intent::parse(intent)?;
        }
        let delivery = self.dispatch_strategy.map(DispatchStrategy::delivery);
        let request = CreateTopicRequest {
            name: topic.to_string(),
            intent: self.intent,
            // Programs say 0 for a topic without partitions.
            partitions: self.partitions.filter(|count| *count > 0),
            delivery: delivery.map(|delivery| delivery.as_str().to_owned()),
            schema_subject: self.schema_subject,
        };
        let mut control = session.control().await?;
        let answer =
            call(control.create_topic(session.request(request))).await.map_err(|status| {
                channel::error(&format!("topic `{topic}` cannot be created"), &status)
            })?;
        Ok(Created { created: answer.topics })
    }
}

impl Output for Created {
    fn text(&self) -> String {
        let lines = self.created.iter().map(|topic| format!("created topic {topic}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}
