//! Decisions only: everything Danube decides, as pure values and functions.
//!
//! Here live the names, the intents, the replicated [`catalog`], the typed [`change`]s that
//! move it, and the [`subscription`] engine that says who receives a message and when it comes
//! back. What this crate leaves to others: sockets, files, clocks, threads, random numbers.
//!
//! Law: no IO, no async, no clock, no randomness. Time comes in as an argument ([`Tick`],
//! [`WallMs`]), effects go out as values, so that a test of a thirty-second backoff takes a
//! microsecond and one seed replays a whole history.

pub mod catalog;
pub mod change;
pub mod fault;
pub mod ids;
pub mod intent;
pub mod manifest;
pub mod name;
pub mod policy;
pub mod position;
pub mod rate;
pub mod retention;
pub mod schema;
pub mod sequence;
pub mod settings;
pub mod subscription;

pub use fault::{Fault, FaultKind};
pub use ids::{
    ConsumerId, Epoch, Incarnation, Offset, ProducerId, SchemaId, SubscriptionId, Tick, TopicId,
    WallMs,
};
pub use intent::{Delivery, Intent, PoisonPolicy, StreamSettings, WalSyncMode};
pub use name::{ConsumerName, NamespaceName, ProducerName, SubscriptionName, TopicName};
pub use policy::{Backoff, FailurePolicy, PolicySource, PolicySources, SubscriptionType};
pub use position::Position;
pub use retention::Retention;
pub use schema::{Compatibility, Levels, SchemaType, SubjectName, ValidationPolicy};
