//! Resources: topics as they are set up and as they stand, and namespaces as manifests.
//!
//! `danube://topics/{namespace}/{topic}` and `danube://manifests/{namespace}`.

use danube_ops::{OPS, OpError, Session};
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TOPICS: &str = "danube://topics";
const MANIFESTS: &str = "danube://manifests/";
/// Topics that are listed; the others can be read all the same.
const LISTED_MAX: usize = 500;

/// Runs an operation by its path.
async fn ask(session: &Session, path: (&str, &str), arguments: Value) -> Result<Value, ErrorData> {
    let op = OPS.iter().find(|op| op.spec.path == path).ok_or_else(|| {
        ErrorData::internal_error(format!("{path:?} is not an operation of this version"), None)
    })?;
    let told = |error: OpError| ErrorData::invalid_params(error.message, None);
    Ok(op.read(arguments).map_err(told)?.run(session).await.map_err(told)?.data)
}

pub(super) async fn list(session: &Session) -> Result<Vec<Resource>, ErrorData> {
    let namespaces = ask(session, ("namespaces", "list"), json!({})).await?;
    let namespaces = texts(&namespaces);
    let mut listed: Vec<Resource> = namespaces
        .iter()
        .map(|name| {
            Resource::new(format!("{MANIFESTS}{name}"), format!("manifest of {name}"))
                .with_description("The namespace as a manifest, which `apply_manifest` takes")
                .with_mime_type("application/yaml")
        })
        .collect();
    let mut topics = BTreeSet::new();
    for namespace in &namespaces {
        let members = ask(session, ("namespaces", "topics"), json!({"namespace": namespace}));
        topics.extend(texts(&members.await?["topics"]));
    }
    listed.extend(topics.into_iter().take(LISTED_MAX).map(|topic| {
        Resource::new(format!("{TOPICS}{topic}"), topic)
            .with_description("Settings with their origin, subscriptions, backlog")
            .with_mime_type("application/json")
    }));
    Ok(listed)
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TOPICS}/{{namespace}}/{{topic}}"), "topic")
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{MANIFESTS}{{namespace}}"), "manifest")
            .with_mime_type("application/yaml"),
    ]
}

pub(super) async fn read(session: &Session, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (text, mime) = if let Some(namespace) = uri.strip_prefix(MANIFESTS) {
        let exported = ask(session, ("", "export"), json!({"namespace": [namespace]})).await?;
        (exported["manifest"].as_str().unwrap_or_default().to_owned(), "application/yaml")
    } else if let Some(topic) = uri.strip_prefix(TOPICS).filter(|topic| topic.len() > 1) {
        let arguments = json!({ "topic": topic });
        let described = ask(session, ("topics", "describe"), arguments.clone()).await?;
        let explained = ask(session, ("topics", "explain"), arguments).await?;
        (json!({"described": described, "explained": explained}).to_string(), "application/json")
    } else {
        return Err(ErrorData::resource_not_found(
            format!("`{uri}` is neither {TOPICS}/<namespace>/<topic> nor {MANIFESTS}<namespace>"),
            None,
        ));
    };
    let contents = ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(mime.to_owned()),
        text,
        meta: None,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
