//! Schemas as pure values: parsed and checked definitions, fingerprints, compatibility verdicts
//! and payload validation for Avro, JSON Schema, Protobuf, strings, numbers and bytes.
//!
//! What this crate leaves to others: which subject a schema belongs to, its ids and versions, who
//! may register it, what a topic does with a message that does not fit. The rules are written for
//! people in `docs/schemas.md`.
//!
//! Law: every answer is a function of the arguments alone and ends within a bound that does not
//! depend on the goodwill of whoever wrote the schema or the payload. Nothing is ever fetched;
//! what a definition refers to comes through [`References`] or is an error.

mod avro;
mod compatibility;
mod error;
mod fingerprint;
pub mod fuzzing;
mod json;
mod limits;
mod primitive;
mod protobuf;
mod references;
mod schema;
mod verdict;

pub use compatibility::check;
pub use danube_core::schema::{Compatibility, JsonLevel, Levels, ProtobufLevel, SchemaType};
pub use error::{PayloadFault, SchemaError};
pub use fingerprint::Fingerprint;
pub use limits::{
    DEFINITION_LEN_MAX, DEFINITION_NESTING_MAX, FAULTS_MAX, PayloadLimits, REFERENCES_LEN_MAX,
    REFERENCES_MAX,
};
pub use references::{NoReferences, References};
pub use schema::Schema;
pub use verdict::{Break, Direction, Verdict, Warning};
