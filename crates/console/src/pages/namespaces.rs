//! Namespaces, and the limits that hold for their topics.

use crate::admin::{Answer, known};
use crate::form::{self, button};
use crate::layout::Page;
use crate::links::heads;
use crate::model::Limits;
use crate::problem::Problem;
use crate::request::{path, with_query};
use crate::server::Shared;
use maud::html;
use serde_json::json;

pub(super) async fn list(shared: &Shared) -> Result<Page, Problem> {
    let Answer { data, line } =
        shared.admin.read::<Vec<String>>(("namespaces", "list"), json!({})).await?;
    let body = html! {
        table.cards {
            (heads("Namespaces", &["Namespace", "Topics", "Limits"]))
            tbody { @for name in &data {
                tr {
                    th scope="row" { a href=(path(&["namespaces", name])) { (name) } }
                    td data-label="Topics" { a href=(with_query("/topics", &[("namespace", name)])) { "its topics" } }
                    td data-label="Limits" { a href=(path(&["namespaces", name])) { "its limits" } }
                }
            } }
        }
        div.actions { (form::link(known(("namespaces", "create")), &[], "/namespaces", "Create a namespace")) }
    };
    Ok(Page {
        title: "Namespaces".to_owned(),
        section: "/namespaces",
        body,
        lines: vec![line],
        ..Page::default()
    })
}

pub(super) async fn one(shared: &Shared, name: &str) -> Result<Page, Problem> {
    let Answer { data, line } =
        shared.admin.read::<Limits>(("namespaces", "policies"), json!({"namespace": name})).await?;
    let here = path(&["namespaces", name]);
    let body = html! {
        p { a href=(with_query("/topics", &[("namespace", name)])) { "Topics of this namespace" } }
        (super::topic::settings("Limits of its topics", &data.policies))
        div.actions {
            (form::link(known(("namespaces", "set-policies")), &[("namespace", name)], &here, "Change the limits"))
            (button(shared, known(("namespaces", "delete")), &[("name", name)], "/namespaces", "Delete …"))
        }
    };
    Ok(Page {
        title: name.to_owned(),
        section: "/namespaces",
        trail: vec![("Namespaces".to_owned(), "/namespaces".to_owned())],
        body,
        lines: vec![line],
        ..Page::default()
    })
}
