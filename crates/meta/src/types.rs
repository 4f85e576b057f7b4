//! The consensus library's types, filled in.

use danube_core::Fault;
use danube_core::change::Outcome;
use serde::{Deserialize, Serialize};
use std::io::Cursor;

openraft::declare_raft_types!(
    /// What the consensus library carries for us.
    pub(crate) Types:
        D = Batch,
        R = Vec<Result<Outcome, Fault>>,
        NodeId = u64,
        Node = openraft::BasicNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
);

/// Commands that share one log entry, and so one write to the device.
///
/// They stay in their stored form until they are applied: a broker may keep and pass on commands
/// that it cannot read itself, and stops only where it would have to apply one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    /// As [`Command::encode`](danube_core::change::Command::encode) made them.
    pub commands: Vec<serde_json::Value>,
}

pub(crate) type Entry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
pub(crate) type Membership = openraft::StoredMembership<u64, openraft::BasicNode>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, openraft::BasicNode>;
pub(crate) type Snapshot = openraft::Snapshot<Types>;
pub(crate) type StorageError = openraft::StorageError<u64>;
pub(crate) type EngineMetrics = openraft::RaftMetrics<u64, openraft::BasicNode>;
pub(crate) type Raft = openraft::Raft<Types>;
