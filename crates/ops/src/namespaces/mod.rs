//! Operations on namespaces: one file per verb.

mod create;
mod delete;
mod list;

pub use create::Create;
pub use delete::Delete;
pub use list::List;

pub(crate) use list::names;
