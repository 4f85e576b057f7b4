//! The catalog as documents, for people who want to see what is stored.

use crate::context::Context;
use danube_core::Fault;
use danube_wire::proto::control;

pub(super) async fn get(
    context: &Context,
    request: control::GetDocumentRequest,
) -> Result<control::GetDocumentResponse, Fault> {
    let document = context.meta.view().document(&request.key).ok_or_else(|| {
        Fault::not_found(format!(
            "no document at `{}`; `danube ctl metadata list` shows the keys",
            request.key.escape_debug()
        ))
    })?;
    let document = control::Document { key: request.key, json: document.to_string() };
    Ok(control::GetDocumentResponse { document: Some(document) })
}

pub(super) async fn list(
    context: &Context,
    request: control::ListDocumentsRequest,
) -> Result<control::ListDocumentsResponse, Fault> {
    let documents = context
        .meta
        .view()
        .documents(&request.prefix)
        .into_iter()
        .map(|(key, value)| control::Document { key, json: value.to_string() })
        .collect();
    Ok(control::ListDocumentsResponse { documents })
}
