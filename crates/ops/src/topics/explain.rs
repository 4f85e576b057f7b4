//! `topics explain`: every effective setting, where it comes from, and what follows.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_wire::proto::control::{self, ExplainTopicRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Print every setting that holds for a topic and its subscriptions, and where each comes from
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Explain {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
}

/// What holds for a topic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explanation {
    topic: String,
    /// How many partitions are set up like that; 0 for a plain topic.
    partitions: u32,
    /// What an acknowledged publish survives.
    publish: String,
    /// What an answered ack survives.
    ack: String,
    settings: Vec<Setting>,
    subscriptions: BTreeMap<String, Explained>,
}

/// What holds for a subscription.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Explained {
    /// What becomes of a message that fails.
    failures: Option<String>,
    settings: Vec<Setting>,
}

/// One setting.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
    /// What the value counts; empty for words.
    pub(crate) unit: String,
    /// `broker default`, `namespace policy`, `intent` or `override`.
    pub(crate) origin: String,
}

impl From<control::ExplainedSetting> for Setting {
    fn from(wire: control::ExplainedSetting) -> Setting {
        Setting { name: wire.name, value: wire.value, unit: wire.unit, origin: wire.origin }
    }
}

impl Operation for Explain {
    type Output = Explanation;
    const SPEC: Spec = Spec {
        path: ("topics", "explain"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "/default/agent-jobs",
    };

    async fn run(self, session: &Session) -> Result<Explanation, OpError> {
        let topic = self.topic.name()?;
        let mut control = session.control().await?;
        let request = ExplainTopicRequest { name: topic.to_string() };
        let answer = call(control.explain_topic(request)).await.map_err(|status| {
            channel::error(&format!("topic `{topic}` cannot be explained"), &status)
        })?;
        let mut settings = Vec::new();
        let mut subscriptions: BTreeMap<String, Explained> = BTreeMap::new();
        for mut setting in answer.settings {
            match setting.subscription.take() {
                None => settings.push(setting.into()),
                Some(name) => subscriptions.entry(name).or_default().settings.push(setting.into()),
            }
        }
        for (name, failures) in answer.failures {
            subscriptions.entry(name).or_default().failures = Some(failures);
        }
        Ok(Explanation {
            topic: topic.to_string(),
            partitions: answer.partitions,
            publish: answer.publish,
            ack: answer.ack,
            settings,
            subscriptions,
        })
    }
}

/// Settings as a table.
pub(crate) fn table(settings: &[Setting]) -> String {
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for Setting { name, value, unit, origin } in settings {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        // The name of a time ends in its unit already.
        let shown = match is_number && !unit.is_empty() && unit != "ms" {
            true => format!("{value} {unit}"),
            false => value.clone(),
        };
        table.row([name.clone(), shown, origin.clone()]);
    }
    table.render()
}

impl Output for Explanation {
    fn text(&self) -> String {
        let of = match self.partitions {
            0 => String::new(),
            count => format!(" ({count} partitions)"),
        };
        let mut text = format!("Topic: {}{of}\n\n{}", self.topic, table(&self.settings));
        for (name, explained) in &self.subscriptions {
            text += &format!("\n\nSubscription: {name}\n\n{}", table(&explained.settings));
            if let Some(failures) = &explained.failures {
                text += &format!("\n\nFailures: {failures}");
            }
        }
        text + &format!("\n\nPublish: {}\nAck: {}", self.publish, self.ack)
    }
}
