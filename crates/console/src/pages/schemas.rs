//! Schemas: subjects, their versions, and what changed between two of them.

use crate::admin::{Answer, known};
use crate::form;
use crate::layout::Page;
use crate::links::heads;
use crate::model::{ListedVersion, Subject, Version};
use crate::problem::Problem;
use crate::request::{Request, path};
use crate::server::Shared;
use crate::words::time;
use maud::{Markup, html};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

pub(super) async fn list(shared: &Shared) -> Result<Page, Problem> {
    let Answer { data, line } =
        shared.admin.read::<Vec<Subject>>(("schemas", "list-subjects"), json!({})).await?;
    let body = html! {
        @if data.is_empty() {
            p.notice { "No schema is registered. With one, a topic's messages are checked before they are stored, and this console can read Avro and Protobuf." }
        } @else {
            table.cards {
                (heads("Subjects", &["Subject", "Type", "#Latest version", "Compatibility"]))
            tbody { @for subject in &data {
                    tr {
                        th scope="row" { a href=(path(&["schemas", &subject.subject])) { (subject.subject) } }
                        td data-label="Type" { (subject.schema_type) }
                        td.n data-label="Latest version" { (subject.latest_version) }
                        td data-label="Compatibility" { (promise(&subject.compatibility_mode)) }
                    }
                } }
            }
        }
        div.actions { (form::link(known(("schemas", "register")), &[], "/schemas", "Register a schema")) }
    };
    Ok(Page {
        title: "Schemas".to_owned(),
        section: "/schemas",
        body,
        lines: vec![line],
        ..Page::default()
    })
}

pub(super) async fn one(
    shared: &Shared,
    request: &Request,
    subject: &str,
) -> Result<Page, Problem> {
    let asked = json!({"subject": subject});
    let Answer { data: versions, line } =
        shared.admin.read::<Vec<ListedVersion>>(("schemas", "versions"), asked).await?;
    let latest = versions.iter().map(|known| known.version).max().unwrap_or(1);
    let wanted = |name| request.query(name).and_then(|text| text.parse::<u32>().ok());
    let new = wanted("new").unwrap_or(latest);
    let before = versions.iter().map(|known| known.version).filter(|known| *known < new).max();
    let old = wanted("old").or(before);
    let latest = version(shared, subject, new).await?;
    let older = match old {
        Some(old) if old != new => Some(version(shared, subject, old).await?),
        _ => None,
    };
    let here = path(&["schemas", subject]);
    let body = html! {
        p.lead { (latest.data.schema_type) " · " (promise(&latest.data.compatibility_mode)) }
        (table(&versions))
        (choose(&here, &versions, old, new))
        @match &older {
            Some(older) => {
                h2 { "From version " (older.data.version) " to version " (latest.data.version) }
                (difference(&laid_out(&older.data.definition), &laid_out(&latest.data.definition)))
            }
            None => { h2 { "Version " (latest.data.version) } pre.payload tabindex="0" { (laid_out(&latest.data.definition)) } }
        }
        div.actions {
            (form::link(known(("schemas", "register")), &[("subject", subject), ("schema_type", &latest.data.schema_type)], &here, "Register a version"))
            (form::link(known(("schemas", "check")), &[("subject", subject), ("schema_type", &latest.data.schema_type)], &here, "Check a version first"))
            (form::link(known(("schemas", "set-compatibility")), &[("subject", subject)], &here, "Change what is compatible"))
            (form::link(known(("schemas", "history")), &[("subject", subject)], &here, "Who changed it"))
            (form::link(known(("schemas", "delete")), &[("subject", subject)], "/schemas", "Delete a version …"))
        }
    };
    Ok(Page {
        title: subject.to_owned(),
        section: "/schemas",
        trail: vec![("Schemas".to_owned(), "/schemas".to_owned())],
        body,
        lines: vec![line, latest.line],
        ..Page::default()
    })
}

async fn version(shared: &Shared, subject: &str, version: u32) -> Result<Answer<Version>, Problem> {
    shared.admin.read(("schemas", "get"), json!({"subject": subject, "version": version})).await
}

fn table(versions: &[ListedVersion]) -> Markup {
    html! {
        table.cards {
            (heads("Versions", &["Version", "Registered", "By", "Description", "Fingerprint"]))
            tbody { @for known in versions {
                tr {
                    th scope="row" { "version " (known.version) }
                    td data-label="Registered" { (time(known.created_at.saturating_mul(1_000))) }
                    td data-label="By" { (known.created_by) }
                    td data-label="Description" { (known.description) }
                    td.long data-label="Fingerprint" { code { (known.fingerprint) } }
                }
            } }
        }
    }
}

fn choose(here: &str, versions: &[ListedVersion], old: Option<u32>, new: u32) -> Markup {
    let options = |chosen: Option<u32>| {
        html! {
            @for known in versions { option value=(known.version) selected[chosen == Some(known.version)] { "version " (known.version) } }
        }
    };
    html! {
        @if versions.len() > 1 {
            form.search method="get" action=(here) {
                div { label for="old" { "From" } select #old name="old" { (options(old)) } }
                div { label for="new" { "To" } select #new name="new" { (options(Some(new))) } }
                button.action type="submit" { "Compare" }
            }
        }
    }
}

/// What a subject asks of its next version.
fn promise(mode: &str) -> Markup {
    match mode {
        "none" => html! { "new versions may be anything" },
        mode => html! { "new versions must be " strong { (mode) } " compatible" },
    }
}

/// JSON with a line per member, so that a difference is where it is; anything else as it is.
fn laid_out(definition: &str) -> String {
    match serde_json::from_str::<Value>(definition) {
        Ok(_) => crate::payload::lay_out(definition),
        Err(_) => definition.to_owned(),
    }
}

/// Lines with what went and what came, told by a sign as well as by colour.
fn difference(old: &str, new: &str) -> Markup {
    let diff = TextDiff::from_lines(old, new);
    html! {
        @if old == new { p.quiet { "The two are the same." } }
        pre.payload.diff tabindex="0" {
            @for change in diff.iter_all_changes() {
                @let text = change.value().trim_end_matches('\n');
                @match change.tag() {
                    ChangeTag::Delete => { del { "- " (text) } "\n" }
                    ChangeTag::Insert => { ins { "+ " (text) } "\n" }
                    ChangeTag::Equal => { "  " (text) "\n" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_by_signs_and_stays_text() {
        let shown = difference("a\nb\n", "a\n<b>\n").into_string();
        assert!(shown.contains("  a\n<del>- b</del>\n<ins>+ &lt;b&gt;</ins>"), "{shown}");
        assert!(difference("a", "a").into_string().contains("the same"));
    }
}
