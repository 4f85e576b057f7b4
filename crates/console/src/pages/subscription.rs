//! One subscription: the reason why it does not move, in a sentence, with what can be done about
//! it; then who reads, what fails, and what the policy says.

use super::trail_of_topic;
use crate::admin::{Answer, known};
use crate::form::{self, button};
use crate::layout::{Page, sentence};
use crate::links::{self, heads};
use crate::model::{Explained, Explanation, Failing, FailurePolicy, Subscription, Topic};
use crate::problem::Problem;
use crate::request::topic_path;
use crate::server::Shared;
use crate::words::{self, Level, chip, clock, count, number, reason, sharing, span};
use axum::http::StatusCode;
use maud::{Markup, html};
use serde_json::json;

pub(super) async fn show(shared: &Shared, topic: &str, name: &str) -> Result<Page, Problem> {
    let wanted = json!({"topic": topic});
    let described: Answer<Topic> =
        shared.admin.read(("topics", "describe"), wanted.clone()).await?;
    let explained: Answer<Explanation> = shared.admin.read(("topics", "explain"), wanted).await?;
    let each: Vec<&Subscription> =
        described.data.subscriptions.iter().filter(|known| known.name == name).collect();
    let Some(first) = each.first() else {
        return Err(Problem::not_found(format!("topic `{topic}` has no subscription `{name}`"))
            .next("the topic's page shows which it has"));
    };
    let now = shared_now();
    let letters = letters(first);
    let has_letters = match is_blocked(first) {
        // Only where somebody is offered to send messages there.
        true => has_topic(shared, &letters).await?,
        false => true,
    };
    let to = Letters { name: &letters, is_there: has_letters };
    let live = html! {
        @for one in &each { (why(shared, topic, one, &to, now)) }
        @for one in &each { (failing(one, now)) }
        @for one in &each { (consumers(one)) }
    };
    let policy = first.failure_policy.as_ref();
    let of = explained.data.subscriptions.get(name);
    let body = html! {
        (actions(shared, topic, first))
        @if let Some(policy) = policy { (policy_words(policy, of)) }
        @if let Some(of) = of { (super::topic::settings("Settings of the subscription", &of.settings)) }
    };
    let op = known(("topics", "why"));
    let arguments = crate::admin::arguments(json!({"topic": topic, "subscription": name}));
    Ok(Page {
        title: name.to_owned(),
        section: "/topics",
        trail: trail_of_topic(topic),
        live: Some(live),
        body,
        lines: vec![op.command_line(&arguments), described.line],
        ..Page::default()
    })
}

/// Where dead letters of a subscription go, or would go.
struct Letters<'a> {
    name: &'a str,
    is_there: bool,
}

fn letters(one: &Subscription) -> String {
    let named = one.failure_policy.as_ref().and_then(|policy| policy.dead_letter_topic.clone());
    named.unwrap_or_else(|| format!("{}-dlq", base(&one.topic)))
}

fn is_blocked(one: &Subscription) -> bool {
    one.failing.iter().any(|failing| failing.blocked)
}

