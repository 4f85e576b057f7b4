//! The broker and the cluster it belongs to.

use crate::access::Access;
use crate::admin::Answer;
use crate::layout::Page;
use crate::links::heads;
use crate::model::{Cluster, Status};
use crate::problem::Problem;
use crate::server::Shared;
use crate::words::{Level, bytes, chip, count, number, span, time};
use maud::html;
use serde_json::json;

pub(super) async fn show(shared: &Shared) -> Result<Page, Problem> {
    let cluster: Answer<Cluster> = shared.admin.read(("cluster", "status"), json!({})).await?;
    let status: Answer<Status> = shared.admin.read(("", "overview"), json!({"limit": 0})).await?;
    let (data, log) = (&status.data, &status.data.log);
    let access = match shared.access {
        Access::On => {
            "may look and act: whoever reaches this address may, for there are no users yet"
        }
        Access::ReadOnly | Access::Off => {
            "may look: everything that changes something is done in a shell"
        }
    };
    let body = html! {
        dl.rows {
            div { dt { "Broker" } dd { (data.broker_id) ", version " (data.version) } }
            div { dt { "Up since" } dd { (time(data.started_at)) ", " (span(data.now.saturating_sub(data.started_at))) } }
            div { dt { "Mode" } dd { (cluster.data.mode) } }
            div { dt { "This console" } dd { (access) "." } }
            div { dt { "Log" } dd { (bytes(log.bytes)) " in " (count(log.files, "file", "files")) ", " (bytes(log.cache_bytes)) " of it in memory" } }
            div { dt { "Failed writes" } dd {
                @if log.failures == 0 { (chip(Level::Good, "None")) }
                @else { (chip(Level::Bad, &number(log.failures))) " since the start; the broker's log says why" }
            } }
        }
        section aria-labelledby="brokers" {
            h2 #brokers { "Brokers" }
            table.cards {
                (heads(
                "Brokers of the cluster",
                &["Broker", "State", "Role", "Clients", "Administrators", "HTTP"],
            ))
            tbody { @for known in &cluster.data.brokers {
                    tr {
                        th scope="row" { (known.broker_id) }
                        td data-label="State" { (known.broker_status) }
                        td data-label="Role" { (known.broker_role) }
                        td data-label="Clients" { (known.broker_addr) }
                        td data-label="Administrators" { (known.admin_addr) }
                        td data-label="HTTP" { (known.metrics_addr) }
                    }
                } }
            }
        }
    };
    Ok(Page {
        title: "Broker".to_owned(),
        section: "/broker",
        body,
        lines: vec![cluster.line, status.line],
        ..Page::default()
    })
}
