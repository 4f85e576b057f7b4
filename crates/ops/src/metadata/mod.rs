//! Operations on the documents of the catalog, at their keys, readable by a person: one file per
//! verb.

mod get;
mod list;

pub use get::Get;
pub use list::List;

use serde_json::Value;

/// The document; its text where a newer broker's is not JSON.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
