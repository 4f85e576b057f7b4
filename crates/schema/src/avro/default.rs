//! Checks that the default of a field is a value of the field's type.
//!
//! A union's default may match any branch (Avro 1.12; up to 1.11 it had to match the first).

use super::{AvroSchema, Kind, TypeId};
use serde_json::Value;

/// The sentence says what is wrong with the default, without the field's name.
pub(super) fn check(schema: &AvroSchema, of: TypeId, value: &Value) -> Result<(), String> {
    let shown = shorten(value);
    let no = |why: String| Err(format!("default `{shown}` {why}"));
    let of_type = |good: bool| {
        if good { Ok(()) } else { no(format!("is not a value of type {}", schema.label(of))) }
    };
    match &schema.type_of(of).kind {
        Kind::Null => of_type(value.is_null()),
        Kind::Boolean => of_type(value.is_boolean()),
        Kind::Int => of_type(value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())),
        Kind::Long => of_type(value.is_i64()),
        // Java writes the special numbers as strings, and readers know them.
        Kind::Float | Kind::Double => of_type(
            value.is_number()
                || matches!(
                    value.as_str(),
                    Some("NaN" | "Infinity" | "-Infinity" | "INF" | "-INF")
                ),
        ),
        Kind::String => of_type(value.is_string()),
        Kind::Bytes => of_type(value.as_str().is_some_and(is_bytes)),
        Kind::Fixed { size, .. } => of_type(
            value.as_str().is_some_and(|text| is_bytes(text) && text.chars().count() == *size),
        ),
        Kind::Enum { symbols, .. } => {
            if value.as_str().is_some_and(|symbol| symbols.iter().any(|known| known == symbol)) {
                return Ok(());
            }
            no(format!("is not a symbol of {}", schema.label(of)))
        }
        Kind::Array(items) => {
            let Some(listed) = value.as_array() else { return of_type(false) };
            listed.iter().try_for_each(|item| check(schema, *items, item))
        }
        Kind::Map(values) => {
            let Some(entries) = value.as_object() else { return of_type(false) };
            entries.values().try_for_each(|item| check(schema, *values, item))
        }
        Kind::Union(branches) => {
            if branches.iter().any(|branch| check(schema, *branch, value).is_ok()) {
                return Ok(());
            }
            no(format!(
                "fits no branch of the union {}; give a value of one of the branches",
                schema.label(of)
            ))
        }
        Kind::Record { fields, .. } => {
            let Some(entries) = value.as_object() else { return of_type(false) };
            for field in fields {
                match entries.get(&field.name) {
                    Some(inner) => check(schema, field.of, inner)
                        .map_err(|why| format!("(in field `{}` of it) {why}", field.name))?,
                    None if field.default.is_some() => {}
                    None => {
                        return no(format!(
                            "lacks field `{}` of {}, which has no default",
                            field.name,
                            schema.label(of)
                        ));
                    }
                }
            }
            Ok(())
        }
    }
}

/// Bytes are written as the characters U+0000 to U+00FF.
fn is_bytes(text: &str) -> bool {
    text.chars().all(|char| u32::from(char) <= 0xFF)
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 {
        return text;
    }
    text.chars().take(60).chain(['…']).collect()
}
