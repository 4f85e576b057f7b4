//! The first page: what needs attention before anything else, then what the broker does.

use crate::admin::Answer;
use crate::history::Sample;
use crate::layout::{Page, sentence};
use crate::links;
use crate::model::{Attention, Status};
use crate::problem::Problem;
use crate::request::topic_path;
use crate::server::Shared;
use crate::spark;
use crate::words::{self, bytes, chip, count, number, rate, reason, span};
use maud::{Markup, html};
use serde_json::json;

/// Topics that are shown.
const ROWS: u32 = 10;

pub(super) async fn show(shared: &Shared) -> Result<Page, Problem> {
    let wanted = json!({"limit": ROWS, "sort": "backlog"});
    let Answer { data, line } = shared.admin.read::<Status>(("", "overview"), wanted).await?;
    let total = &data.total;
    let sample = Sample {
        at: data.now,
        in_per_s: total.in_per_s,
        out_per_s: total.out_per_s,
        backlog: total.backlog as f64,
    };
    let history = shared.histories.look("/", sample);
    let live = html! {
        (attention(&data))
        (figures(&data, &history))
        section aria-labelledby="largest" {
            h2 #largest { "Largest backlogs" }
            (super::topics::table(&data.rows))
            p { a href="/topics?sort=backlog" { "All " (count(data.topics, "topic", "topics")) } }
        }
    };
    let title = "Overview".to_owned();
    Ok(Page { title, section: "/", live: Some(live), lines: vec![line], ..Page::default() })
}

fn attention(data: &Status) -> Markup {
    let rest = data.attention_total.saturating_sub(data.attention.len() as u64);
    html! {
        section aria-labelledby="attention" {
            h2 #attention {
                "Needs attention"
                @if data.attention_total > 0 { " (" (number(data.attention_total)) ")" }
            }
            @if data.attention.is_empty() {
                p.calm { (chip(words::Level::Good, "Fine")) " Nothing needs attention." }
            }
            ol.attention {
                @for one in &data.attention { (line(one)) }
            }
            @if rest > 0 {
                p.quiet { (count(rest, "more needs", "more need")) " attention." }
            }
        }
    }
}

fn line(one: &Attention) -> Markup {
    let known = reason(&one.code);
    let (path, label) = match (&one.subscription, one.code.as_str()) {
        (_, "dead_letters") => (topic_path(&one.topic, &["dead-letters"]), "Read why and replay"),
        (Some(name), code) => {
            let label = match code {
                "key_blocked" | "blocked" => "Find the message",
                "no_consumer" | "no_consumer_for_key" => "See who is missing",
                _ => "See why",
            };
            (topic_path(&one.topic, &["subscriptions", name]), label)
        }
        (None, _) => (topic_path(&one.topic, &[]), "See the topic"),
    };
    html! {
        li {
            (chip(known.level, known.word))
            div {
                p.what {
                    (links::topic(&one.topic))
                    @if let Some(name) = &one.subscription {
                        " › " a href=(topic_path(&one.topic, &["subscriptions", name])) { (name) }
                    }
                }
                p { (sentence(&one.why)) }
                @if one.backlog > 0 && one.code != "dead_letters" {
                    p.quiet { (count(one.backlog, "message waits", "messages wait")) "." }
                }
            }
            a.action href=(path) { (label) }
        }
    }
}

fn figures(data: &Status, history: &[Sample]) -> Markup {
    let total = &data.total;
    let charted = |name: &str, now: &str, get: fn(&Sample) -> f64| {
        let points: Vec<(u64, f64)> =
            history.iter().map(|sample| (sample.at, get(sample))).collect();
        let highest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        // Neither a rate nor a backlog is beyond what a u64 holds.
        let most = number(highest.round() as u64);
        let label = format!("{name}: now {now}, at most {most} in what was seen lately");
        links::tile(name, now, &spark::chart(&label, data.now, &points))
    };
    let failures = count(data.log.failures, "write failed", "writes failed");
    html! {
        section aria-labelledby="now" {
            h2 #now { "Now" }
            dl.tiles {
                (charted("Published", &rate(total.in_per_s), |s| s.in_per_s))
                (charted("Finished", &rate(total.out_per_s), |s| s.out_per_s))
                (charted("Backlog", &number(total.backlog), |s| s.backlog))
                div {
                    dt { "Oldest unfinished" }
                    dd {
                        @match &data.oldest {
                            Some(oldest) => {
                                a href=(topic_path(&oldest.topic, &["subscriptions", &oldest.subscription])) {
                                    (span(data.now.saturating_sub(oldest.publish_time)))
                                }
                            }
                            None => "none",
                        }
                    }
                    @if let Some(oldest) = &data.oldest {
                        dd.quiet { "offset " (oldest.offset) " of " (oldest.topic) }
                    }
                }
                div { dt { "With consumers" } dd { (number(total.in_flight)) }
                    dd.quiet {
                        (number(total.waiting)) " wait to be tried again, "
                        (number(total.blocked)) " block"
                    } }
                div { dt { "Consumers" } dd { (number(total.consumers)) }
                    dd.quiet {
                        (count(total.producers, "producer", "producers")) ", "
                        (count(total.subscriptions, "subscription", "subscriptions"))
                    } }
                div { dt { "Topics" } dd { (number(data.topics)) }
                    dd.quiet { (count(total.messages, "message", "messages")) " kept" } }
                div { dt { "On disk" } dd { (bytes(data.log.bytes)) }
                    dd.quiet {
                        @if data.log.failures == 0 { "no write failed" }
                        @else { (chip(words::Level::Bad, &failures)) }
                    }
                }
            }
        }
    }
}
