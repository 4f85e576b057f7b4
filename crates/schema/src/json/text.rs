//! JSON text within bounds: length is checked by the caller, nesting here.

use crate::error::SchemaError;
use crate::limits::DEFINITION_NESTING_MAX;
use danube_core::schema::SchemaType;
use serde_json::{Map, Number, Value};

/// Parses a definition written in JSON.
pub(crate) fn parse(kind: SchemaType, definition: &[u8]) -> Result<Value, SchemaError> {
    let depth = nesting(definition);
    if depth > DEFINITION_NESTING_MAX {
        return Err(SchemaError::TooLarge {
            kind,
            what: "its nesting",
            got: depth,
            max: DEFINITION_NESTING_MAX,
        });
    }
    // Editors on one system put a mark before the text that JSON does not know.
    let definition = definition.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(definition);
    serde_json::from_slice(definition).map_err(|error| SchemaError::syntax(kind, error.to_string()))
}

/// The deepest nesting of brackets outside strings; a guess where the text is not JSON.
pub(crate) fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The value as text with sorted keys, whatever order the map type of this build keeps them in.
pub(crate) fn sorted(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sorted).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(entries) => {
            let mut entries: Vec<(&String, String)> =
                entries.iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort();
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, text)| format!("{}:{text}", Value::String(key.clone())))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// The same value with every number that is whole written as a whole number, because JSON Schema
/// takes `1.0` and `1` for equal.
pub(crate) fn whole_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number)),
        Value::Array(items) => Value::Array(items.iter().map(whole_numbers).collect()),
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), whole_numbers(value)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

fn whole(number: &Number) -> Number {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT_MAX => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(nesting(br#"{"a":"[[[[","b":[{"c":"\"]"}]}"#), 3);
        assert_eq!(nesting(b""), 0);
    }

    #[test]
    fn whole_floats_become_integers() {
        let value = whole_numbers(&json!([1.0, 1.5, -0.0, 1e300, {"a": 2.0}]));
        assert_eq!(value.to_string(), r#"[1,1.5,0,1e+300,{"a":2}]"#);
    }
}
