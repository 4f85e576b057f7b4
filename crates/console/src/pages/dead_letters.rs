//! The dead letters of a topic: why they failed, in groups; mending one; replaying one, a group or
//! all.

use super::messages::{editable, facts, read};
use super::trail_of_topic;
use crate::admin::{Answer, known};
use crate::form::{self, button};
use crate::layout::Page;
use crate::links::{self, heads};
use crate::model::{Letter, Message, Replay};
use crate::payload::Body;
use crate::problem::Problem;
use crate::request::topic_path;
use crate::server::Shared;
use crate::words::{Level, chip, count, number};
use danube_ops::Effect;
use maud::{Markup, html};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// Dead letters that a page looks at.
const LETTERS_MAX: u64 = 200;
/// Characters of a reason in a list.
const REASON_LEN_MAX: usize = 200;

/// By subscription and reason.
type Groups<'a> = BTreeMap<(Option<&'a str>, Option<&'a str>), Vec<&'a Letter>>;

pub(super) async fn list(shared: &Shared, name: &str) -> Result<Page, Problem> {
    let wanted = json!({"topic": name, "dry_run": true, "limit": LETTERS_MAX});
    let Answer { data, line } =
        shared.admin.read::<Replay>(("topics", "replay-dlq"), wanted).await?;
    let bodies = bodies(shared, name, &data.letters).await?;
    let mut groups: Groups<'_> = BTreeMap::new();
    for letter in &data.letters {
        let of = (letter.subscription.as_deref(), letter.reason.as_deref());
        groups.entry(of).or_default().push(letter);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, letters)| std::cmp::Reverse(letters.len()));
    let waiting = data.letters.len() as u64;
    let is_cut = waiting >= LETTERS_MAX;
    let body = html! {
        p.lead {
            @if waiting == 0 { (chip(Level::Good, "None waits")) " Every dead letter has been replayed, or none came." }
            @else {
                (chip(Level::Warn, &count(waiting, "dead letter waits", "dead letters wait")))
                @if is_cut { " These are the first " (number(LETTERS_MAX)) "; replay them to see those behind." }
            }
        }
        @if data.replayed_before > 0 {
            p.quiet { (count(data.replayed_before, "was", "were")) " replayed before and " (if data.replayed_before == 1 { "is" } else { "are" }) " not shown. "
                a href=(topic_path(name, &["messages"])) { "All messages of this topic" } }
        }
        @for (number, ((subscription, reason), letters)) in groups.iter().enumerate() {
            (group(shared, name, number, *subscription, *reason, letters, &bodies))
        }
        @if waiting > 0 {
            section aria-labelledby="all" {
                h2 #all { "All of them" }
                div.actions {
                    (button(shared, known(("topics", "replay-dlq")), &[("topic", name)], &topic_path(name, &["dead-letters"]), "Replay all …"))
                    (form::link(known(("topics", "replay-dlq")), &[("topic", name)], &topic_path(name, &["dead-letters"]), "Replay some: to another topic, slowly, by attribute"))
                }
            }
        }
    };
    Ok(Page {
        title: "Dead letters".to_owned(),
        section: "/topics",
        trail: trail_of_topic(name),
        body,
        lines: vec![line],
        ..Page::default()
    })
}

/// The messages of these letters, by offset.
async fn bodies(
    shared: &Shared,
    name: &str,
    letters: &[Letter],
) -> Result<HashMap<u64, Message>, Problem> {
    let (Some(first), Some(last)) = (letters.first(), letters.last()) else {
        return Ok(HashMap::new());
    };
    // What lies between them was replayed before, and is read for nothing.
    let count = (last.offset - first.offset).saturating_add(1).min(LETTERS_MAX * 2);
    let wanted = json!({"topic": name, "from": format!("offset:{}", first.offset), "count": count});
    let answer = shared.admin.read::<Vec<Message>>(("topics", "peek"), wanted).await?;
    Ok(answer.data.into_iter().map(|message| (message.offset, message)).collect())
}

