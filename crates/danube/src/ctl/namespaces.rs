//! `danube ctl namespaces`.

use super::admin::Admin;
use crate::channel::{self, call};
use crate::failure::Failure;
use crate::output::{self, Format};
use danube_core::NamespaceName;
use danube_wire::proto::danube_admin::{Empty, NamespaceRequest};
use serde_json::json;

/// What can be done with namespaces.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Create a namespace
    Create {
        /// Its name
        #[arg(value_name = "NAMESPACE")]
        name: String,
    },
    /// Delete a namespace that holds no topics
    Delete {
        /// Its name
        #[arg(value_name = "NAMESPACE")]
        name: String,
    },
    /// Print the names of all namespaces
    List {
        /// How to print them
        #[arg(long, value_enum, default_value = "text")]
        output: Format,
    },
}

/// Runs one verb.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn run(verb: Verb, admin: &Admin) -> Result<(), Failure> {
    match verb {
        Verb::Create { name } => create(&NamespaceName::parse(&name)?, admin).await,
        Verb::Delete { name } => delete(&NamespaceName::parse(&name)?, admin).await,
        Verb::List { output } => list(output, admin).await,
    }
}

async fn create(name: &NamespaceName, admin: &Admin) -> Result<(), Failure> {
    let mut namespaces = admin.namespaces().await?;
    let request = NamespaceRequest { name: name.to_string() };
    call(namespaces.create_namespace(request)).await.map_err(|status| {
        channel::failure(&format!("namespace `{name}` cannot be created"), &status)
    })?;
    output::line(format!("created namespace {name}"))
}

async fn delete(name: &NamespaceName, admin: &Admin) -> Result<(), Failure> {
    let mut namespaces = admin.namespaces().await?;
    let request = NamespaceRequest { name: name.to_string() };
    call(namespaces.delete_namespace(request)).await.map_err(|status| {
        channel::failure(&format!("namespace `{name}` cannot be deleted"), &status)
    })?;
    output::line(format!("deleted namespace {name}"))
}

async fn list(format: Format, admin: &Admin) -> Result<(), Failure> {
    let names = names(admin).await?;
    match format {
        Format::Text => names.iter().try_for_each(output::line),
        Format::Json => output::json(&json!(names)),
    }
}

/// The names of all namespaces.
///
/// # Errors
/// What the broker said, or that it cannot be reached.
pub async fn names(admin: &Admin) -> Result<Vec<String>, Failure> {
    let mut brokers = admin.brokers().await?;
    let answer = call(brokers.list_namespaces(Empty {})).await;
    let answer =
        answer.map_err(|status| channel::failure("namespaces cannot be listed", &status))?;
    Ok(answer.namespaces)
}
