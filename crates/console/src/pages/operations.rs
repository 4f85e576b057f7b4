//! Every operation: how it is called in a shell, by an assistant and here; and a form for each.

use crate::act::name;
use crate::admin::find;
use crate::form;
use crate::layout::{Page, sentence};
use crate::links::heads;
use crate::problem::Problem;
use crate::request::{Request, local};
use crate::server::Shared;
use crate::words::{Level, chip};
use danube_ops::tools::{Level as Caller, tools};
use danube_ops::{Effect, NOUNS, OPS, Op};
use maud::{Markup, html};

pub(super) fn list() -> Page {
    let body = html! {
        p.lead { "Each operation exists once: as a verb of " code { "danube ctl" } ", as a tool of " code { "danube mcp" } ", and as a form here." }
        @for (noun, about) in NOUNS.iter().chain(&[("", "Everything at once")]) {
            section aria-labelledby={ "noun-" (noun) } {
                h2 id={ "noun-" (noun) } { (about) }
                table.cards {
                    (heads(about, &["Operation", "What it does", "In a shell", "Tool", "Effect"]))
            tbody { @for op in OPS.iter().filter(|op| op.spec.path.0 == *noun) { (row(op)) } }
                }
            }
        }
    };
    Page { title: "Operations".to_owned(), section: "/operations", body, ..Page::default() }
}

fn row(op: &'static Op) -> Markup {
    html! {
        tr {
            th.word scope="row" { a href=(form::path(op)) { (name(op)) } }
            td data-label="What it does" { (sentence(&op.about())) }
            td.long data-label="In a shell" { code { (example(op)) } }
            td.word data-label="Tool" { code { (tool(op)) } }
            td data-label="Effect" { (effect(op)) }
        }
    }
}

fn example(op: &Op) -> String {
    let (noun, verb) = op.spec.path;
    let words = ["danube ctl", noun, verb, op.spec.example];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn tool(op: &Op) -> String {
    let known = tools(Caller::Destructive).find(|tool| tool.op.spec.path == op.spec.path);
    known.map(|tool| tool.name()).unwrap_or_default()
}

fn effect(op: &Op) -> Markup {
    match op.spec.effect {
        Effect::Read => chip(Level::Good, "reads"),
        Effect::Write => chip(Level::Calm, "adds or sets"),
        Effect::Destructive => chip(Level::Warn, "removes or moves"),
    }
}

/// One operation as a form, filled in with what the query gives.
pub(super) fn one(
    shared: &Shared,
    request: &Request,
    noun: &str,
    verb: &str,
) -> Result<Page, Problem> {
    let op = find(noun, verb).ok_or_else(|| {
        Problem::not_found(format!("there is no operation `{noun} {verb}`"))
            .next("the page of all operations shows what there is")
    })?;
    let then = local(request.query("then")).unwrap_or("/operations");
    let given = |name: &str| request.query(name).map(str::to_owned);
    let help = op.command().bin_name(example(op)).term_width(90).render_long_help().to_string();
    let body = html! {
        p.lead { (sentence(&op.about())) " " (effect(op)) }
        (form::of(op, &given, shared, then))
        details #reference {
            summary { h2.inline { "Reference" } }
            dl.rows {
                div { dt { "Needs" } dd { (format!("{:?}", op.spec.permission)) } }
                div { dt { "Tool of danube mcp" } dd { code { (tool(op)) } } }
            }
            pre.payload tabindex="0" { (help.trim_end()) }
        }
        div.actions { a.action href=(then) { "Back" } }
    };
    Ok(Page {
        title: name(op),
        section: "/operations",
        trail: vec![("Operations".to_owned(), "/operations".to_owned())],
        body,
        lines: vec![example(op)],
        ..Page::default()
    })
}
