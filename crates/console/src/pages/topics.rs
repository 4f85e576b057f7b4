//! All topics: searched, sorted and cut into pages by the broker, so that ten thousand of them are
//! as quick as ten.

use crate::admin::{Answer, known};
use crate::layout::Page;
use crate::links::{self, heads};
use crate::model::{Row, Status};
use crate::problem::Problem;
use crate::request::{Request, with_query};
use crate::server::Shared;
use crate::words::{Level, chip, count, intent, number, rate, survives};
use maud::{Markup, html};
use serde_json::json;

/// Topics of one page.
const ROWS: u64 = 50;

/// What topics can be sorted by, and what that is called.
const ORDERS: &[(&str, &str)] = &[
    ("name", "name"),
    ("backlog", "backlog"),
    ("in", "published per second"),
    ("out", "finished per second"),
    ("blocked", "blocked messages"),
    ("consumers", "consumers"),
    ("messages", "messages kept"),
];

pub(super) async fn show(shared: &Shared, request: &Request) -> Result<Page, Problem> {
    let number_of = |name| request.query(name).and_then(|text| text.parse::<u64>().ok());
    let page = number_of("page").unwrap_or(1).clamp(1, 1_000_000);
    let sort = request.query("sort").unwrap_or("name");
    let (search, namespace) = (request.query("search"), request.query("namespace"));
    let wanted = json!({
        "search": search, "namespace": namespace, "sort": sort,
        "skip": (page - 1) * ROWS, "limit": ROWS,
    });
    let Answer { data, line } = shared.admin.read::<Status>(("", "overview"), wanted).await?;
    let pages = data.found.div_ceil(ROWS).max(1);
    let live = html! {
        p.quiet role="status" {
            (count(data.found, "topic", "topics"))
            @if data.found != data.topics { " of " (number(data.topics)) }
            @if pages > 1 { ", page " (number(page)) " of " (number(pages)) }
        }
        @if data.rows.is_empty() { (nothing(&data, search.is_some() || namespace.is_some())) }
        @else { (table(&data.rows)) }
        (pager(page, pages, request))
    };
    let create = known(("topics", "create"));
    let body = html! {
        div.actions { (crate::form::link(create, &[], "/topics", "Create a topic")) }
    };
    Ok(Page {
        title: "Topics".to_owned(),
        section: "/topics",
        top: search_form(search, namespace, sort),
        live: Some(live),
        body,
        lines: vec![line],
        ..Page::default()
    })
}

fn search_form(search: Option<&str>, namespace: Option<&str>, sort: &str) -> Markup {
    html! {
        form.search method="get" action="/topics" role="search" {
            div { label for="search" { "Name has" }
                input #search type="search" name="search" value=[search] autocomplete="off" spellcheck="false"; }
            div { label for="namespace" { "Namespace" }
                input #namespace type="text" name="namespace" value=[namespace] autocomplete="off" spellcheck="false"; }
            div { label for="sort" { "Sort by" }
                select #sort name="sort" {
                    @for (order, words) in ORDERS {
                        option value=(order) selected[*order == sort] { (words) }
                    }
                } }
            button.action type="submit" { "Show" }
        }
    }
}

fn nothing(data: &Status, is_searched: bool) -> Markup {
    html! {
        @if data.topics == 0 {
            p.notice { "There is no topic yet. A producer's first message makes one, or create one with an intent." }
        } @else if data.found == 0 && is_searched {
            p.notice { "No topic has that in its name. " a href="/topics" { "Show all" } }
        } @else {
            p.notice { "This page is past the end. " a href="/topics" { "Back to the first" } }
        }
    }
}

/// Topics with their figures.
pub(super) fn table(rows: &[Row]) -> Markup {
    if rows.is_empty() {
        return html! { p.quiet { "There is no topic yet." } };
    }
    html! {
        table.cards {
            (heads(
                "Topics and their figures",
                &["Topic", "Intent and durability", "#Published", "#Finished", "#Backlog", "#In flight", "#Consumers", "State"],
            ))
            tbody { @for row in rows { (line(row)) } }
        }
    }
}

fn line(row: &Row) -> Markup {
    let figures = &row.figures;
    html! {
        tr {
            th scope="row" {
                (links::topic(&row.topic))
                @if row.partitions > 0 { span.quiet { " " (count(row.partitions.into(), "partition", "partitions")) } }
            }
            td data-label="For" {
                @match &row.intent {
                    Some(name) => span title=(intent(name)) { (name) },
                    None => span.quiet { "no intent" },
                }
                span.quiet { " · " (survives(&row.delivery, &row.wal_sync_mode)) }
            }
            td.n data-label="Published" { (rate(figures.in_per_s)) }
            td.n data-label="Finished" { (rate(figures.out_per_s)) }
            td.n data-label="Backlog" { (number(figures.backlog)) }
            td.n data-label="In flight" { (number(figures.in_flight)) }
            td.n data-label="Consumers" { (number(figures.consumers)) }
            td data-label="State" { (state(row)) }
        }
    }
}

fn state(row: &Row) -> Markup {
    let figures = &row.figures;
    match () {
        () if figures.blocked > 0 => {
            chip(Level::Bad, &format!("{} blocked", number(figures.blocked)))
        }
        () if figures.backlog > 0 && figures.consumers == 0 => chip(Level::Warn, "No consumer"),
        () if figures.waiting > 0 => {
            chip(Level::Calm, &format!("{} retrying", number(figures.waiting)))
        }
        () if figures.backlog > 0 => chip(Level::Calm, "Working"),
        () if figures.subscriptions == 0 => chip(Level::Calm, "No subscription"),
        () => chip(Level::Good, "Drained"),
    }
}

fn pager(page: u64, pages: u64, request: &Request) -> Markup {
    let at = |wanted: u64| {
        let wanted = wanted.to_string();
        let kept = ["search", "namespace", "sort"].into_iter();
        let mut pairs: Vec<(&str, &str)> =
            kept.filter_map(|name| Some((name, request.query(name)?))).collect();
        pairs.push(("page", &wanted));
        with_query("/topics", &pairs)
    };
    html! {
        @if pages > 1 {
            nav.pager aria-label="Pages" {
                @if page > 1 { a.action href=(at(1)) { "First" } a.action rel="prev" href=(at(page - 1)) { "Previous" } }
                @if page < pages { a.action rel="next" href=(at(page + 1)) { "Next" } a.action href=(at(pages)) { "Last" } }
            }
        }
    }
}
