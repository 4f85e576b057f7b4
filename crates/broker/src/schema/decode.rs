//! Payloads for people: what Avro and Protobuf schemas read in the messages of a peek.
//!
//! Law: a payload that is not decoded is shown as it is; nothing here is an error.

use super::compiled::Compiled;
use crate::context::Context;
use danube_core::catalog::Catalog;
use danube_core::{Fault, SchemaId, SchemaType};
use danube_schema::PayloadLimits;
use danube_wire::proto::control;
use std::sync::Arc;

/// Longest text that is shown, in bytes; it may be many times the payload.
const TEXT_LEN_MAX: usize = 64 << 10;
/// What decoding one payload may cost.
const LIMITS: PayloadLimits =
    PayloadLimits { work_max: 200_000, depth_max: 64, unpacked_len_max: 1 << 20, faults_max: 1 };

/// Adds what can be decoded to the answer.
///
/// # Errors
/// `Exhausted` when too much such work waits.
pub(crate) async fn decode(
    context: &Arc<Context>,
    mut answer: control::PeekMessagesResponse,
) -> Result<control::PeekMessagesResponse, Fault> {
    if answer.messages.iter().all(|message| message.schema_id.is_none()) {
        return Ok(answer);
    }
    let view = context.meta.view();
    context
        .schemas
        .work(move |compiled| {
            for message in &mut answer.messages {
                if let Some((kind, text)) = text(compiled, &view, message) {
                    message.schema_type = Some(kind.to_string());
                    message.decoded = Some(text);
                }
            }
            Ok(answer)
        })
        .await
}

fn text(
    compiled: &Compiled,
    view: &Catalog,
    message: &control::PeekedMessage,
) -> Option<(SchemaType, String)> {
    let (name, subject) = view.subject_by_id(SchemaId(message.schema_id?))?;
    let version = match message.schema_version {
        Some(version) => version,
        None => subject.latest()?.0,
    };
    let kind = subject.versions.get(&version)?.schema_type;
    if !matches!(kind, SchemaType::Avro | SchemaType::Protobuf)
        || message.payload.len() > TEXT_LEN_MAX
    {
        return None;
    }
    let schema = compiled.get(view, (name.as_str(), subject), version).ok()?;
    let text = schema.decode(&message.payload, &LIMITS).ok()?.to_string();
    (text.len() <= TEXT_LEN_MAX).then_some((kind, text))
}
