//! One topic: what it is for, what it does now, its subscriptions with the reason why each does
//! not move, and every setting with where it comes from.

use crate::admin::{Answer, known};
use crate::form;
use crate::history::Sample;
use crate::layout::{Page, sentence};
use crate::links::{self, heads};
use crate::model::{Explanation, Setting, Status, Subscription, Topic};
use crate::problem::Problem;
use crate::request::topic_path;
use crate::server::Shared;
use crate::spark;
use crate::words::{Level, chip, clock, count, intent, number, rate, reason, sharing, survives};
use danube_ops::Op;
use maud::{Markup, html};
use serde_json::json;

pub(super) async fn show(shared: &Shared, name: &str) -> Result<Page, Problem> {
    let topic = json!({"topic": name});
    let described: Answer<Topic> = shared.admin.read(("topics", "describe"), topic.clone()).await?;
    let explained: Answer<Explanation> = shared.admin.read(("topics", "explain"), topic).await?;
    // The search is for what has this in its name: the topic is the first that is called so.
    let wanted = json!({"search": name, "sort": "name", "limit": 5});
    let status: Answer<Status> = shared.admin.read(("", "overview"), wanted).await?;
    let (data, lines) = (described.data, vec![described.line, explained.line]);
    let live = html! {
        (now(shared, &status.data, &data))
        (subscriptions(&data))
        (failing(&data))
    };
    let body = html! {
        (actions(shared, &data))
        (meaning(&data, &explained.data))
        (settings("Settings of the topic", &explained.data.settings))
        (partitions(&data))
    };
    Ok(Page {
        title: data.topic.clone(),
        section: "/topics",
        trail: vec![("Topics".to_owned(), "/topics".to_owned())],
        live: Some(live),
        body,
        lines,
        ..Page::default()
    })
}

/// Rates and messages, where the broker's overview has the topic.
fn now(shared: &Shared, status: &Status, data: &Topic) -> Markup {
    let row = status.rows.iter().find(|row| row.topic == data.topic);
    let figures = row.map(|row| row.figures.clone()).unwrap_or_default();
    let sample = Sample {
        at: status.now,
        in_per_s: figures.in_per_s,
        out_per_s: figures.out_per_s,
        backlog: figures.backlog as f64,
    };
    let history = shared.histories.look(&data.topic, sample);
    let charted = |name: &str, now: &str, get: fn(&Sample) -> f64| {
        let points: Vec<(u64, f64)> =
            history.iter().map(|sample| (sample.at, get(sample))).collect();
        let chart = spark::chart(&format!("{name}: now {now}"), status.now, &points);
        links::tile(name, now, &chart)
    };
    let (published, finished) = (rate(figures.in_per_s), rate(figures.out_per_s));
    let backlog = number(data.subscriptions.iter().map(|known| known.backlog).sum());
    let kept: u64 = data.partitions.iter().map(|part| part.next_offset - part.start_offset).sum();
    html! {
        p.lead {
            @match &data.intent {
                Some(known) => { strong { (known.intent) } " · " (intent(&known.intent)) },
                None => "Made without an intent.",
            }
            @if data.delivery == "Reliable" { " A publish that was acknowledged " } @else { " Its messages are " }
            (survives(&data.delivery, &data.wal_sync_mode)) "."
        }
        dl.tiles {
            @if row.is_some() {
                (charted("Published", &published, |s| s.in_per_s))
                (charted("Finished", &finished, |s| s.out_per_s))
            }
            (charted("Backlog", &backlog, |s| s.backlog))
            div {
                dt { "Kept" }
                dd { (number(kept)) }
                dd.quiet {
                    (count(data.partitions.len() as u64, "partition", "partitions")) ", "
                    (count(figures.producers, "producer", "producers"))
                }
            }
        }
    }
}

fn subscriptions(data: &Topic) -> Markup {
    html! {
        section aria-labelledby="subscriptions" {
            h2 #subscriptions { "Subscriptions" }
            @if data.subscriptions.is_empty() {
                p.notice {
                    "Nobody has subscribed yet. "
                    @if data.delivery == "Reliable" {
                        "What comes now is there for whoever subscribes from the earliest message on."
                    } @else { "What comes now goes to nobody." }
                }
            } @else {
                table.cards {
                    (heads(
                "Subscriptions, and why each does not move",
                &["Subscription", "#Lag", "#In flight", "#Retrying", "#Blocked", "#Consumers", "Why it does not move"],
            ))
            tbody { @for known in &data.subscriptions { (subscription(data, known)) } }
                }
            }
        }
    }
}

