//! `RegisterSchema`: a new version, or the one that means the same.
//!
//! The check is made here and holds for the revision of the subject that it saw; the catalog takes
//! the version only at that revision. Whoever comes second looks again, so registrations from many
//! sides make one history.

use super::caller::Caller;
use super::compiled::Compiled;
use super::verdict::{Answer, Question, answer};
use crate::clock::Clock;
use crate::context::Context;
use danube_core::catalog::Catalog;
use danube_core::change::{LABEL_LEN_MAX, Outcome, RegisterSchema};
use danube_core::manifest::{SchemaFacts, SchemaSource};
use danube_core::{Compatibility, Fault, FaultKind, SubjectName};
use danube_schema::Verdict;
use danube_wire::proto::danube_schema as proto;
use std::sync::Arc;

/// How often a registration looks again because others were first.
const ATTEMPTS_MAX: usize = 100;
/// Breaks that a refusal lists; a status travels in a header, which has little room. The dry check
/// lists all.
const BREAKS_TOLD_MAX: usize = 8;
/// Bytes of such a refusal as it travels; some clients take no more than 8 KiB of headers.
const REFUSAL_LEN_MAX: usize = 5_000;

pub(super) async fn call(
    context: &Arc<Context>,
    caller: Caller,
    request: proto::RegisterSchemaRequest,
) -> Result<proto::RegisterSchemaResponse, Fault> {
    let subject = SubjectName::parse(&request.subject)?;
    let schema_type = request.schema_type.parse()?;
    for _ in 0..ATTEMPTS_MAX {
        let view = context.meta.view();
        let (changes, question) = (
            view.schema_changes(),
            Question {
                subject: subject.clone(),
                schema_type,
                definition: request.schema_definition.to_vec(),
                mode: None,
                levels: None,
            },
        );
        let found = context.schemas.work(move |compiled| answer(compiled, &view, question)).await?;
        let fingerprint = found.schema.fingerprint().as_str().to_owned();
        if let Some((id, version)) = found.same {
            return Ok(response(id.0, version, false, fingerprint));
        }
        if !found.verdict.is_compatible() {
            return Err(refused(&subject, &found));
        }
        let change = RegisterSchema {
            subject: subject.clone(),
            schema_type,
            definition: Arc::clone(&found.text),
            fingerprint: fingerprint.as_str().into(),
            references: found.references,
            description: request.description.as_str().into(),
            created_by: request.created_by.as_str().into(),
            tags: request.tags.clone(),
            by: caller.by(&request.created_by).chars().take(LABEL_LEN_MAX).collect(),
            expects: found.revision,
        };
        match context.meta.propose(change, Clock::wall()).await {
            Ok(Outcome::SchemaRegistered { id, version, is_new }) => {
                if is_new {
                    context.schemas.compiled.put(id, version, found.schema, found.text.len());
                    tracing::info!(%subject, %schema_type, version, "schema registered");
                }
                super::refresh(context);
                return Ok(response(id.0, version, is_new, fingerprint));
            }
            Ok(other) => {
                return Err(Fault::internal(format!("asked for a version, got {other:?}")));
            }
            // Somebody else was first, if anything has changed at all.
            Err(fault)
                if fault.kind == FaultKind::Retry
                    && context.meta.view().schema_changes() != changes => {}
            Err(fault) => return Err(fault),
        }
    }
    Err(Fault::retry(format!(
        "schema subject `{subject}` was changed by others {ATTEMPTS_MAX} times in a row; try again"
    )))
}

fn response(
    schema_id: u64,
    version: u32,
    is_new_version: bool,
    fingerprint: String,
) -> proto::RegisterSchemaResponse {
    proto::RegisterSchemaResponse { schema_id, version, is_new_version, fingerprint }
}

/// What a plan must know of a schema that a manifest declares.
///
/// # Errors
/// Why it cannot be registered.
pub(super) fn facts(
    compiled: &Compiled,
    catalog: &Catalog,
    subject: &SubjectName,
    source: &SchemaSource,
    mode: Option<Compatibility>,
) -> Result<SchemaFacts, Fault> {
    let question = Question {
        subject: subject.clone(),
        schema_type: source.schema_type,
        definition: source.definition.clone().into_bytes(),
        mode,
        levels: None,
    };
    let found = answer(compiled, catalog, question)?;
    match found.verdict.is_compatible() {
        true => Ok(SchemaFacts {
            fingerprint: found.schema.fingerprint().as_str().to_owned(),
            references: found.references,
            expects: found.revision,
            is_known: found.same.is_some(),
        }),
        false => Err(refused(subject, &found)),
    }
}

/// Says why, as far as there is room.
fn refused(subject: &SubjectName, answer: &Answer) -> Fault {
    let Verdict { breaks, .. } = &answer.verdict;
    let mut text = format!(
        "schema subject `{subject}` promises {} compatibility, which the new version breaks in {} \
         {}",
        answer.mode,
        breaks.len(),
        if breaks.len() == 1 { "place" } else { "places" },
    );
    let mut told = 0;
    for found in breaks.iter().take(BREAKS_TOLD_MAX) {
        let line = format!("; {}) {found}", told + 1);
        if header_len(&text) + header_len(&line) > REFUSAL_LEN_MAX {
            break;
        }
        text.push_str(&line);
        told += 1;
    }
    if told < breaks.len() {
        text.push_str(&format!(
            "; and {} more, which `danube ctl schemas check {subject}` lists",
            breaks.len() - told
        ));
    }
    Fault::precondition(text)
}

/// At most what a text takes in a header, where all but plain characters take three bytes each.
fn header_len(text: &str) -> usize {
    let len = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-_.,:;/()[]".contains(&byte) { 1 } else { 3 }
    };
    text.bytes().map(len).sum()
}
