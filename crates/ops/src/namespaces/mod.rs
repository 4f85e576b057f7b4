//! Operations on namespaces: one file per verb.

mod create;
mod delete;
mod list;
mod policies;
mod set_policies;
mod topics;

pub use create::Create;
pub use delete::Delete;
pub use list::List;
pub use policies::Policies;
pub use set_policies::SetPolicies;
pub use topics::Topics;

pub(crate) use list::names;
