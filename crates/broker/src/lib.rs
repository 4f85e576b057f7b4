//! The running broker: topic actors, the services for clients and administrators, HTTP.
//!
//! [`Broker::start`] composes the catalog, the log and the listeners; everything else in here is
//! reached through a listener. What this crate leaves to others: decisions about messages and
//! metadata (`core`), bytes on disk (`store`), replication (`meta`), the contract (`wire`), flags
//! and files (`danube`).
//!
//! Law: edges translate, actors own. No lock is held across an await, every queue is bounded, and
//! nothing that comes from a client or a disk can panic the process.

mod admin;
mod broker;
mod clock;
mod context;
mod http;
#[doc(hidden)]
pub mod measured;
mod metrics;
mod options;
mod rpc;
mod scan;
mod schema;
mod stream;
mod topic;
mod topics;
mod traces;

pub use broker::{Addresses, Broker, StartError, StopError};
pub use danube_meta::{CONSENSUS_LOG_TARGET, FILE_NAME as CATALOG_FILE_NAME};
pub use metrics::{metrics_contract, metrics_page};
pub use options::{BrokerOptions, DispatchOptions, MetricsOptions, Policies, StorageOptions};
