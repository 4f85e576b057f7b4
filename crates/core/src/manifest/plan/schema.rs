//! What makes a schema subject what a manifest declares of it.

use super::SchemaFacts;
use super::planner::{Difference, Work};
use crate::change::{RegisterSchema, SetCompatibility};
use crate::fault::Fault;
use crate::manifest::Declared;
use crate::schema::{Compatibility, SubjectName};
use serde_json::Value;

/// The compatibility that is declared.
pub(super) fn declared_mode(declared: &Declared) -> Option<Compatibility> {
    declared.fields.get("compatibility").and_then(Value::as_str)?.parse().ok()
}

pub(super) fn work(
    subject: &SubjectName,
    difference: &Difference<'_>,
    facts: Option<&SchemaFacts>,
    by: &str,
) -> Result<Work, Fault> {
    let mut work = Work::default();
    if let (true, Some(facts), Some(source)) =
        (difference.has("fingerprint"), facts, &difference.declared.schema)
    {
        let register = RegisterSchema {
            subject: subject.clone(),
            schema_type: source.schema_type,
            definition: source.definition.as_str().into(),
            fingerprint: facts.fingerprint.as_str().into(),
            references: facts.references.clone(),
            description: source.description.as_str().into(),
            created_by: by.into(),
            tags: source.tags.clone(),
            by: by.to_owned(),
            expects: facts.expects,
        };
        work.changes.push(register.into());
    }
    if difference.has("compatibility") {
        match declared_mode(difference.declared) {
            Some(mode) => {
                let set = SetCompatibility {
                    subject: subject.clone(),
                    mode: Some(mode),
                    json: None,
                    protobuf: None,
                    by: by.to_owned(),
                };
                work.changes.push(set.into());
            }
            None => {
                work.warnings.push("compatibility is no longer declared, and stays".to_owned());
            }
        }
    }
    Ok(work)
}
