//! The pages, one file each under one list. A page asks operations and lays out what they answer.
//!
//! Law: showing a page changes nothing.

pub(crate) mod apply;
mod broker;
mod dead_letters;
mod messages;
mod namespaces;
mod operations;
mod overview;
mod schemas;
mod seek;
mod subscription;
mod topic;
mod topics;

use crate::layout::Page;
use crate::problem::Problem;
use crate::request::Request;
use crate::server::Shared;

/// The page that a request asks for.
///
/// # Errors
/// When there is none, or the broker does not tell what it shows.
pub(crate) async fn show(shared: &Shared, request: &Request) -> Result<Page, Problem> {
    let parts: Vec<&str> = request.parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => overview::show(shared).await,
        ["topics"] => topics::show(shared, request).await,
        ["topics", namespace, topic, rest @ ..] => {
            let name = format!("/{namespace}/{topic}");
            match rest {
                [] => topic::show(shared, &name).await,
                ["messages"] => messages::list(shared, request, &name).await,
                ["messages", offset] => messages::one(shared, &name, offset).await,
                ["dead-letters"] => dead_letters::list(shared, &name).await,
                ["dead-letters", offset] => dead_letters::one(shared, &name, offset).await,
                ["subscriptions", subscription] => {
                    subscription::show(shared, &name, subscription).await
                }
                ["subscriptions", subscription, "seek"] => {
                    seek::show(shared, request, &name, subscription).await
                }
                _ => Err(nothing()),
            }
        }
        ["schemas"] => schemas::list(shared).await,
        ["schemas", subject] => schemas::one(shared, request, subject).await,
        ["namespaces"] => namespaces::list(shared).await,
        ["namespaces", name] => namespaces::one(shared, name).await,
        ["broker"] => broker::show(shared).await,
        ["apply"] => Ok(apply::form(shared, "")),
        ["operations"] => Ok(operations::list()),
        ["operations", verb] => operations::one(shared, request, "", verb),
        ["operations", noun, verb] => operations::one(shared, request, noun, verb),
        ["outcomes", number] => crate::act::outcome(shared, number),
        _ => Err(nothing()),
    }
}

/// The table of topics, for tests.
#[cfg(test)]
pub(crate) fn table_of_topics(rows: &[crate::model::Row]) -> maud::Markup {
    topics::table(rows)
}

fn nothing() -> Problem {
    Problem::not_found("there is no page at this address")
        .next("look for it from the overview, or among all topics")
}

/// Where topics are in the trail.
fn trail_of_topic(name: &str) -> Vec<(String, String)> {
    vec![
        ("Topics".to_owned(), "/topics".to_owned()),
        (name.to_owned(), crate::request::topic_path(name, &[])),
    ]
}
