//! A message as one line: for people, or as JSON.
//!
//! Law: a message is exactly one line, whatever its payload, and the JSON line loses nothing.

use crate::schema::Decoded;
use danube_ops::view::{self, base64, one_line};
use danube_wire::proto::danube::StreamMessage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is printed of a message, whichever wire it came over.
#[derive(Debug, Default)]
pub struct Printed {
    topic: String,
    offset: u64,
    key: Option<String>,
    attributes: BTreeMap<String, String>,
    publish_time: u64,
    producer: String,
    /// Its schema: id, and version where the producer gave one.
    pub(super) schema: Option<(u64, Option<u32>)>,
    pub(super) payload: bytes::Bytes,
}

impl From<&StreamMessage> for Printed {
    fn from(message: &StreamMessage) -> Printed {
        let id = message.msg_id.as_ref();
        Printed {
            topic: id.map(|id| id.topic_name.clone()).unwrap_or_default(),
            offset: id.map_or(0, |id| id.topic_offset),
            key: message.routing_key.clone(),
            attributes: message.attributes.clone(),
            publish_time: message.publish_time,
            producer: message.producer_name.clone(),
            schema: message.schema_id.map(|id| (id, message.schema_version)),
            payload: message.payload.clone(),
        }
    }
}

impl From<&danube_sdk::Message> for Printed {
    fn from(message: &danube_sdk::Message) -> Printed {
        Printed {
            topic: message.topic().to_owned(),
            offset: message.offset(),
            key: message.key().map(str::to_owned),
            attributes: message.attributes(),
            publish_time: message.publish_time_ms(),
            producer: message.producer_name().to_owned(),
            schema: message.schema_id().map(|id| (id, message.schema_version())),
            payload: message.payload(),
        }
    }
}

/// `offset=3 topic=/default/t key=k attributes=a:1,b:2 payload=hello`.
/// A payload that its schema decodes is JSON.
pub fn text(message: &Printed, decoded: Option<&Decoded>) -> String {
    let mut line = format!("offset={} topic={}", message.offset, message.topic);
    if let Some(key) = &message.key {
        write!(line, " key={}", one_line(key)).expect("a String takes everything");
    }
    if !message.attributes.is_empty() {
        let pairs = message.attributes.iter();
        let pairs = pairs.map(|(key, value)| format!("{}:{}", one_line(key), one_line(value)));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        write!(line, " attributes={pairs}").expect("a String takes everything");
    }
    if let Some(decoded) = decoded {
        return format!("{line} payload.{}={}", decoded.kind, decoded.value);
    }
    match std::str::from_utf8(&message.payload) {
        Ok(payload) => line + " payload=" + &one_line(payload),
        Err(_) => line + " payload.base64=" + &base64(&message.payload),
    }
}

/// The keys `topic`, `offset`, `key`, `attributes`, `publish_time`, `producer`, `payload` and
/// `encoding`, which is `text` or `base64`, or the type of the schema that decoded it: then `payload`
/// is no text but what it says. With a schema, `schema_id` and `schema_version` as well.
pub fn json(message: &Printed, decoded: Option<&Decoded>) -> Value {
    let (payload, encoding) = match decoded {
        Some(decoded) => (decoded.value.clone(), decoded.kind.as_str()),
        None => {
            let (text, encoding) = view::payload(&message.payload);
            (Value::String(text), encoding)
        }
    };
    let mut document = json!({
        "topic": message.topic,
        "offset": message.offset,
        "key": message.key,
        "attributes": message.attributes,
        "publish_time": message.publish_time,
        "producer": message.producer,
        "payload": payload,
        "encoding": encoding,
    });
    if let (Some((id, version)), Value::Object(fields)) = (message.schema, &mut document) {
        fields.insert("schema_id".into(), id.into());
        fields.insert("schema_version".into(), version.into());
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_wire::proto::danube::MsgId;
    use expect_test::expect;

    fn message(payload: &'static [u8]) -> Printed {
        Printed::from(&StreamMessage {
            msg_id: Some(MsgId {
                producer_id: 1,
                topic_name: "/default/t-part-0".into(),
                broker_addr: "http://127.0.0.1:6650".into(),
                topic_offset: 7,
            }),
            payload: payload.into(),
            publish_time: 1_700_000_000_000,
            producer_name: "p".into(),
            attributes: [("a".into(), "1".into()), ("b".into(), "x\ny".into())].into(),
            routing_key: Some("user-1".into()),
            ..StreamMessage::default()
        })
    }

    #[test]
    fn a_message_is_one_line() {
        expect![[r#"offset=7 topic=/default/t-part-0 key=user-1 attributes=a:1,b:x\ny payload=two\nlines é"#]].assert_eq(&text(&message(b"two\nlines \xc3\xa9"), None));
        expect![[r#"offset=7 topic=/default/t-part-0 key=user-1 attributes=a:1,b:x\ny payload.base64=/wA="#]].assert_eq(&text(&message(&[0xff, 0x00]), None));
        let bare = Printed { payload: "hi".into(), ..Printed::default() };
        expect!["offset=0 topic= payload=hi"].assert_eq(&text(&bare, None));
    }

    #[test]
    fn json_loses_nothing() {
        expect![[r#"{"attributes":{"a":"1","b":"x\ny"},"encoding":"text","key":"user-1","offset":7,"payload":"two\nlines","producer":"p","publish_time":1700000000000,"topic":"/default/t-part-0"}"#]].assert_eq(&json(&message(b"two\nlines"), None).to_string());
        expect![[r#"{"attributes":{"a":"1","b":"x\ny"},"encoding":"base64","key":"user-1","offset":7,"payload":"/wA=","producer":"p","publish_time":1700000000000,"topic":"/default/t-part-0"}"#]].assert_eq(&json(&message(&[0xff, 0x00]), None).to_string());
    }

    #[test]
    fn what_a_schema_decodes_is_shown_decoded() {
        let decoded =
            Decoded { kind: danube_schema::SchemaType::Avro, value: json!({"a": "x\ny"}) };
        let tagged = Printed { schema: Some((3, Some(2))), ..message(b"\x06") };
        expect![[r#"offset=7 topic=/default/t-part-0 key=user-1 attributes=a:1,b:x\ny payload.avro={"a":"x\ny"}"#]].assert_eq(&text(&tagged, Some(&decoded)));
        expect![[r#"{"attributes":{"a":"1","b":"x\ny"},"encoding":"avro","key":"user-1","offset":7,"payload":{"a":"x\ny"},"producer":"p","publish_time":1700000000000,"schema_id":3,"schema_version":2,"topic":"/default/t-part-0"}"#]].assert_eq(&json(&tagged, Some(&decoded)).to_string());
    }
}
