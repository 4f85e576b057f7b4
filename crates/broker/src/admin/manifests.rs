//! What there is as a manifest, and what has moved away from those that were applied.

use crate::context::Context;
use danube_core::manifest::{self, Drifted, FieldChange};
use danube_core::{Fault, NamespaceName};
use danube_wire::proto::control;
use std::collections::BTreeSet;

pub(super) async fn export(
    context: &Context,
    request: control::ExportManifestRequest,
) -> Result<control::ExportManifestResponse, Fault> {
    let namespaces = request.namespaces.iter();
    let only: BTreeSet<NamespaceName> = namespaces
        .map(|name| super::existing_namespace(context, name))
        .collect::<Result<_, Fault>>()?;
    let owner = request.owner.unwrap_or_else(|| "apply".to_owned());
    let text = manifest::export(&context.meta.view(), &only, &owner);
    Ok(control::ExportManifestResponse { text })
}

pub(super) async fn drift(
    context: &Context,
    request: control::ListDriftRequest,
) -> Result<control::ListDriftResponse, Fault> {
    let view = context.meta.view();
    if let Some(owner) = &request.owner
        && view.applied_by(owner).is_none()
    {
        let owners: Vec<&str> = view.owners().map(|(owner, _)| owner).collect();
        let known = if owners.is_empty() { "nobody has".to_owned() } else { owners.join(", ") };
        return Err(Fault::not_found(format!(
            "owner `{}` has applied no manifest; those who have: {known}",
            owner.escape_debug()
        )));
    }
    let drift = manifest::drift(&view, request.owner.as_deref()).into_iter().map(|found| {
        let (how, fields) = match found.how {
            Drifted::Changed(fields) => ("changed", fields),
            Drifted::Missing => ("missing", Vec::new()),
            Drifted::Unmanaged => ("unmanaged", Vec::new()),
        };
        control::Drift {
            owner: found.owner,
            kind: found.object.kind().to_owned(),
            name: found.object.name(),
            how: how.to_owned(),
            fields: fields.into_iter().map(field).collect(),
            changed_at: found.last.as_ref().map(|line| line.at.0),
            changed_by: found.last.as_ref().map(|line| line.by.clone()),
            change: found.last.map(|line| line.change),
        }
    });
    Ok(control::ListDriftResponse { drift: drift.collect() })
}

pub(super) fn field(change: FieldChange) -> control::FieldChange {
    let text = |value: serde_json::Value| value.to_string();
    control::FieldChange {
        field: change.field,
        old: change.old.map(text),
        new: change.new.map(text),
    }
}