fn subscription(data: &Topic, known: &Subscription) -> Markup {
    let connected = known.consumers.iter().filter(|consumer| consumer.connected).count();
    let why = reason(&known.why_code);
    html! {
        tr {
            th scope="row" {
                (links::subscription(&known.topic, &known.name))
                @if known.topic != data.topic { span.quiet { " on " (known.topic) } }
                span.quiet title=(sharing(&known.r#type)) { " · " (known.r#type) }
            }
            td.n data-label="Lag" { (number(known.backlog)) }
            td.n data-label="In flight" { (number(known.in_flight)) }
            td.n data-label="Retrying" { (number(known.waiting)) }
            td.n data-label="Blocked" { (number(known.blocked)) }
            td.n data-label="Consumers" { (connected) }
            td data-label="Why" { (chip(why.level, why.word)) " " span.why { (sentence(&known.why)) } }
        }
    }
}

fn failing(data: &Topic) -> Markup {
    let all = data
        .subscriptions
        .iter()
        .flat_map(|known| known.failing.iter().map(move |failing| (known, failing)));
    let blocked: Vec<_> = all.filter(|(_, failing)| failing.blocked).collect();
    html! {
        @if !blocked.is_empty() {
            section aria-labelledby="blocked" {
                h2 #blocked { "Blocked keys and messages" }
                table.cards {
                    (heads(
                "Messages that block",
                &["Message", "Key", "Subscription", "Since", "#Attempts", "Last reason"],
            ))
                    tbody {
                        @for (known, failing) in blocked {
                            tr {
                                th scope="row" { (links::message(&known.topic, failing.offset)) }
                                td data-label="Key" { (failing.key.as_deref().unwrap_or("—")) }
                                td data-label="Subscription" { (links::subscription(&known.topic, &known.name)) }
                                td data-label="Since" {
                                    @match failing.blocked_since {
                                        Some(at) => (clock(at)),
                                        None => "before the last start",
                                    }
                                }
                                td.n data-label="Attempts" { (failing.attempts) }
                                td data-label="Reason" { (failing.reason) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn actions(shared: &Shared, data: &Topic) -> Markup {
    let here = topic_path(&data.topic, &[]);
    let topic = [("topic", data.topic.as_str())];
    let is_kept = data.delivery == "Reliable";
    let letters = data.intent.as_ref().and_then(|known| known.dead_letter_topic.as_deref());
    let letters = letters.or_else(|| {
        let mut policies = data.subscriptions.iter().filter_map(|s| s.failure_policy.as_ref());
        policies.find_map(|policy| policy.dead_letter_topic.as_deref())
    });
    let is_letters = data.topic.ends_with("-dlq");
    let button =
        |op: &'static Op, then: &str, label: &str| form::button(shared, op, &topic, then, label);
    html! {
        section aria-labelledby="actions" {
            h2 #actions { "Look and act" }
            div.actions {
                @if is_kept { a.action href=(topic_path(&data.topic, &["messages"])) { "Messages" } }
                @if is_letters { a.action href=(topic_path(&data.topic, &["dead-letters"])) { "Dead letters" } }
                @else if let Some(letters) = letters {
                    a.action href=(topic_path(letters, &["dead-letters"])) { "Dead letters" }
                }
                (form::link(known(("topics", "publish")), &topic, &here, "Publish"))
                (form::link(known(("topics", "create-subscription")), &topic, &here, "Create a subscription"))
                (form::link(known(("topics", "configure")), &topic, &here, "Configure"))
                (form::link(known(("topics", "configure-schema")), &topic, &here, "Set a schema"))
                (button(known(("topics", "unload")), &here, "Unload"))
                (button(known(("topics", "delete")), "/topics", "Delete …"))
            }
        }
    }
}

fn meaning(data: &Topic, explained: &Explanation) -> Markup {
    html! {
        section aria-labelledby="meaning" {
            h2 #meaning { "What holds" }
            dl.rows {
                div { dt { "A publish" } dd { (sentence(&explained.publish)) } }
                div { dt { "An ack" } dd { (sentence(&explained.ack)) } }
                @for (name, of) in &explained.subscriptions {
                    @if let Some(failures) = &of.failures {
                        div { dt { "Failures in " (name) } dd { (sentence(failures)) } }
                    }
                }
                div { dt { "Schema" } dd {
                    @match &data.schema_subject {
                        Some(subject) => {
                            a href=(crate::request::path(&["schemas", subject])) { (subject) }
                            @if let Some(version) = data.schema_version { ", version " (version) }
                            @if let Some(kind) = &data.schema_type { ", " (kind) }
                            @if let Some(policy) = &data.validation_policy { ", validation " (policy) }
                        }
                        None => "none",
                    }
                } }
            }
        }
    }
}

/// Settings with where each comes from.
pub(super) fn settings(title: &str, settings: &[Setting]) -> Markup {
    html! {
        details open {
            summary { h2.inline { (title) } }
            table.cards {
                (heads(title, &["Setting", "Value", "From"]))
                tbody {
                    @for setting in settings {
                        tr {
                            th scope="row" { (setting.name) }
                            td data-label="Value" { (setting.value) @if shows_unit(setting) { " " (setting.unit) } }
                            td data-label="From" { (origin(&setting.origin)) }
                        }
                    }
                }
            }
        }
    }
}

/// The name of a time ends in its unit already.
fn shows_unit(setting: &Setting) -> bool {
    let is_number = setting.value.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !setting.unit.is_empty() && setting.unit != "ms"
}

/// What somebody set is told from what is inherited.
fn origin(origin: &str) -> Markup {
    match origin {
        "override" => chip(Level::Calm, "override"),
        other => html! { span.quiet { (other) } },
    }
}

fn partitions(data: &Topic) -> Markup {
    html! {
        details open[data.partitions.len() > 1] {
            summary { h2.inline { "Partitions" } }
            table.cards {
                (heads(
                "Partitions and their offsets",
                &["Partition", "#First offset", "#Next offset"],
            ))
                tbody {
                    @for part in &data.partitions {
                        tr {
                            th scope="row" { (links::topic(&part.name)) }
                            td.n data-label="First offset" { (number(part.start_offset)) }
                            td.n data-label="Next offset" { (number(part.next_offset)) }
                        }
                    }
                }
            }
        }
    }
}