async fn has_topic(shared: &Shared, name: &str) -> Result<bool, Problem> {
    let wanted = json!({"topic": name});
    match shared.admin.read::<Topic>(("topics", "describe"), wanted).await {
        Ok(_) => Ok(true),
        Err(problem) if problem.status == StatusCode::NOT_FOUND => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// The present moment, in milliseconds since 1970; only to say how long ago something was.
fn shared_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The reason, big; what it means; what can be done.
fn why(shared: &Shared, topic: &str, one: &Subscription, to: &Letters<'_>, now: u64) -> Markup {
    let blocking = one.failing.iter().find(|failing| failing.blocked);
    let code = match (blocking, one.why_code.as_str()) {
        // That nobody is connected is no reason to keep silent about what blocks.
        (Some(_), code) if !matches!(code, "key_blocked" | "blocked") => "blocked",
        (_, code) => code,
    };
    let known_reason = reason(code);
    let class = match known_reason.level {
        Level::Bad => "why bad",
        Level::Warn => "why warn",
        Level::Calm => "why calm",
        Level::Good => "why good",
    };
    html! {
        section class=(class) aria-label="Why it does not move" {
            p { (chip(known_reason.level, known_reason.word)) @if one.topic != topic { " on " (one.topic) } }
            p.because {
                @match blocking {
                    Some(failing) => (blocked(one, failing, now)),
                    None => (sentence(&one.why)),
                }
            }
            @if blocking.is_some() && !matches!(one.why_code.as_str(), "key_blocked" | "blocked") {
                p { "Also: " (sentence(&one.why)) }
            }
            @if let (None, Some(failing)) = (blocking, one.failing.first()) {
                p { (again(failing, now)) }
            }
            p.quiet { (known_reason.advice) }
            @if let Some(failing) = blocking { (remedies(shared, one, failing, to)) }
            dl.tiles.small {
                div { dt { "Lag" } dd { (number(one.backlog)) } }
                div { dt { "In flight" } dd { (number(one.in_flight)) @if one.max_unacked_messages > 0 { span.quiet { " of " (number(one.max_unacked_messages.into())) } } } }
                div { dt { "Retrying" } dd { (number(one.waiting)) } }
                div { dt { "Blocked" } dd { (number(one.blocked)) } }
                div { dt { "Cursor" } dd { (number(one.cursor)) } }
                @if one.unmatched > 0 { div { dt { "Skipped: no filter" } dd { (number(one.unmatched)) } } }
                @if one.dropped > 0 { div { dt { "Dropped" } dd { (number(one.dropped)) } } }
            }
        }
    }
}

/// "Blocked since 12:03:05 by offset 41, key order-7, after 6 attempts; the last reason was …"
fn blocked(one: &Subscription, failing: &Failing, now: u64) -> Markup {
    let path = topic_path(&one.topic, &["messages", &failing.offset.to_string()]);
    html! {
        "Blocked "
        @if let Some(at) = failing.blocked_since { "since " (clock(at)) " (" (span(now.saturating_sub(at))) ") " }
        @else { "since before the broker's last start " }
        "by " a href=(path) { "offset\u{a0}" (failing.offset) }
        @if let Some(key) = &failing.key { ", key " code { (key) } }
        ", after " (count(failing.attempts.into(), "attempt", "attempts"))
        @if failing.reason.is_empty() { "; no reason was given." }
        @else { "; the last reason was: " q { (failing.reason) } }
    }
}

fn again(failing: &Failing, now: u64) -> Markup {
    html! {
        "Offset " (failing.offset)
        @if let Some(key) = &failing.key { ", key " code { (key) } }
        ", failed " (count(failing.attempts.into(), "time", "times"))
        @if !failing.reason.is_empty() { "; the last reason was: " q { (failing.reason) } }
        @if let Some(at) = failing.due_at { "; it comes again in " (span(at.saturating_sub(now))) } "."
    }
}

fn remedies(shared: &Shared, one: &Subscription, failing: &Failing, to: &Letters<'_>) -> Markup {
    let here = topic_path(&one.topic, &["subscriptions", &one.name]);
    let offset = failing.offset.to_string();
    let next = failing.offset.saturating_add(1).to_string();
    let dead_letter = [
        ("topic", base(&one.topic)),
        ("subscription", one.name.as_str()),
        ("poison_policy", "dead_letter"),
    ];
    let skip = crate::request::with_query(
        &topic_path(&one.topic, &["subscriptions", &one.name, "seek"]),
        &[("by", "offset"), ("offset", next.as_str())],
    );
    html! {
        div.actions {
            a.action href=(topic_path(&one.topic, &["messages", &offset])) { "Read the message" }
            @if to.is_there {
                (button(shared, known(("topics", "set-failure-policy")), &dead_letter, &here, "Send it to the dead letters"))
            } @else {
                (button(shared, known(("topics", "create")), &[("topic", to.name), ("intent", "event_stream")], &here, "Create the dead-letter topic, to send it there"))
            }
            @if one.cursor == failing.offset { a.action href=(skip) { "Move the cursor past it …" } }
        }
        p.quiet {
            "Sending it to the dead letters sets the failure policy of this subscription to "
            code { "dead_letter" } ": what blocks now and what fails from now on is copied to " (to.name) ", where it can be mended and replayed."
        }
    }
}

/// The topic that a partition is of: a policy is for all of them.
fn base(topic: &str) -> &str {
    match topic.rsplit_once("-part-") {
        Some((base, index)) if index.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => topic,
    }
}

fn failing(one: &Subscription, now: u64) -> Markup {
    html! {
        @if !one.failing.is_empty() {
            section aria-labelledby={ "failing-" (one.topic) } {
                h2 id={ "failing-" (one.topic) } { "Failing messages" }
                table.cards {
                    (heads(
                "Messages that failed and are not finished",
                &["Message", "Key", "State", "#Attempts", "Last reason"],
            ))
            tbody { @for failing in &one.failing {
                        tr {
                            th scope="row" { (links::message(&one.topic, failing.offset)) }
                            td data-label="Key" { (failing.key.as_deref().unwrap_or("—")) }
                            td data-label="State" { (state(failing, now)) }
                            td.n data-label="Attempts" { (failing.attempts) }
                            td data-label="Reason" { (failing.reason) }
                        }
                    } }
                }
            }
        }
    }
}

fn state(failing: &Failing, now: u64) -> Markup {
    match (failing.blocked, failing.blocked_since, failing.due_at) {
        (true, Some(at), _) => html! { (chip(Level::Bad, "Blocks")) " since " (clock(at)) },
        (true, None, _) => chip(Level::Bad, "Blocks"),
        (false, _, Some(at)) => html! {
            (chip(Level::Calm, "Waits")) " again in " (span(at.saturating_sub(now)))
        },
        (false, _, None) => chip(Level::Calm, "Under way"),
    }
}

fn consumers(one: &Subscription) -> Markup {
    let id = format!("consumers-{}", one.topic);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Consumers" }
            @if one.consumers.is_empty() { p.notice { "No consumer has subscribed by this name." } }
            @else {
                table.cards {
                    (heads("Consumers and what they hold", &["Consumer", "State", "#Holds", "Keys"]))
            tbody { @for consumer in &one.consumers {
                        tr {
                            th scope="row" { (consumer.name) }
                            td data-label="State" {
                                @if consumer.connected { (chip(Level::Good, "Connected")) }
                                @else { (chip(Level::Warn, "Away")) }
                            }
                            td.n data-label="Holds" { (number(consumer.in_flight)) }
                            td data-label="Keys" { @if consumer.key_filters.is_empty() { "all" } @else { (consumer.key_filters.join(", ")) } }
                        }
                    } }
                }
            }
            p.quiet { (one.r#type) ": " (sharing(&one.r#type)) "." }
        }
    }
}

fn actions(shared: &Shared, topic: &str, one: &Subscription) -> Markup {
    let here = topic_path(topic, &["subscriptions", &one.name]);
    let back = topic_path(topic, &[]);
    let names = [("topic", topic), ("subscription", one.name.as_str())];
    let from = crate::request::with_query(
        &topic_path(topic, &["messages"]),
        &[("subscription", one.name.as_str())],
    );
    let letters =
        one.failure_policy.as_ref().and_then(|policy| policy.dead_letter_topic.as_deref());
    html! {
        section aria-labelledby="actions" {
            h2 #actions { "Look and act" }
            div.actions {
                a.action href=(from) { "Unfinished messages" }
                @if let Some(letters) = letters { a.action href=(topic_path(letters, &["dead-letters"])) { "Dead letters" } }
                a.action href=(topic_path(topic, &["subscriptions", &one.name, "seek"])) { "Seek …" }
                (form::link(known(("topics", "set-failure-policy")), &names, &here, "Change the failure policy"))
                (form::link(known(("topics", "set-dispatch-config")), &names, &here, "Change the window"))
                (button(shared, known(("topics", "unsubscribe")), &names, &back, "Remove …"))
            }
        }
    }
}

fn policy_words(policy: &FailurePolicy, of: Option<&Explained>) -> Markup {
    let said = of.and_then(|of| of.failures.as_deref());
    html! {
        section aria-labelledby="policy" {
            h2 #policy { "When a message fails" }
            @if let Some(said) = said { p { (sentence(said)) } }
            dl.rows {
                div { dt { "Tried again" } dd { (count(policy.max_redelivery_count.into(), "time", "times")) ", " (policy.backoff_strategy) " delay from " (span_ms(policy.base_redelivery_delay_ms)) " to " (span_ms(policy.max_redelivery_delay_ms)) } }
                div { dt { "A consumer may hold it" } dd { (span_ms(policy.ack_timeout_ms)) } }
                div { dt { "Failed for good" } dd { (policy.poison_policy) ": " (words::poison(&policy.poison_policy)) } }
                @if let Some(letters) = &policy.dead_letter_topic {
                    div { dt { "Dead letters" } dd { a href=(topic_path(letters, &["dead-letters"])) { (letters) } } }
                }
            }
        }
    }
}

/// Short times to the millisecond, longer ones in words.
fn span_ms(ms: u64) -> String {
    if ms < 1_000 || !ms.is_multiple_of(1_000) { format!("{} ms", number(ms)) } else { span(ms) }
}
