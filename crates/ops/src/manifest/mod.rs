//! Operations on manifests: one file per verb, and here what they share.

mod apply;
mod diff;
mod drift;
mod export;
mod files;
mod plan;

pub use apply::Apply;
pub use diff::Diff;
pub use drift::ListDrift;
pub use export::Export;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One field that becomes, or has become, another value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Field {
    field: String,
    /// Absent: it was not set.
    old: Option<Value>,
    /// Absent: it is left to the layers below.
    new: Option<Value>,
}

impl Field {
    fn of(wire: danube_wire::proto::control::FieldChange) -> Field {
        // What the broker could not have sent as JSON is shown as it came.
        let value = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        Field { field: wire.field, old: wire.old.map(value), new: wire.new.map(value) }
    }

    /// `field: old -> new`.
    fn line(&self) -> String {
        let shown = |value: &Option<Value>| match value {
            None => "not set".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match &self.old {
            None => format!("{}: {}", self.field, shown(&self.new)),
            Some(_) => format!("{}: {} -> {}", self.field, shown(&self.old), shown(&self.new)),
        }
    }
}
