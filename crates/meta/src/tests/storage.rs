//! The storage as the consensus library judges it, and the stored form of its records.

use super::*;
use crate::types::{Entry, LogId, Membership, SnapshotMeta, Vote};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{BasicNode, CommittedLeaderId, EntryPayload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use tempfile::TempDir;

struct Builder;

impl StoreBuilder<crate::types::Types, Log, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, Log, Machine), crate::types::StorageError> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = Arc::new(File::open(dir.path(), 0).expect("the file opens"));
        let machine = Machine::load(Arc::clone(&file), Arc::new(Published::new()))
            .expect("the file is sound")
            .expect("there is no snapshot");
        Ok((dir, Log::new(file), machine))
    }
}

#[test]
fn the_storage_does_what_the_consensus_library_expects() {
    Suite::test_all(Builder).expect("every case of its suite holds");
}

fn id(term: u64, index: u64) -> LogId {
    LogId { leader_id: CommittedLeaderId::new(term, 1), index }
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(pinned: &str, record: &T) {
    assert_eq!(serde_json::to_string(record).expect("plain data"), pinned);
    assert_eq!(&serde_json::from_str::<T>(pinned).expect("our own JSON"), record);
}

/// The form of these records is the consensus library's; a changed line means that an update of it
/// can no longer read the files of the last release.
#[test]
fn the_stored_form_of_the_records_is_pinned() {
    let pinned = include_str!("../../../../docs/formats/golden/raft-records.jsonl");
    let lines: Vec<&str> = pinned.lines().collect();
    let [vote, blank, commands, membership, purged, snapshot] = lines[..] else {
        panic!("six records, not {}", lines.len());
    };
    check(vote, &Vote::new_committed(2, 1));
    check(blank, &Entry { log_id: id(2, 7), payload: EntryPayload::Blank });
    let command = danube_core::change::Command::new(StartIncarnation {}.into(), WallMs(5)).encode();
    let batch = Batch { commands: vec![command] };
    check(commands, &Entry { log_id: id(2, 8), payload: EntryPayload::Normal(batch) });
    let alone =
        openraft::Membership::new(vec![[1].into()], BTreeMap::from([(1, BasicNode::default())]));
    let payload = EntryPayload::Membership(alone.clone());
    check(membership, &Entry { log_id: id(0, 0), payload });
    check(purged, &id(2, 6));
    let meta = SnapshotMeta {
        last_log_id: Some(id(2, 8)),
        last_membership: Membership::new(Some(id(0, 0)), alone),
        snapshot_id: "2-1-8".to_owned(),
    };
    check(snapshot, &meta);
}
