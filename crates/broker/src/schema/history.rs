//! Who changed a subject, or how a topic validates.

use crate::context::Context;
use danube_core::catalog::{Promise, SubjectEvent, SubjectRecord, TopicSchemaRecord};
use danube_core::{Fault, SubjectName, TopicName};
use danube_wire::proto::control::{
    ListSchemaHistoryRequest, ListSchemaHistoryResponse, SchemaHistoryEntry,
};
use serde::Serialize;

pub(crate) async fn list(
    context: &Context,
    request: ListSchemaHistoryRequest,
) -> Result<ListSchemaHistoryResponse, Fault> {
    let entries = match (request.subject, request.topic) {
        (Some(subject), None) => of_subject(context, &SubjectName::parse(&subject)?)?,
        (None, Some(topic)) => of_topic(context, &TopicName::parse(&topic)?)?,
        _ => return Err(Fault::invalid("give either a subject or a topic")),
    };
    Ok(ListSchemaHistoryResponse { entries })
}

fn of_subject(context: &Context, name: &SubjectName) -> Result<Vec<SchemaHistoryEntry>, Fault> {
    let view = context.meta.view();
    // Also of one that was deleted: that is what a history is for.
    let record = view.subject_record(name.as_str()).ok_or_else(|| {
        Fault::not_found(format!("schema subject `{name}` not found: nobody has registered it"))
    })?;
    Ok(record.history.iter().map(of_record).collect())
}

fn of_record(line: &SubjectRecord) -> SchemaHistoryEntry {
    let (event, version, from, to) = match &line.what {
        SubjectEvent::Registered { version, fingerprint, .. } => {
            ("registered", Some(*version), String::new(), text(fingerprint))
        }
        SubjectEvent::Deleted { version, fingerprint } => {
            ("deleted", Some(*version), text(fingerprint), String::new())
        }
        SubjectEvent::CompatibilitySet { from, to } => {
            ("compatibility_set", None, text::<Promise>(from), text(to))
        }
    };
    SchemaHistoryEntry {
        at: line.at.0,
        by: line.by.clone(),
        event: event.to_owned(),
        from,
        to,
        version,
        topic: None,
    }
}

fn of_topic(context: &Context, name: &TopicName) -> Result<Vec<SchemaHistoryEntry>, Fault> {
    let view = context.meta.view();
    let mut entries = Vec::new();
    for partition in crate::admin::partitions(context, name)? {
        let Some(topic) = view.topic(&partition) else { continue };
        for TopicSchemaRecord { at, by, from, to } in &topic.schema.history {
            entries.push(SchemaHistoryEntry {
                at: at.0,
                by: by.clone(),
                event: "configured".to_owned(),
                from: text(from),
                to: text(to),
                version: None,
                topic: Some(partition.to_string()),
            });
        }
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

fn text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data with text keys is JSON")
}
