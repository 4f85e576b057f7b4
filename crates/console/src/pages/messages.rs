//! The message browser: messages where they lie, read without a trace, decoded by their schema.

use super::trail_of_topic;
use crate::admin::Answer;
use crate::layout::Page;
use crate::links::{self, heads};
use crate::model::{Message, Topic};
use crate::payload::Body;
use crate::problem::Problem;
use crate::request::{Request, topic_path, with_query};
use crate::server::Shared;
use crate::words::{bytes, count, number, time};
use maud::{Markup, html};
use serde_json::{Value, json};

/// Messages of one page.
const COUNT: u64 = 20;

/// Where a look begins: a position for the operation, or why what was given is none.
pub(super) fn position(request: &Request) -> Option<String> {
    match request.query("by") {
        Some("offset") => Some(format!("offset:{}", request.query("offset")?.trim())),
        Some("time") => Some(format!("time:{}", zoned(request.query("time")?))),
        Some(word @ ("earliest" | "latest")) => Some(word.to_owned()),
        _ => None,
    }
}

/// What a browser's field for a date and a time gives, as RFC 3339 wants it.
fn zoned(time: &str) -> String {
    let time = time.trim();
    match time.len() {
        _ if time.ends_with(['Z', 'z'])
            || time.get(11..).is_some_and(|rest| rest.contains(['+', '-'])) =>
        {
            time.to_owned()
        }
        16 => format!("{time}:00Z"),
        _ => format!("{time}Z"),
    }
}

pub(super) async fn list(shared: &Shared, request: &Request, name: &str) -> Result<Page, Problem> {
    let described: Answer<Topic> =
        shared.admin.read(("topics", "describe"), json!({"topic": name})).await?;
    let subscription = request.query("subscription");
    let from =
        position(request).or_else(|| match (subscription, described.data.partitions.as_slice()) {
            (Some(_), _) => None,
            // The last ones, where it is one partition that can be counted back in.
            (None, [part]) => {
                let first = part.next_offset.saturating_sub(COUNT).max(part.start_offset);
                Some(format!("offset:{first}"))
            }
            (None, _) => Some("earliest".to_owned()),
        });
    let subscription = subscription.filter(|_| from.is_none());
    let wanted = json!({"topic": name, "from": from, "subscription": subscription, "count": COUNT});
    let Answer { data, line } =
        shared.admin.read::<Vec<Message>>(("topics", "peek"), wanted).await?;
    let body = html! {
        (begin(name, request))
        p.quiet role="status" {
            (count(data.len() as u64, "message", "messages"))
            @if let Some(name) = subscription { ", from the first that " (name) " has not finished" }
            @else if let Some(from) = &from { ", from " (from) }
            ". Looking leaves no trace."
        }
        @if data.is_empty() { p.notice { "There is no message from there on." } }
        @else { (table(&data)) }
        (steps(name, &data, &described.data))
    };
    Ok(Page {
        title: "Messages".to_owned(),
        section: "/topics",
        trail: trail_of_topic(name),
        body,
        lines: vec![line],
        ..Page::default()
    })
}

fn begin(name: &str, request: &Request) -> Markup {
    let words = [
        ("", "the last ones"),
        ("earliest", "the earliest"),
        ("offset", "an offset"),
        ("time", "a time (UTC)"),
    ];
    place(request, &topic_path(name, &["messages"]), "Begin at", &words, "Look")
}

/// A form that asks for a place in a topic, as [`position`] reads it.
pub(super) fn place(
    request: &Request,
    action: &str,
    label: &str,
    words: &[(&str, &str)],
    submit: &str,
) -> Markup {
    let by = request.query("by").or(words.first().map(|(word, _)| *word));
    html! {
        form.search method="get" action=(action) {
            div {
                label for="by" { (label) }
                select #by name="by" {
                    @for (word, meaning) in words {
                        option value=(word) selected[Some(*word) == by] { (meaning) }
                    }
                }
            }
            div {
                label for="offset" { "Offset" }
                input #offset type="number" min="0" name="offset" value=[request.query("offset")];
            }
            div {
                label for="time" { "Time" }
                input #time type="datetime-local" step="1" name="time" value=[request.query("time")];
            }
            button.action type="submit" { (submit) }
        }
    }
}

fn table(messages: &[Message]) -> Markup {
    html! {
        table.cards {
            (heads("Messages", &["Message", "Published", "Key", "#Size", "Payload"]))
            tbody { @for message in messages {
                tr {
                    th scope="row" { (links::message(&message.topic, message.offset)) }
                    td data-label="Published" { (time(message.publish_time)) }
                    td data-label="Key" { (message.key.as_deref().unwrap_or("—")) }
                    td.n data-label="Size" { (bytes(message.size)) }
                    td.long data-label="Payload" { code { (Body::of(message).short()) } }
                }
            } }
        }
    }
}

