//! The canonical form of a JSON Schema: sorted keys, whole numbers as whole numbers, no
//! documentation. What a reader may act on (`default`, `format`, `readOnly`) stays.

use super::documents::Documents;
use super::text::{sorted, whole_numbers};
use serde_json::{Map, Value};

/// Keywords that only speak to people.
const DOCUMENTATION: [&str; 4] = ["title", "description", "$comment", "examples"];

/// Keywords whose value maps names to schemas, so that its keys are not keywords.
const NAME_MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

pub(crate) fn canonical(root: &Value, documents: &Documents) -> String {
    let mut form = sorted(&strip(root));
    for (uri, value) in documents.external() {
        form.push_str(&format!("\n{uri}\n{}", sorted(&strip(&value))));
    }
    form
}

fn strip(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let mut kept = Map::new();
            for (key, value) in object {
                if DOCUMENTATION.contains(&key.as_str()) {
                    continue;
                }
                let value = match value {
                    Value::Object(names) if NAME_MAPS.contains(&key.as_str()) => Value::Object(
                        names.iter().map(|(name, schema)| (name.clone(), strip(schema))).collect(),
                    ),
                    value if matches!(key.as_str(), "enum" | "const" | "default") => {
                        whole_numbers(value)
                    }
                    value => strip(value),
                };
                kept.insert(key.clone(), value);
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(strip).collect()),
        other => whole_numbers(other),
    }
}
