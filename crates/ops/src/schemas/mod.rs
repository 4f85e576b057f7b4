//! Operations on schemas: one file per verb.

mod check;
mod definition;
mod delete;
mod get;
mod get_compatibility;
mod history;
mod list_subjects;
mod register;
mod set_compatibility;
mod versions;

pub use check::Check;
pub use delete::Delete;
pub use get::Get;
pub use get_compatibility::GetCompatibility;
pub use history::History;
pub use list_subjects::ListSubjects;
pub use register::Register;
pub use set_compatibility::SetCompatibility;
pub use versions::Versions;

use danube_core::WallMs;
use danube_core::position::Rfc3339;

/// A time of the compatible wire, which counts seconds.
fn at_seconds(seconds: u64) -> String {
    Rfc3339(WallMs(seconds.saturating_mul(1_000))).to_string()
}

/// `-` for nothing.
fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { crate::view::one_line(text) }
}
