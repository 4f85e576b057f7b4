//! A message as one line: for people, or as JSON.
//!
//! Law: a message is exactly one line, whatever its payload, and the JSON line loses nothing.

use danube_wire::proto::danube::StreamMessage;
use serde_json::{Value, json};
use std::fmt::Write;

/// `offset=3 topic=/default/t key=k attributes=a:1,b:2 payload=hello`.
pub fn text(message: &StreamMessage) -> String {
    let (topic, offset) = position(message);
    let mut line = format!("offset={offset} topic={topic}");
    if let Some(key) = &message.routing_key {
        write!(line, " key={}", one_line(key)).expect("a String takes everything");
    }
    if !message.attributes.is_empty() {
        let pairs = message.attributes.iter();
        let pairs = pairs.map(|(key, value)| format!("{}:{}", one_line(key), one_line(value)));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        write!(line, " attributes={pairs}").expect("a String takes everything");
    }
    match std::str::from_utf8(&message.payload) {
        Ok(payload) => line + " payload=" + &one_line(payload),
        Err(_) => line + " payload.base64=" + &base64(&message.payload),
    }
}

/// The keys `topic`, `offset`, `key`, `attributes`, `publish_time`, `producer`, `payload` and
/// `encoding`, which is `text` or `base64`.
pub fn json(message: &StreamMessage) -> Value {
    let (topic, offset) = position(message);
    let (payload, encoding) = match std::str::from_utf8(&message.payload) {
        Ok(payload) => (payload.to_owned(), "text"),
        Err(_) => (base64(&message.payload), "base64"),
    };
    json!({
        "topic": topic,
        "offset": offset,
        "key": message.routing_key,
        "attributes": message.attributes,
        "publish_time": message.publish_time,
        "producer": message.producer_name,
        "payload": payload,
        "encoding": encoding,
    })
}

fn position(message: &StreamMessage) -> (&str, u64) {
    message.msg_id.as_ref().map_or(("", 0), |id| (&id.topic_name, id.topic_offset))
}

/// Control characters escaped, all else as it is.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for sextet in 0..4 {
            let index = (group >> (18 - 6 * sextet)) & 0x3f;
            let present = sextet as usize <= chunk.len();
            text.push(if present { char::from(ALPHABET[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_wire::proto::danube::MsgId;
    use expect_test::expect;

    fn message(payload: &'static [u8]) -> StreamMessage {
        StreamMessage {
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
        }
    }

    #[test]
    fn a_message_is_one_line() {
        expect![[r#"offset=7 topic=/default/t-part-0 key=user-1 attributes=a:1,b:x\ny payload=two\nlines é"#]].assert_eq(&text(&message(b"two\nlines \xc3\xa9")));
        expect![[r#"offset=7 topic=/default/t-part-0 key=user-1 attributes=a:1,b:x\ny payload.base64=/wA="#]].assert_eq(&text(&message(&[0xff, 0x00])));
        let bare = StreamMessage { payload: "hi".into(), ..StreamMessage::default() };
        expect!["offset=0 topic= payload=hi"].assert_eq(&text(&bare));
    }

    #[test]
    fn json_loses_nothing() {
        expect![[r#"{"attributes":{"a":"1","b":"x\ny"},"encoding":"text","key":"user-1","offset":7,"payload":"two\nlines","producer":"p","publish_time":1700000000000,"topic":"/default/t-part-0"}"#]].assert_eq(&json(&message(b"two\nlines")).to_string());
        expect![[r#"{"attributes":{"a":"1","b":"x\ny"},"encoding":"base64","key":"user-1","offset":7,"payload":"/wA=","producer":"p","publish_time":1700000000000,"topic":"/default/t-part-0"}"#]].assert_eq(&json(&message(&[0xff, 0x00])).to_string());
    }

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_matches_its_published_vectors() {
        let encoded: Vec<String> =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|s| base64(s.as_bytes())).into();
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
