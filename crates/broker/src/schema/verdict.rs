//! One definition against its subject: what registering and the dry check both ask.

use super::compiled::Compiled;
use super::references::Latest;
use danube_core::catalog::Catalog;
use danube_core::{Compatibility, Fault, Levels, SchemaId, SchemaType, SubjectName};
use danube_schema::{Schema, Verdict, check};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A definition, its subject, and under which promise it is looked at instead of the subject's own.
pub(super) struct Question {
    pub(super) subject: SubjectName,
    pub(super) schema_type: SchemaType,
    pub(super) definition: Vec<u8>,
    pub(super) mode: Option<Compatibility>,
    pub(super) levels: Option<Levels>,
}

/// What came of it, in the catalog of one moment.
pub(super) struct Answer {
    pub(super) schema: Arc<Schema>,
    /// The definition; text, so that people can read it where it is kept.
    pub(super) text: Arc<str>,
    /// What its references stand for.
    pub(super) references: BTreeMap<SubjectName, u32>,
    /// The subject's number and the version that means the same.
    pub(super) same: Option<(SchemaId, u32)>,
    pub(super) verdict: Verdict,
    pub(super) mode: Compatibility,
    pub(super) levels: Levels,
    /// The versions it was looked at with.
    pub(super) versions: Vec<u32>,
    /// The subject's revision at that moment; 0 for a new one.
    pub(super) revision: u64,
}

/// Parses the definition and compares it with every version of its subject.
///
/// # Errors
/// `Invalid` when the definition is not one.
pub(super) fn answer(
    compiled: &Compiled,
    catalog: &Catalog,
    question: Question,
) -> Result<Answer, Fault> {
    let Question { subject: name, schema_type, definition, mode, levels } = question;
    let record = catalog.subject_record(name.as_str());
    let mode = mode.or_else(|| record.map(|known| known.compatibility)).unwrap_or_default();
    let levels = levels.or_else(|| record.map(|known| known.levels)).unwrap_or_default();
    let revision = record.map_or(0, |known| known.revision);
    let references = Latest::new(catalog, name.as_str());
    let schema = Schema::parse(schema_type, &definition, &references)
        .map_err(|error| Fault::invalid(format!("schema subject `{name}`: {error}")))?;
    let text: Arc<str> = String::from_utf8(definition)
        .map_err(|error| {
            Fault::invalid(format!(
                "schema subject `{name}`: the definition is not UTF-8 text: bad byte at offset {}",
                error.utf8_error().valid_up_to()
            ))
        })?
        .into();
    let mut answer = Answer {
        schema: Arc::new(schema),
        text,
        references: references.into_used(),
        same: None,
        verdict: Verdict::default(),
        mode,
        levels,
        versions: Vec::new(),
        revision,
    };
    let Some(record) = record else { return Ok(answer) };
    answer.versions = record.versions.keys().copied().collect();
    // What is there already is not asked whether it may come.
    if let Some(version) = record.same(schema_type, answer.schema.fingerprint().as_str()) {
        answer.same = Some((record.id, version));
        return Ok(answer);
    }
    if mode == Compatibility::None {
        return Ok(answer);
    }
    let existing: Result<Vec<(u32, Arc<Schema>)>, Fault> = answer
        .versions
        .iter()
        .map(|version| {
            let schema = compiled.get(catalog, (name.as_str(), record), *version)?;
            Ok((*version, schema))
        })
        .collect();
    let existing = existing?;
    let existing: Vec<(u32, &Schema)> =
        existing.iter().map(|(version, schema)| (*version, schema.as_ref())).collect();
    answer.verdict = check(mode, levels, &existing, &answer.schema);
    Ok(answer)
}
