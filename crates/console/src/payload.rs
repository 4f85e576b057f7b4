//! A message's body as people read it: JSON laid out, text as it is, anything else as bytes.
//!
//! Law: it is text to the browser, whatever is in it; and what is long is cut where that is said.

use crate::model::Message;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};
use serde_json::Value;
use std::fmt::Write as _;

/// Characters that a list shows of a body.
const SHORT_LEN_MAX: usize = 160;
/// Bytes that a page shows of a body.
const LONG_LEN_MAX: usize = 64 << 10;
/// Levels that are set in; what nests deeper stays at this one.
const DEPTH_MAX: usize = 40;
/// Bytes of one line of a dump.
const DUMP_LINE_LEN: usize = 16;

/// How a body was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// As JSON, or by the message's schema as that.
    Json(String),
    /// As UTF-8.
    Text(String),
    /// Not at all.
    Bytes(Vec<u8>),
}

impl Body {
    pub(crate) fn of(message: &Message) -> Body {
        match (&message.payload, message.encoding.as_str()) {
            (Value::String(text), "text") => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(_) | Value::Array(_)) => Body::Json(text.clone()),
                _ => Body::Text(text.clone()),
            },
            (Value::String(text), "base64") => match STANDARD.decode(text) {
                Ok(bytes) => Body::Bytes(bytes),
                Err(_) => Body::Text(text.clone()),
            },
            (value, _) => Body::Json(value.to_string()),
        }
    }

    /// On one line, cut short.
    pub(crate) fn short(&self) -> String {
        let line = match self {
            Body::Json(text) | Body::Text(text) => danube_ops::view::one_line(text),
            Body::Bytes(bytes) => {
                let first = bytes.iter().take(SHORT_LEN_MAX / 3);
                first.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
            }
        };
        cut(&line, SHORT_LEN_MAX)
    }

    /// In full, or as much as a page bears.
    pub(crate) fn whole(&self) -> Markup {
        let (text, len) = match self {
            Body::Json(text) => (lay_out(cut_at(text, LONG_LEN_MAX)), text.len()),
            Body::Text(text) => (text.clone(), text.len()),
            Body::Bytes(bytes) => {
                (dump(&bytes[..bytes.len().min(LONG_LEN_MAX / 4)]), bytes.len() * 4)
            }
        };
        html! {
            @if text.is_empty() { p.quiet { "The payload is empty." } }
            @else if matches!(self, Body::Bytes(_)) { pre.dump tabindex="0" { (text) } }
            @else { pre.payload tabindex="0" { (cut(&text, LONG_LEN_MAX)) } }
            @if len > LONG_LEN_MAX {
                p.quiet { "It is longer; this is its beginning. " code { "danube ctl topics peek" } " prints all of it." }
            }
        }
    }
}

/// The beginning of a text, at most so many bytes.
fn cut_at(text: &str, len_max: usize) -> &str {
    &text[..text.floor_char_boundary(len_max)]
}

/// JSON with a line per member; every word of it stays as it was written, in its order.
pub(crate) fn lay_out(json: &str) -> String {
    let (mut out, mut depth) = (String::with_capacity(json.len() * 2), 0_usize);
    let (mut in_text, mut is_escaped) = (false, false);
    let mut letters = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(DEPTH_MAX)));
    };
    while let Some(letter) = letters.next() {
        if in_text {
            out.push(letter);
            in_text = letter != '"' || is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        match letter {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                out.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            letter => {
                in_text = letter == '"';
                out.push(letter);
            }
        }
    }
    out
}

fn cut(text: &str, len_max: usize) -> String {
    match text.char_indices().nth(len_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Offsets, bytes in hexadecimal, and the letters among them.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, line) in bytes.chunks(DUMP_LINE_LEN).enumerate() {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let letter = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        let letters: String = line.iter().map(letter).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:06x}  {:<47}  {letters}", index * DUMP_LINE_LEN, hex.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: Value, encoding: &str) -> Message {
        Message {
            topic: "/n/t".into(),
            offset: 0,
            key: None,
            attributes: std::collections::BTreeMap::new(),
            publish_time: 0,
            producer: String::new(),
            schema_id: None,
            schema_version: None,
            size: 0,
            payload,
            encoding: encoding.into(),
        }
    }

    #[test]
    fn a_body_is_read_as_what_it_is() {
        let body = |text: &str, encoding| Body::of(&message(Value::from(text), encoding));
        assert_eq!(body("{\"a\":1}", "text"), Body::Json("{\"a\":1}".into()));
        assert_eq!(body("12", "text"), Body::Text("12".into()), "a number is text enough");
        assert_eq!(body("/wBB", "base64"), Body::Bytes(vec![0xff, 0, 0x41]));
        assert_eq!(body("?", "base64"), Body::Text("?".into()));
        let decoded = Body::of(&message(serde_json::json!({"id": 7}), "avro"));
        assert_eq!(decoded.short(), "{\"id\":7}");
        assert_eq!(body("a\nb", "text").short(), "a\\nb");
        assert_eq!(body("/wBB", "base64").short(), "ff 00 41");
    }

    #[test]
    fn json_is_laid_out_word_by_word() {
        let laid = lay_out(r#"{"b":1.50, "a" : [ ],"t":"x, {\"y\": [1]}","l":[1,{"k":null}]}"#);
        assert_eq!(
            laid,
            "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"t\": \"x, {\\\"y\\\": [1]}\",\n  \"l\": [\n    1,\n    \
             {\n      \"k\": null\n    }\n  ]\n}"
        );
        lay_out(&"[".repeat(10_000));
    }

    #[test]
    fn bytes_are_dumped_with_their_letters() {
        assert_eq!(
            dump(b"\xff\x00Apple <b>"),
            "000000  ff 00 41 70 70 6c 65 20 3c 62 3e                 ..Apple <b>\n"
        );
        let shown = Body::Bytes(b"<script>".to_vec()).whole().into_string();
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;"), "{shown}");
    }
}
