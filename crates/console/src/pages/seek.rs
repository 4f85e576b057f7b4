//! Moving a cursor: where to, and what that means, before it is done.

use super::messages::{place, position};
use super::trail_of_topic;
use crate::admin::{Answer, known};
use crate::form::button;
use crate::layout::Page;
use crate::links::heads;
use crate::model::{Message, Sought, Topic};
use crate::payload::Body;
use crate::problem::Problem;
use crate::request::{Request, topic_path};
use crate::server::Shared;
use crate::words::{count, number, time};
use maud::{Markup, html};
use serde_json::json;

pub(super) async fn show(
    shared: &Shared,
    request: &Request,
    topic: &str,
    subscription: &str,
) -> Result<Page, Problem> {
    let described: Answer<Topic> =
        shared.admin.read(("topics", "describe"), json!({"topic": topic})).await?;
    let wanted = position(request);
    let op = known(("topics", "seek"));
    let mut lines = vec![described.line.clone()];
    let preview = match &wanted {
        None => html! {},
        Some(to) => {
            let asked =
                json!({"topic": topic, "subscription": subscription, "to": to, "dry_run": true});
            let sought: Answer<Sought> = shared.admin.read(("topics", "seek"), asked).await?;
            let next = first(shared, &sought.data).await?;
            let done = json!({"topic": topic, "subscription": subscription, "to": to});
            lines = vec![op.command_line(&crate::admin::arguments(done))];
            let then = topic_path(topic, &["subscriptions", subscription]);
            let fields = [("topic", topic), ("subscription", subscription), ("to", to.as_str())];
            html! {
                section aria-labelledby="means" {
                    h2 #means { "What that means" }
                    @for part in &sought.data.partitions { (meaning(&described.data, part)) }
                    @if let Some(message) = &next { (message_there(message)) }
                    div.actions {
                        (button(shared, op, &fields, &then, "Move the cursor …"))
                        a.action href=(then) { "Leave it where it is" }
                    }
                }
            }
        }
    };
    let body = html! {
        (standing(&described.data, subscription))
        (form(request, topic, subscription))
        (preview)
    };
    let mut trail = trail_of_topic(topic);
    trail.push((subscription.to_owned(), topic_path(topic, &["subscriptions", subscription])));
    Ok(Page { title: "Seek".to_owned(), section: "/topics", trail, body, lines, ..Page::default() })
}

/// Where it stands now.
fn standing(topic: &Topic, subscription: &str) -> Markup {
    let each = topic.subscriptions.iter().filter(|known| known.name == subscription);
    html! {
        table.cards {
            (heads(
                "Where the subscription stands",
                &["Partition", "#Cursor", "#First offset", "#Next offset", "#Lag"],
            ))
            tbody { @for known in each {
                @let part = topic.partitions.iter().find(|part| part.name == known.topic);
                tr {
                    th scope="row" { (known.topic) }
                    td.n data-label="Cursor" { (number(known.cursor)) }
                    td.n data-label="First offset" { (part.map_or(0, |part| part.start_offset)) }
                    td.n data-label="Next offset" { (part.map_or(0, |part| part.next_offset)) }
                    td.n data-label="Lag" { (number(known.backlog)) }
                }
            } }
        }
    }
}

fn form(request: &Request, topic: &str, subscription: &str) -> Markup {
    let words = [
        ("offset", "an offset"),
        ("time", "a time (UTC)"),
        ("earliest", "the earliest"),
        ("latest", "the latest"),
    ];
    let here = topic_path(topic, &["subscriptions", subscription, "seek"]);
    place(request, &here, "Go on from", &words, "Preview")
}

fn meaning(topic: &Topic, part: &crate::model::SoughtPartition) -> Markup {
    let (old, new) = (part.old_offset, part.new_offset);
    let end = topic.partitions.iter().find(|known| known.name == part.topic);
    let left = end.map_or(0, |end| end.next_offset.saturating_sub(new));
    html! {
        p {
            strong { (part.topic) } ": "
            @if let Some(error) = &part.error { (error) }
            @else if new < old {
                "back from " (number(old)) " to " (number(new)) ": "
                (count(old - new, "message comes", "messages come")) " again that came before."
            } @else if new > old {
                "on from " (number(old)) " to " (number(new)) ": up to "
                (count(new - old, "message counts", "messages count")) " as finished and is never delivered to this subscription."
            } @else { "it stays at " (number(old)) "; what is out unacknowledged comes again." }
            " Then " (count(left, "message lies", "messages lie")) " ahead. What is out unacknowledged is void, and failed attempts are forgotten."
        }
    }
}

/// The first message that would come.
async fn first(shared: &Shared, sought: &Sought) -> Result<Option<Message>, Problem> {
    let [part] = sought.partitions.as_slice() else { return Ok(None) };
    let asked =
        json!({"topic": part.topic, "from": format!("offset:{}", part.new_offset), "count": 1});
    let answer = shared.admin.read::<Vec<Message>>(("topics", "peek"), asked).await?;
    Ok(answer.data.into_iter().next())
}

fn message_there(message: &Message) -> Markup {
    html! {
        p.quiet {
            "The first message is then offset " (message.offset) ", published " (time(message.publish_time))
            @if let Some(key) = &message.key { ", key " (key) } ":"
        }
        pre.payload tabindex="0" { (Body::of(message).short()) }
    }
}
