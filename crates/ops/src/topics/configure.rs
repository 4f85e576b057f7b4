//! `topics configure`: durability, retention, limits and labels of one topic.

use crate::args::{Pair, TopicArg, limits, pairs};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::manifest::{duration_ms, size};
use danube_wire::proto::control::ConfigureTopicRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Set what a topic has beside its intent; what is not given stays
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Configure {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    #[command(flatten)]
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(required = true, multiple = true)]
struct Change {
    /// What an acknowledged publish survives: async, os_cache_flush or fsync_batch
    #[arg(long, value_name = "MODE")]
    wal_sync_mode: Option<String>,
    /// Age from which on messages may go: 7d, 12h, 30m, 45s, 500ms, or forever
    #[arg(long, value_name = "DURATION")]
    retention_time: Option<String>,
    /// Size above which the oldest messages may go: 10GiB, 500MB, 1048576, or unlimited
    #[arg(long, value_name = "SIZE")]
    retention_bytes: Option<String>,
    /// Where its dead letters go, instead of where the intent sends them; made when it is not there
    #[arg(long, value_name = "TOPIC")]
    dead_letter_topic: Option<String>,
    /// A limit, such as max_publish_rate=500; 0 is no limit
    #[arg(long, value_name = "NAME=N")]
    #[serde(default)]
    limit: Vec<Pair>,
    /// A label
    #[arg(long, value_name = "KEY=VALUE")]
    #[serde(default)]
    label: Vec<Pair>,
    /// Leave this setting to the intent, the namespace and the broker again
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    unset: Vec<String>,
}

/// What was configured.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Configured {
    /// The topic, or its partitions.
    configured: Vec<String>,
}

impl Operation for Configure {
    type Output = Configured;
    const SPEC: Spec = Spec {
        path: ("topics", "configure"),
        permission: Permission::ManageTopic,
        effect: Effect::Write,
        example: "/default/agent-jobs --retention-time 7d --limit max_publish_rate=500",
    };

    async fn run(self, session: &Session) -> Result<Configured, OpError> {
        let topic = self.topic.name()?;
        let change = self.change;
        let request = ConfigureTopicRequest {
            topic: topic.to_string(),
            wal_sync_mode: change.wal_sync_mode,
            retention_time_ms: change.retention_time.as_deref().map(duration_ms).transpose()?,
            retention_bytes: change.retention_bytes.as_deref().map(size).transpose()?,
            limits: limits(&change.limit)?,
            dead_letter_topic: change.dead_letter_topic,
            labels: pairs(&change.label)?,
            clear: change.unset,
        };
        let mut control = session.control().await?;
        let answer = call(control.configure_topic(session.request(request))).await;
        let answer = answer.map_err(|status| {
            channel::error(&format!("topic `{topic}` cannot be configured"), &status)
        })?;
        Ok(Configured { configured: answer.topics })
    }
}

impl Output for Configured {
    fn text(&self) -> String {
        let lines = self.configured.iter().map(|topic| format!("configured topic {topic}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}
