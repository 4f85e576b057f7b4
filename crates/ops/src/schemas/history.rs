//! `schemas history`: who changed what, and when.

use super::or_dash;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::{Table, one_line};
use danube_core::position::Rfc3339;
use danube_core::{SubjectName, TopicName, WallMs};
use danube_wire::proto::control::{ListSchemaHistoryRequest, SchemaHistoryEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Print who changed a subject, or how a topic validates: when, and from what to what
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct History {
    /// The subject, also one that was deleted
    #[arg(value_name = "SUBJECT", required_unless_present = "topic")]
    #[serde(default)]
    subject: Option<String>,
    /// A topic instead: who changed its subject and its validation
    #[arg(long, value_name = "TOPIC", conflicts_with = "subject")]
    #[serde(default)]
    topic: Option<String>,
}

/// Oldest first; the latest 200.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Entries(Vec<Entry>);

#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    /// In milliseconds since 1970.
    at: u64,
    by: String,
    event: String,
    version: Option<u32>,
    topic: Option<String>,
    from: Value,
    to: Value,
}

impl Operation for History {
    type Output = Entries;
    const SPEC: Spec = Spec {
        path: ("schemas", "history"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "order-events",
    };

    async fn run(self, session: &Session) -> Result<Entries, OpError> {
        let subject = self.subject.as_deref().map(SubjectName::parse).transpose()?;
        let topic = self.topic.as_deref().map(TopicName::parse).transpose()?;
        let request = ListSchemaHistoryRequest {
            subject: subject.map(|name| name.to_string()),
            topic: topic.map(|name| name.to_string()),
        };
        let mut control = session.control().await?;
        let answer = call(control.list_schema_history(request)).await;
        let answer =
            answer.map_err(|status| channel::error("the history cannot be read", &status))?;
        Ok(Entries(answer.entries.into_iter().map(Entry::from).collect()))
    }
}

impl From<SchemaHistoryEntry> for Entry {
    fn from(wire: SchemaHistoryEntry) -> Entry {
        let value = |text: String| match text.is_empty() {
            true => Value::Null,
            false => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        };
        Entry {
            at: wire.at,
            by: wire.by,
            event: wire.event,
            version: wire.version,
            topic: wire.topic,
            from: value(wire.from),
            to: value(wire.to),
        }
    }
}

/// A document on one line, without its punctuation.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| match value {
                Value::String(text) => format!("{key}={}", one_line(text)),
                other => format!("{key}={other}"),
            });
            fields.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

impl Output for Entries {
    fn text(&self) -> String {
        let mut table = Table::new(&["WHEN", "BY", "EVENT", "WHAT", "FROM", "TO"]);
        for entry in &self.0 {
            let what = match (&entry.version, &entry.topic) {
                (Some(version), _) => format!("version {version}"),
                (None, Some(topic)) => topic.clone(),
                (None, None) => String::new(),
            };
            table.row([
                Rfc3339(WallMs(entry.at)).to_string(),
                or_dash(&entry.by),
                entry.event.clone(),
                or_dash(&what),
                or_dash(&shown(&entry.from)),
                or_dash(&shown(&entry.to)),
            ]);
        }
        table.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_history_is_a_table() {
        let wire = |event: &str, version, topic: Option<&str>, from: &str, to: &str| {
            Entry::from(SchemaHistoryEntry {
                at: 1_796_040_000_250,
                by: "ann from 10.0.0.7".into(),
                event: event.into(),
                from: from.into(),
                to: to.into(),
                version,
                topic: topic.map(Into::into),
            })
        };
        let entries = Entries(vec![
            wire("registered", Some(1), None, "", "\"sha256:ab\""),
            wire("compatibility_set", None, None, r#"{"mode":"backward"}"#, r#"{"mode":"full"}"#),
            wire(
                "configured",
                None,
                Some("/default/t"),
                r#"{"subject":null,"validation_policy":"warn"}"#,
                r#"{"subject":"s","validation_policy":"enforce"}"#,
            ),
        ]);
        expect![[r#"
            WHEN                      BY                 EVENT              WHAT        FROM                                 TO
            2026-11-30T12:00:00.250Z  ann from 10.0.0.7  registered         version 1   -                                    sha256:ab
            2026-11-30T12:00:00.250Z  ann from 10.0.0.7  compatibility_set  -           mode=backward                        mode=full
            2026-11-30T12:00:00.250Z  ann from 10.0.0.7  configured         /default/t  subject=null validation_policy=warn  subject=s validation_policy=enforce"#]]
        .assert_eq(&entries.text());
    }
}
