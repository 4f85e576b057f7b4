//! `topics peek`: messages where they lie, without a trace.

use crate::args::TopicArg;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::{self, Table, one_line};
use danube_core::position::Rfc3339;
use danube_core::{Position, SubscriptionName, WallMs};
use danube_wire::proto::control::{PeekMessagesRequest, PeekedMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of a payload and of all attributes that the table shows.
const CELL_LEN_MAX: usize = 80;
const COUNT_DEFAULT: u32 = 10;

/// Print messages of a topic without receiving them; nothing is left behind
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Peek {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    /// Where to begin: earliest, latest, offset:N or time:RFC3339 [default: earliest]
    #[arg(long, value_name = "POSITION")]
    from: Option<Position>,
    /// Begin at the first message that this subscription has not finished
    #[arg(short, long, value_name = "NAME", conflicts_with = "from")]
    subscription: Option<String>,
    /// How many messages at most, over all partitions
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = COUNT_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    #[serde(default = "count_default")]
    count: u32,
}

fn count_default() -> u32 {
    COUNT_DEFAULT
}

/// Messages in the order of each partition, partitions merged by publish time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Messages {
    messages: Vec<Message>,
    #[serde(skip)]
    cut: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Message {
    topic: String,
    offset: u64,
    key: Option<String>,
    attributes: BTreeMap<String, String>,
    /// By the producer's clock, in milliseconds since 1970.
    publish_time: u64,
    producer: String,
    schema_id: Option<u64>,
    schema_version: Option<u32>,
    /// Bytes of the payload.
    size: usize,
    payload: Value,
    /// `text`, or `base64` where the payload is not UTF-8; the type of the schema that decoded it.
    encoding: String,
}

impl Operation for Peek {
    type Output = Messages;
    const SPEC: Spec = Spec {
        path: ("topics", "peek"),
        permission: Permission::Consume,
        effect: Effect::Read,
        example: "/default/agent-jobs-dlq --from earliest -n 5",
    };

    async fn run(self, session: &Session) -> Result<Messages, OpError> {
        let topic = self.topic.name()?;
        let subscription = self.subscription.as_deref().map(SubscriptionName::parse).transpose()?;
        let request = PeekMessagesRequest {
            name: topic.to_string(),
            position: self.from.map(|position| position.to_string()),
            subscription: subscription.map(|name| name.to_string()),
            limit: self.count,
        };
        let mut control = session.control().await?;
        let answer = call(control.peek_messages(request)).await.map_err(|status| {
            channel::error(&format!("cannot peek at topic `{topic}`"), &status)
        })?;
        let messages = answer.messages.into_iter().map(Message::from).collect();
        Ok(Messages { messages, cut: answer.cut })
    }
}

impl From<PeekedMessage> for Message {
    fn from(wire: PeekedMessage) -> Message {
        let decoded = wire
            .decoded
            .zip(wire.schema_type)
            .and_then(|(text, kind)| Some((serde_json::from_str(&text).ok()?, kind)));
        let (payload, encoding) = decoded.unwrap_or_else(|| {
            let (text, encoding) = view::payload(&wire.payload);
            (Value::String(text), encoding.to_owned())
        });
        Message {
            topic: wire.topic,
            offset: wire.offset,
            key: wire.key,
            attributes: wire.attributes.into_iter().collect(),
            publish_time: wire.publish_time,
            producer: wire.producer_name,
            schema_id: wire.schema_id,
            schema_version: wire.schema_version,
            size: wire.payload.len(),
            payload,
            encoding,
        }
    }
}

impl Output for Messages {
    fn text(&self) -> String {
        let headings =
            ["TOPIC", "OFFSET", "PUBLISHED", "KEY", "SIZE", "ATTRIBUTES", "ENCODING", "PAYLOAD"];
        let mut table = Table::new(&headings);
        for message in &self.messages {
            let pairs = message.attributes.iter().map(|(key, value)| format!("{key}={value}"));
            table.row([
                message.topic.clone(),
                message.offset.to_string(),
                Rfc3339(WallMs(message.publish_time)).to_string(),
                message.key.as_deref().map_or_else(|| "-".to_owned(), one_line),
                message.size.to_string(),
                match message.attributes.is_empty() {
                    true => "-".to_owned(),
                    false => short(&pairs.collect::<Vec<_>>().join(",")),
                },
                message.encoding.clone(),
                match &message.payload {
                    Value::String(text) => short(text),
                    decoded => short(&decoded.to_string()),
                },
            ]);
        }
        table.render()
    }

    fn notes(&self) -> Vec<String> {
        match (self.cut, self.messages.last()) {
            (true, Some(last)) => vec![format!(
                "there is more, but the answer was full; go on with --from offset:{}",
                last.offset.saturating_add(1)
            )],
            _ => Vec::new(),
        }
    }
}

/// On one line, and cut where it is too long for a table.
fn short(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(CELL_LEN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn message(offset: u64, payload: &[u8]) -> Message {
        PeekedMessage {
            topic: "/default/t".into(),
            offset,
            key: (offset > 0).then(|| "k\n1".into()),
            attributes: [("a".into(), "1".into())].into(),
            payload: payload.to_vec(),
            publish_time: 1_796_040_000_250,
            producer_name: "p".into(),
            schema_id: Some(3),
            schema_version: None,
            decoded: (offset == 9).then(|| "{\"a\":1}".into()),
            schema_type: Some("avro".into()),
        }
        .into()
    }

    #[test]
    fn the_table_survives_any_payload() {
        let messages = Messages {
            messages: vec![
                message(0, b"two\nlines"),
                message(1, &[0xff, 0x00]),
                message(2, "é".repeat(90).as_bytes()),
                message(9, &[0xff]),
            ],
            cut: true,
        };
        expect![[r#"
            TOPIC       OFFSET  PUBLISHED                 KEY   SIZE  ATTRIBUTES  ENCODING  PAYLOAD
            /default/t  0       2026-11-30T12:00:00.250Z  -     9     a=1         text      two\nlines
            /default/t  1       2026-11-30T12:00:00.250Z  k\n1  2     a=1         base64    /wA=
            /default/t  2       2026-11-30T12:00:00.250Z  k\n1  180   a=1         text      éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…
            /default/t  9       2026-11-30T12:00:00.250Z  k\n1  1     a=1         avro      {"a":1}"#]]
        .assert_eq(&messages.text());
        assert_eq!(
            messages.notes(),
            ["there is more, but the answer was full; go on with --from offset:10"]
        );
        let document = serde_json::to_value(&messages).expect("plain data");
        assert_eq!(document[1]["payload"], "/wA=");
        assert_eq!(document[2]["size"], 180);
    }
}