/// On to later and earlier ones, where offsets of one partition can be counted.
fn steps(name: &str, messages: &[Message], topic: &Topic) -> Markup {
    let [part] = topic.partitions.as_slice() else {
        return html! {
            p.quiet { "These are of all partitions together; one partition can be leafed through: " }
            ul.plain { @for part in &topic.partitions { li { a href=(topic_path(&part.name, &["messages"])) { (part.name) } } } }
        };
    };
    let at = |offset: u64| {
        with_query(
            &topic_path(name, &["messages"]),
            &[("by", "offset"), ("offset", &offset.to_string())],
        )
    };
    let first = messages.first().map_or(part.next_offset, |message| message.offset);
    let last = messages.last().map_or(part.next_offset, |message| message.offset.saturating_add(1));
    html! {
        nav.pager aria-label="Messages" {
            @if first > part.start_offset {
                a.action href=(at(part.start_offset)) { "Earliest" }
                a.action rel="prev" href=(at(first.saturating_sub(COUNT).max(part.start_offset))) { "Earlier" }
            }
            @if last < part.next_offset { a.action rel="next" href=(at(last)) { "Later" } }
            span.quiet { "Offsets " (number(part.start_offset)) " to " (number(part.next_offset)) }
        }
    }
}

/// The message at that offset.
pub(super) async fn read(
    shared: &Shared,
    name: &str,
    offset: &str,
) -> Result<Answer<Message>, Problem> {
    let wanted: u64 = offset.parse().map_err(|_| {
        Problem::not_found(format!("`{}` is no offset", offset.escape_debug()))
            .next("an offset is a whole number, as the list of messages shows it")
    })?;
    let asked = json!({"topic": name, "from": format!("offset:{wanted}"), "count": 1});
    let answer = shared.admin.read::<Vec<Message>>(("topics", "peek"), asked).await?;
    let found = answer.data.into_iter().find(|message| message.offset == wanted);
    let data = found.ok_or_else(|| {
        Problem::not_found(format!("topic `{name}` has no message at offset {wanted}"))
            .next("retention may have taken it, or it is not there yet; its topic's page shows the offsets that it has")
    })?;
    Ok(Answer { data, line: answer.line })
}

pub(super) async fn one(shared: &Shared, name: &str, offset: &str) -> Result<Page, Problem> {
    let Answer { data, line } = read(shared, name, offset).await?;
    let body = html! {
        (facts(&data))
        h2 { "Payload" }
        p.quiet { (bytes(data.size)) ", read as " (data.encoding) }
        (Body::of(&data).whole())
        nav.pager aria-label="Messages" {
            @if data.offset > 0 { a.action rel="prev" href=(topic_path(name, &["messages", &(data.offset - 1).to_string()])) { "Before" } }
            a.action rel="next" href=(topic_path(name, &["messages", &data.offset.saturating_add(1).to_string()])) { "After" }
        }
    };
    let mut trail = trail_of_topic(name);
    trail.push(("Messages".to_owned(), topic_path(name, &["messages"])));
    Ok(Page {
        title: format!("Offset {}", data.offset),
        section: "/topics",
        trail,
        body,
        lines: vec![line],
        ..Page::default()
    })
}

/// What there is to say of a message besides its payload.
pub(super) fn facts(message: &Message) -> Markup {
    let schema = message.schema_id.map(|id| match message.schema_version {
        Some(version) => format!("id {id}, version {version}"),
        None => format!("id {id}"),
    });
    html! {
        dl.rows {
            div { dt { "Topic" } dd { (links::topic(&message.topic)) } }
            div { dt { "Published" } dd { (time(message.publish_time)) " by " (message.producer) } }
            div { dt { "Key" } dd { @match &message.key { Some(key) => code { (key) }, None => span.quiet { "none" } } } }
            @if let Some(schema) = schema { div { dt { "Schema" } dd { (schema) } } }
            @for (name, value) in &message.attributes { div { dt { code { (name) } } dd { (value) } } }
        }
    }
}

/// Whether a text can stand in a field as it is and come back the same.
pub(super) fn editable(message: &Message) -> Option<String> {
    match (&message.payload, message.encoding.as_str()) {
        (Value::String(text), "text") if !text.contains('\r') => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browsers_time_is_utc_unless_it_says_otherwise() {
        for (given, wanted) in [
            ("2026-11-30T12:03", "2026-11-30T12:03:00Z"),
            ("2026-11-30T12:03:05", "2026-11-30T12:03:05Z"),
            ("2026-11-30T12:03:05Z", "2026-11-30T12:03:05Z"),
            ("2026-11-30T12:03:05+01:00", "2026-11-30T12:03:05+01:00"),
        ] {
            assert_eq!(zoned(given), wanted);
        }
    }
}
