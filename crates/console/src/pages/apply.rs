//! Manifests: paste one, read line by line what it would change, then apply it.

use crate::access::Access;
use crate::admin::{Answer, known};
use crate::form;
use crate::layout::{Page, sentence};
use crate::model::{Field, Plan, PlanItem};
use crate::problem::Problem;
use crate::request::Request;
use crate::server::Shared;
use crate::words::{Level, chip, count};
use maud::{Markup, html};
use serde_json::{Value, json};

const EXAMPLE: &str = "namespaces:\n  - agents\ntopics:\n  - name: /agents/tasks\n    intent: task_queue\n    partitions: 6\n";

/// The page to begin with.
pub(crate) fn form(shared: &Shared, manifest: &str) -> Page {
    let export = known(("", "export"));
    Page {
        title: "Apply a manifest".to_owned(),
        section: "/apply",
        body: html! {
            p.lead { "A manifest says which namespaces, schemas, topics and subscriptions there should be. First comes a plan; nothing changes until you apply it." }
            (fields(shared, manifest))
            div.actions {
                (form::link(export, &[], "/apply", "What there is, as a manifest"))
                (form::link(known(("", "drift")), &[], "/apply", "What moved away from its manifest"))
            }
        },
        lines: vec!["danube ctl apply -f manifest.yaml --dry-run".to_owned()],
        ..Page::default()
    }
}

fn fields(shared: &Shared, manifest: &str) -> Markup {
    html! {
        form.fields method="post" action="/apply" {
            (form::token(shared))
            div.field {
                label for="manifest" { "Manifest, in YAML or JSON" }
                textarea #manifest name="manifest" rows="14" spellcheck="false" required placeholder=(EXAMPLE) { "\n" (manifest) }
            }
            div.actions { button.action type="submit" { "Plan" } }
        }
    }
}

/// What a manifest would change.
///
/// # Errors
/// What is wrong with it.
pub(crate) async fn plan(shared: &Shared, request: &Request) -> Result<Page, Problem> {
    let manifest = request.field("manifest").ok_or_else(|| {
        Problem::invalid("there is no manifest to plan").next("go back and paste one")
    })?;
    let wanted = json!({"manifest": manifest, "dry_run": true});
    let op = known(("", "apply"));
    let Answer { data, line } = shared.admin.read::<Plan>(("", "apply"), wanted).await?;
    let summary = &data.summary;
    let changes = summary.create + summary.update + summary.prune;
    let body = html! {
        p.lead {
            @if data.refused { (chip(Level::Bad, "Cannot be applied")) }
            @else if changes == 0 { (chip(Level::Good, "Nothing to do")) }
            @else { (chip(Level::Calm, "Planned")) }
            " " (summary.create) " to create, " (summary.update) " to update, " (summary.prune) " to prune, "
            (summary.unchanged) " unchanged"
            @if summary.conflict + summary.blocked > 0 { ", " (summary.conflict) " in conflict, " (summary.blocked) " blocked" }
            ". Owner: " (data.owner) "."
        }
        ol.plan { @for item in &data.items { (line_of(item)) } }
        @if !data.undeclared.is_empty() {
            p.quiet { (count(data.undeclared.len() as u64, "object that", "objects that")) " this owner declared before and declares no longer: " (data.undeclared.join(", ")) ". " code { "danube ctl apply --prune" } " removes them." }
        }
        @if changes > 0 && !data.refused {
            form method="post" action=(form::path(op)) {
                (form::token(shared))
                input type="hidden" name="arg.manifest" value=(manifest);
                input type="hidden" name="then" value="/topics";
                div.actions {
                    @if shared.access == Access::On { button.action type="submit" { "Apply it" } }
                    @else { span.notice { "The console is read-only here; apply it in a shell." } }
                }
            }
        }
        h2 { "The manifest" }
        (fields(shared, manifest))
    };
    let arguments = crate::admin::arguments(json!({"manifest": manifest}));
    Ok(Page {
        title: "Plan".to_owned(),
        section: "/apply",
        trail: vec![("Apply".to_owned(), "/apply".to_owned())],
        body,
        lines: vec![line, op.command_line(&arguments)],
        ..Page::default()
    })
}

fn line_of(item: &PlanItem) -> Markup {
    let (level, sign) = match item.action.as_str() {
        "create" => (Level::Good, "+"),
        "update" => (Level::Calm, "~"),
        "prune" => (Level::Bad, "−"),
        "conflict" | "blocked" => (Level::Bad, "!"),
        _ => (Level::Calm, "="),
    };
    html! {
        li class={ "plan-" (item.action) } {
            p {
                span.sign aria-hidden="true" { (sign) } " "
                @if item.action == "unchanged" { span.quiet { "unchanged" } } @else { (chip(level, &item.action)) }
                " " (item.kind) " " strong { (item.name) }
                @if let Some(at) = &item.at { span.quiet { " (" (at) ")" } }
            }
            @if !item.fields.is_empty() {
                ul { @for field in &item.fields { li { (change(field)) } } }
            }
            @if let Some(why) = &item.why { p { (sentence(why)) } }
            @for warning in &item.warnings { p { (chip(Level::Warn, "Warning")) " " (sentence(warning)) } }
        }
    }
}

fn change(field: &Field) -> Markup {
    let shown = |value: &Option<Value>| match value {
        None => "not set".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    html! {
        code { (field.field) } ": "
        @if field.old.is_some() { del { (shown(&field.old)) } " → " }
        ins { (shown(&field.new)) }
    }
}
