//! `topics list`.

use crate::channel::{self, call};
use crate::error::OpError;
use crate::namespaces;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::Table;
use danube_core::NamespaceName;
use danube_wire::proto::danube_admin::NamespaceRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print the topics of all namespaces, or of one
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct List {
    /// Only the topics of this namespace
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

/// All topics, by namespace.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Topics(Vec<Topic>);

#[derive(Debug, Serialize, JsonSchema)]
struct Topic {
    topic: String,
    broker_id: String,
    delivery: String,
}

impl Operation for List {
    type Output = Topics;
    const SPEC: Spec = Spec {
        path: ("topics", "list"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "--namespace default",
    };

    async fn run(self, session: &Session) -> Result<Topics, OpError> {
        let namespaces = match self.namespace {
            Some(namespace) => vec![NamespaceName::parse(&namespace)?.to_string()],
            None => namespaces::names(session).await?,
        };
        let mut client = session.topics().await?;
        let mut topics = Vec::new();
        for name in namespaces {
            let doing = format!("topics of namespace `{name}` cannot be listed");
            let answer = call(client.list_namespace_topics(NamespaceRequest { name })).await;
            let answer = answer.map_err(|status| channel::error(&doing, &status))?;
            topics.extend(answer.topics.into_iter().map(|info| Topic {
                topic: info.name,
                broker_id: info.broker_id,
                delivery: info.delivery,
            }));
        }
        Ok(Topics(topics))
    }
}

impl Output for Topics {
    fn text(&self) -> String {
        let mut table = Table::new(&["TOPIC", "BROKER", "DELIVERY"]);
        for topic in &self.0 {
            table.row([topic.topic.clone(), topic.broker_id.clone(), topic.delivery.clone()]);
        }
        table.render()
    }
}
