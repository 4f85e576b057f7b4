//! JSON Schema: definitions, set inclusion between versions, and payloads.
//!
//! ```text
//! text ─▶ documents ─▶ compile ─▶ node (algebra) ─▶ solve: is "writer and not reader" empty?
//!                         │                            └─▶ explain: which parts, with witnesses
//!                         └─▶ jsonschema::Validator ─▶ payloads, and the judge of witnesses
//! ```
//!
//! Law: a "compatible" is proved, a witness was accepted by the writer's validator and refused by
//! the reader's, and whatever is neither is refused as undecided, with the reason.

mod canonical;
mod compile;
mod cost;
mod documents;
mod eval;
mod explain;
mod node;
mod ratio;
mod regular;
mod solve;
pub(crate) mod text;

use crate::error::{PayloadFault, SchemaError};
use crate::limits::PayloadLimits;
use crate::references::References;
use crate::verdict::Findings;
use danube_core::schema::JsonLevel;
use danube_core::schema::SchemaType;
use node::Node;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A parsed definition.
pub(crate) struct JsonSchema {
    definition: Value,
    canonical: String,
    root: Node,
    /// What recursive references point to, by key.
    targets: BTreeMap<u128, Node>,
    /// An upper bound of how often the schema looks at one value; `None` when it is recursive.
    weight: Option<u64>,
    validator: jsonschema::Validator,
}

impl JsonSchema {
    pub(crate) fn parse(
        definition: &[u8],
        references: &dyn References,
    ) -> Result<JsonSchema, SchemaError> {
        let value = text::parse(SchemaType::JsonSchema, definition)?;
        let documents = documents::Documents::gather(&value, references)?;
        let canonical = canonical::canonical(&value, &documents);
        let salt = crate::fingerprint::short(canonical.as_bytes());
        let compiled = compile::compile(&documents, salt)?;
        let validator = build_validator(&value, &documents)?;
        let weight = cost::weight(&compiled.root);
        Ok(JsonSchema {
            definition: value,
            canonical,
            root: compiled.root,
            targets: compiled.targets,
            weight,
            validator,
        })
    }

    /// Sorted keys, no documentation, the referred documents after it.
    pub(crate) fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Checks that everything valid under `writer` is valid under `self`.
    pub(crate) fn read(&self, writer: &JsonSchema, level: JsonLevel, findings: &mut Findings<'_>) {
        explain::read(self, writer, level, findings);
    }

    pub(crate) fn validate(
        &self,
        payload: &[u8],
        limits: &PayloadLimits,
    ) -> Result<(), Vec<PayloadFault>> {
        let alone = |why: String| Err(vec![PayloadFault::new("", why)]);
        if text::nesting(payload) > limits.depth_max as usize {
            return alone(format!("is nested deeper than {}", limits.depth_max));
        }
        let value: Value = match serde_json::from_slice(payload) {
            Ok(value) => value,
            Err(error) => return alone(format!("is not JSON: {error}")),
        };
        let bound = self.weight.and_then(|weight| weight.checked_mul(payload.len() as u64));
        if bound.is_none_or(|bound| bound > limits.work_max)
            && !cost::affordable(self, &value, limits.work_max)
        {
            return alone("takes more work to check than the limit allows".into());
        }
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let faults: Vec<PayloadFault> = self
            .validator
            .iter_errors(&value)
            .take(limits.faults_max.max(1))
            .map(|error| {
                let why: String = error.to_string().chars().take(300).collect();
                PayloadFault::new(
                    error.instance_path().as_str(),
                    format!("{why} (rule {})", error.schema_path().as_str()),
                )
            })
            .collect();
        if faults.is_empty() { alone("is not valid".into()) } else { Err(faults) }
    }

    fn accepts(&self, value: &Value) -> bool {
        cost::affordable(self, value, PayloadLimits::default().work_max)
            && self.validator.is_valid(value)
    }
}

/// Compiles the validator that payloads meet. Patterns run in linear time; formats are annotations.
fn build_validator(
    value: &Value,
    documents: &documents::Documents,
) -> Result<jsonschema::Validator, SchemaError> {
    let patterns = jsonschema::PatternOptions::regex()
        .size_limit(compile::PATTERN_LEN_MAX)
        .dfa_size_limit(compile::PATTERN_LEN_MAX);
    let build = jsonschema::options()
        .with_draft(documents.draft().validator())
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .with_retriever(FromRegistry(Arc::new(documents.external())))
        .build(value);
    build.map_err(|error| {
        let path = error.instance_path().to_string();
        let why: String = error.to_string().chars().take(300).collect();
        SchemaError::invalid(SchemaType::JsonSchema, format!("#{path}"), why)
    })
}

/// Hands the validator what was gathered beforehand, and nothing else.
struct FromRegistry(Arc<BTreeMap<String, Value>>);

impl jsonschema::Retrieve for FromRegistry {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let wanted = uri.as_str();
        let found = self.0.get(wanted).or_else(|| {
            // A relative name was made absolute by the validator.
            self.0
                .iter()
                .find(|(name, _)| wanted.ends_with(&format!("/{name}")))
                .map(|(_, value)| value)
        });
        found.cloned().ok_or_else(|| format!("`{wanted}` is not in the registry").into())
    }
}
