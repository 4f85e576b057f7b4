//! Operations on brokers: one file per verb.

mod leader;
mod list;

pub use leader::Leader;
pub use list::{Broker, List};
pub(crate) use list::{brokers, table};
