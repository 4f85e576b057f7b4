//! `danube ctl metadata`: the documents of the catalog, at their keys, readable by a person.

use super::admin::Admin;
use crate::channel::{self, call};
use crate::failure::Failure;
use crate::output::{self, Format};
use danube_wire::proto::control::{GetDocumentRequest, ListDocumentsRequest};
use serde_json::{Map, Value};

/// What can be done with documents.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Print one document
    Get {
        /// Its key, such as /topics/default/jobs/intent
        key: String,
    },
    /// Print all documents, or those under a prefix
    List {
        /// What the keys begin with
        #[arg(default_value = "")]
        prefix: String,
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
        Verb::Get { key } => get(key, admin).await,
        Verb::List { prefix, output } => list(prefix, output, admin).await,
    }
}

async fn get(key: String, admin: &Admin) -> Result<(), Failure> {
    let doing = format!("document `{}` cannot be read", key.escape_debug());
    let mut control = admin.control().await?;
    let answer = call(control.get_document(GetDocumentRequest { key })).await;
    let answer = answer.map_err(|status| channel::failure(&doing, &status))?;
    output::json(&value(&answer.document.unwrap_or_default().json))
}

async fn list(prefix: String, format: Format, admin: &Admin) -> Result<(), Failure> {
    let doing = format!("documents under `{}` cannot be read", prefix.escape_debug());
    let mut control = admin.control().await?;
    let answer = call(control.list_documents(ListDocumentsRequest { prefix })).await;
    let answer = answer.map_err(|status| channel::failure(&doing, &status))?;
    let mut documents = answer.documents.into_iter();
    match format {
        Format::Text => documents
            .try_for_each(|document| output::line(format!("{} {}", document.key, document.json))),
        Format::Json => {
            let pairs: Map<String, Value> =
                documents.map(|document| (document.key, value(&document.json))).collect();
            output::json(&Value::Object(pairs))
        }
    }
}

/// The document; its text where a newer broker's is not JSON.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
