//! `danube ctl topics list`.

use crate::channel::{self, call};
use crate::ctl::admin::Admin;
use crate::ctl::namespaces;
use crate::failure::Failure;
use crate::output::{self, Format, Table};
use danube_core::NamespaceName;
use danube_wire::proto::danube_admin::{NamespaceRequest, TopicInfo};
use serde_json::{Value, json};

/// Print the topics of all namespaces, or of one
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only the topics of this namespace
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// How to print them
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// Prints name, broker and delivery of each.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(arguments: Arguments, admin: &Admin) -> Result<(), Failure> {
    let namespaces = match arguments.namespace {
        Some(namespace) => vec![NamespaceName::parse(&namespace)?.to_string()],
        None => namespaces::names(admin).await?,
    };
    let mut client = admin.topics().await?;
    let mut topics = Vec::new();
    for name in namespaces {
        let doing = format!("topics of namespace `{name}` cannot be listed");
        let answer = call(client.list_namespace_topics(NamespaceRequest { name })).await;
        topics.extend(answer.map_err(|status| channel::failure(&doing, &status))?.topics);
    }
    match arguments.output {
        Format::Text => output::line(table(topics)),
        Format::Json => output::json(&documents(&topics)),
    }
}

fn table(topics: Vec<TopicInfo>) -> String {
    let mut table = Table::new(&["TOPIC", "BROKER", "DELIVERY"]);
    for topic in topics {
        table.row([topic.name, topic.broker_id, topic.delivery]);
    }
    table.render()
}

fn documents(topics: &[TopicInfo]) -> Value {
    let document = |topic: &TopicInfo| {
        json!({
            "topic": topic.name, "broker_id": topic.broker_id, "delivery": topic.delivery,
        })
    };
    topics.iter().map(document).collect()
}