fn group(
    shared: &Shared,
    name: &str,
    number: usize,
    subscription: Option<&str>,
    reason: Option<&str>,
    letters: &[&Letter],
    bodies: &HashMap<u64, Message>,
) -> Markup {
    let here = topic_path(name, &["dead-letters"]);
    let why = reason.map(|reason| format!("x-failure-reason={reason}"));
    let mut fields = vec![("topic", name)];
    fields.extend(subscription.map(|subscription| ("subscription", subscription)));
    fields.extend(why.as_deref().map(|why| ("one.filter", why)));
    let id = format!("group-{number}");
    html! {
        section.group aria-labelledby=(id) {
            h2 id=(id) { (short(reason.unwrap_or("No reason was given"))) }
            p.quiet {
                (count(letters.len() as u64, "letter", "letters"))
                @if let Some(subscription) = subscription { ", failed in subscription " strong { (subscription) } }
            }
            div.actions {
                (button(shared, known(("topics", "replay-dlq")), &fields, &here, "Replay this group …"))
            }
            table.cards {
                (heads(
                "Dead letters of this group",
                &["Letter", "Key", "Goes back to", "Payload", "Mend"],
            ))
            tbody { @for letter in letters { (line(name, letter, bodies.get(&letter.offset))) } }
            }
        }
    }
}

fn line(name: &str, letter: &Letter, message: Option<&Message>) -> Markup {
    let path = topic_path(name, &["dead-letters", &letter.offset.to_string()]);
    html! {
        tr {
            th scope="row" {
                a href=(path) { "offset\u{a0}" (letter.offset) }
                @if letter.replay_count > 1 { span.quiet { " replayed " (count((letter.replay_count - 1).into(), "time", "times")) " before" } }
            }
            td data-label="Key" { (letter.key.as_deref().unwrap_or("—")) }
            td data-label="Goes back to" {
                @match &letter.error {
                    Some(error) => { (chip(Level::Warn, "Nowhere yet")) " " (error) },
                    None => (links::topic(&letter.to)),
                }
            }
            td.long data-label="Payload" { @if let Some(message) = message { code { (Body::of(message).short()) } } }
            td data-label="Mend" { a.action href=(path) { "Mend and replay" } }
        }
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(REASON_LEN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// One dead letter, with its payload to mend.
pub(super) async fn one(shared: &Shared, name: &str, offset: &str) -> Result<Page, Problem> {
    let Answer { data, line } = read(shared, name, offset).await?;
    let op = known(("topics", "replay-dlq"));
    let here = topic_path(name, &["dead-letters"]);
    let offset = data.offset.to_string();
    let fields = [("topic", name), ("offset", offset.as_str())];
    let is_allowed = shared.access == crate::Access::On || op.spec.effect == Effect::Read;
    let reason = data.attributes.get("x-failure-reason").map(String::as_str);
    let body = html! {
        div.notice.warn {
            p { "It failed: " strong { (reason.unwrap_or("no reason was given")) } }
        }
        @if let Some(text) = editable(&data) {
            form.fields method="post" action=(form::path(op)) {
                (form::token(shared))
                input type="hidden" name="then" value=(here);
                @for (name, value) in fields { input type="hidden" name={ "arg." (name) } value=(value); }
                div.field {
                    label for="payload" { "Payload" }
                    textarea #payload name="arg.payload" rows="9" spellcheck="false" aria-describedby="payload-help" { "\n" (text) }
                    p.hint #payload-help { "Mend it here. Key and attributes stay; it is held against its topic's schema. The dead letter itself stays as it is." }
                }
                div.actions { button.action type="submit" disabled[!is_allowed] { "Replay it like this …" } }
            }
        } @else {
            h2 { "Payload" }
            (Body::of(&data).whole())
            p.notice { "This payload is not plain text, so it cannot be mended here. It can be replayed as it is." }
        }
        div.actions { (button(shared, op, &fields, &here, "Replay it as it is …")) }
        h2 { "What came with it" }
        (facts(&data))
    };
    let payload = editable(&data).map(|_| "…");
    let replay = json!({"topic": name, "offset": data.offset, "payload": payload});
    let replay = op.command_line(&crate::admin::arguments(replay));
    let mut trail = trail_of_topic(name);
    trail.push(("Dead letters".to_owned(), here.clone()));
    Ok(Page {
        title: format!("Dead letter {}", data.offset),
        section: "/topics",
        trail,
        body,
        lines: vec![line, replay],
        ..Page::default()
    })
}
