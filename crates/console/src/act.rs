//! Forms that were sent: checked, confirmed where they destroy or move data, done, and told.
//!
//! Law: one way in for every operation, so that none can be done without the checks.

use crate::access::{Access, check_form};
use crate::admin::find;
use crate::form;
use crate::layout::{Page, sentence};
use crate::outcome::Outcome;
use crate::problem::Problem;
use crate::request::{Request, local};
use crate::server::Shared;
use danube_ops::{Effect, Op, Reply};
use maud::{Markup, html};
use serde_json::{Map, Value};

/// What a form leads to.
pub(crate) enum Done {
    /// Another page, by its path.
    See(String),
    /// A page that asks once more, or shows a plan.
    Page(Box<Page>),
}

/// Takes a form that was sent to `request`'s path.
///
/// # Errors
/// Why nothing was done.
pub(crate) async fn post(shared: &Shared, request: &Request) -> Result<Done, Problem> {
    check_form(request, &shared.token)?;
    let parts: Vec<&str> = request.parts.iter().map(String::as_str).collect();
    let op = match parts.as_slice() {
        ["apply"] => {
            let page = crate::pages::apply::plan(shared, request).await?;
            return Ok(Done::Page(Box::new(page)));
        }
        ["operations", verb] => find("", verb),
        ["operations", noun, verb] => find(noun, verb),
        _ => None,
    };
    let op = op.ok_or_else(|| {
        Problem::not_found("nothing can be sent to this address")
            .next("the page of all operations shows what there is")
    })?;
    let arguments = form::arguments(op, &request.form)?;
    let is_dry = arguments.get("dry_run") == Some(&Value::Bool(true));
    if shared.access != Access::On && op.spec.effect != Effect::Read && !is_dry {
        return Err(Problem::forbidden("this console is read-only, so nothing was done").next(
            "do it in a shell, or start the broker with `--console on` if everybody who reaches \
             this address may act",
        ));
    }
    let then = local(request.field("then")).map(str::to_owned);
    if op.destroys(&arguments) && request.field("confirmed") != Some("yes") {
        let page = confirm(shared, op, arguments, then.as_deref()).await?;
        return Ok(Done::Page(Box::new(page)));
    }
    let line = op.command_line(&arguments);
    let result = shared.admin.run(op, arguments).await;
    if op.spec.effect != Effect::Read && !is_dry {
        match &result {
            Ok(_) => tracing::info!(line, "done from the console"),
            Err(problem) => {
                tracing::info!(line, reason = problem.message, "refused from the console");
            }
        }
    }
    let number = shared.outcomes.keep(Outcome { line, then, result });
    Ok(Done::See(format!("/outcomes/{number}")))
}

/// Asks once more, with what would happen where the operation can say.
async fn confirm(
    shared: &Shared,
    op: &'static Op,
    arguments: Map<String, Value>,
    then: Option<&str>,
) -> Result<Page, Problem> {
    let line = op.command_line(&arguments);
    let can_try = op.input_schema()["properties"].get("dry_run").is_some();
    let tried = match can_try {
        false => None,
        true => {
            let mut arguments = arguments.clone();
            arguments.insert("dry_run".to_owned(), Value::Bool(true));
            Some(shared.admin.run(op, arguments).await?)
        }
    };
    let body = html! {
        div.notice.warn {
            p { strong { (sentence(&op.about())) } }
            p { "Once it is done, going back does not undo it." }
        }
        @for (name, value) in arguments.iter().filter(|(name, _)| form::is_long(name)) {
            h2 { "With this " (name) }
            pre.payload tabindex="0" { (value.as_str().unwrap_or_default()) }
        }
        @if let Some(reply) = &tried {
            h2 { "What would happen" }
            (told(reply))
        }
        form method="post" action=(form::path(op)) {
            (form::token(shared))
            (form::hidden(&arguments))
            input type="hidden" name="confirmed" value="yes";
            @if let Some(then) = then { input type="hidden" name="then" value=(then); }
            div.actions {
                button.action.danger type="submit" { "Yes, do it" }
                a.action href=(then.unwrap_or("/")) { "No, leave it" }
            }
        }
    };
    Ok(Page {
        title: format!("{}?", name(op)),
        section: "/operations",
        body,
        lines: vec![line],
        ..Page::default()
    })
}

/// The page of an outcome.
///
/// # Errors
/// When it is not kept any more, or nothing was done.
pub(crate) fn outcome(shared: &Shared, number: &str) -> Result<Page, Problem> {
    let found = number.parse().ok().and_then(|number| shared.outcomes.find(number));
    let Outcome { line, then, result } = found.ok_or_else(|| {
        Problem::not_found("this outcome is not kept any more")
            .next("the topic's page shows what holds now")
    })?;
    let reply = result?;
    let then = then.unwrap_or_else(|| "/".to_owned());
    let is_no = reply.refused.is_some() || reply.partial.is_some();
    let title = match (is_no, reply.pending) {
        (true, _) => "Not all of it was done",
        (false, true) => "What would happen",
        (false, false) => "Done",
    };
    let body = html! {
        (told(&reply))
        div.actions { a.action href=(then) { "Go on" } }
    };
    let section = "/operations";
    Ok(Page { title: title.to_owned(), section, body, lines: vec![line], ..Page::default() })
}

/// A reply in words.
pub(crate) fn told(reply: &Reply) -> Markup {
    html! {
        @for why in reply.refused.iter().chain(&reply.partial) {
            div.notice.bad role="alert" { p { strong { (sentence(why)) } } }
        }
        @if reply.text.is_empty() { p { "Nothing more to tell." } }
        @else { pre.payload tabindex="0" { (reply.text) } }
        @for note in &reply.notes { p.quiet { (sentence(note)) } }
    }
}

/// An operation as a heading: as it is typed.
pub(crate) fn name(op: &Op) -> String {
    let (noun, verb) = op.spec.path;
    format!("{noun} {verb}").trim().to_owned()
}
