//! Applies the ordered commands to the catalog, and keeps snapshots of it.
//!
//! The catalog lives in memory; a restart takes the latest snapshot and applies the log from
//! there. What a command does is decided in `danube-core`.
//!
//! Law: a command that cannot be read stops the machine, with an error that says which level is
//! needed. It is never skipped: this broker would then believe something else than the others.

use crate::file::{File, FileError};
use crate::published::Published;
use crate::types::{Batch, Entry, LogId, Membership, Snapshot, SnapshotMeta, StorageError, Types};
use danube_core::catalog::Catalog;
use danube_core::change::{Command, Outcome};
use danube_core::{Fault, FaultKind};
use openraft::storage::RaftStateMachine;
use openraft::{AnyError, EntryPayload, RaftSnapshotBuilder, StorageIOError};
use std::io::Cursor;
use std::sync::Arc;

/// The catalog as applied so far.
#[derive(Debug)]
pub(crate) struct Machine {
    file: Arc<File>,
    published: Arc<Published>,
    state: State,
}

/// What a snapshot is made of. A clone costs next to nothing.
#[derive(Debug, Clone, Default)]
struct State {
    catalog: Catalog,
    applied: Option<LogId>,
    membership: Membership,
}

impl State {
    fn read(meta: &SnapshotMeta, bytes: &[u8]) -> Result<State, Fault> {
        Ok(State {
            catalog: Catalog::decode(bytes)?,
            applied: meta.last_log_id,
            membership: meta.last_membership.clone(),
        })
    }

    fn revision(&self) -> u64 {
        self.applied.map_or(0, |applied| applied.index)
    }

    /// Takes all commands of a batch; an error is one that cannot be read.
    fn take(&mut self, batch: &Batch) -> Result<Vec<Result<Outcome, Fault>>, Fault> {
        let mut ends = Vec::with_capacity(batch.commands.len());
        for stored in &batch.commands {
            let command = Command::decode(stored)?;
            ends.push(self.catalog.apply(&command));
        }
        Ok(ends)
    }
}

impl Machine {
    /// Starts from the latest snapshot in the file, and publishes it.
    ///
    /// # Errors
    /// The inner one when the snapshot is there but this version cannot use it.
    pub(crate) fn load(
        file: Arc<File>,
        published: Arc<Published>,
    ) -> Result<Result<Machine, Fault>, FileError> {
        let state = match file.snapshot()? {
            None => State::default(),
            Some((meta, bytes)) => match State::read(&meta, &bytes) {
                Ok(state) => {
                    published.snapshot_len(bytes.len());
                    state
                }
                Err(fault) => return Ok(Err(fault)),
            },
        };
        published.publish(&state.catalog, state.revision());
        Ok(Ok(Machine { file, published, state }))
    }

    /// Takes an entry; an error is one that cannot be read, and stops the machine.
    fn take(&mut self, entry: Entry) -> Result<Vec<Result<Outcome, Fault>>, Fault> {
        let id = entry.log_id;
        // On a copy: an entry counts as a whole or not at all.
        let mut next = self.state.clone();
        next.applied = Some(id);
        let ends = match entry.payload {
            EntryPayload::Blank => Vec::new(),
            EntryPayload::Membership(membership) => {
                next.membership = Membership::new(Some(id), membership);
                Vec::new()
            }
            EntryPayload::Normal(batch) => next.take(&batch).map_err(|fault| {
                let message = format!("catalog stopped at log entry {}: {fault}", id.index);
                Fault::new(fault.kind, message)
            })?,
        };
        self.state = next;
        Ok(ends)
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.state.applied, self.state.membership.clone()))
    }

    async fn apply<I>(
        &mut self,
        entries: I,
    ) -> Result<Vec<Vec<Result<Outcome, Fault>>>, StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries = entries.into_iter();
        let mut changed = false;
        let mut ends = Vec::with_capacity(entries.size_hint().0);
        let mut stopped = Ok(());
        for entry in entries {
            let id = entry.log_id;
            match self.take(entry) {
                Ok(of_entry) => {
                    changed |= of_entry.iter().any(Result::is_ok);
                    ends.push(of_entry);
                }
                Err(fault) => {
                    stopped = Err(StorageIOError::apply(id, AnyError::new(&fault)).into());
                    self.published.stop(fault);
                    break;
                }
            }
        }
        if changed {
            self.published.publish(&self.state.catalog, self.state.revision());
        }
        stopped.map(|()| ends)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder {
            file: Arc::clone(&self.file),
            published: Arc::clone(&self.published),
            state: self.state.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let bytes = snapshot.into_inner();
        let state = State::read(meta, &bytes).map_err(|fault| {
            self.published.stop(fault.clone());
            StorageIOError::read_snapshot(Some(meta.signature()), AnyError::new(&fault))
        })?;
        self.file.save_snapshot(meta, &bytes).map_err(|error| {
            StorageIOError::write_snapshot(Some(meta.signature()), AnyError::new(&error))
        })?;
        self.state = state;
        self.published.snapshot_len(bytes.len());
        self.published.publish(&self.state.catalog, self.state.revision());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, StorageError> {
        let found = self
            .file
            .snapshot()
            .map_err(|error| StorageIOError::read_snapshot(None, AnyError::new(&error)))?;
        Ok(found.map(|(meta, bytes)| Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) }))
    }
}

/// Writes down the catalog of one moment while the machine goes on.
#[derive(Debug)]
pub(crate) struct SnapshotBuilder {
    file: Arc<File>,
    published: Arc<Published>,
    state: State,
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot, StorageError> {
        let (file, state) = (Arc::clone(&self.file), self.state.clone());
        // A large catalog takes long to write; proposals shall not wait for it.
        let task = tokio::task::spawn_blocking(move || write_snapshot(&file, &state));
        let built = task.await.map_err(|error| {
            StorageIOError::write_snapshot(None, AnyError::error(error.to_string()))
        })?;
        let (meta, bytes) =
            built.map_err(|error| StorageIOError::write_snapshot(None, AnyError::new(&error)))?;
        self.published.snapshot_len(bytes.len());
        Ok(Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) })
    }
}

fn write_snapshot(file: &File, state: &State) -> Result<(SnapshotMeta, Vec<u8>), FileError> {
    let bytes = state.catalog.encode();
    let snapshot_id = match state.applied {
        None => "0".to_owned(),
        Some(LogId { leader_id, index }) => {
            format!("{}-{}-{index}", leader_id.term, leader_id.node_id)
        }
    };
    let meta = SnapshotMeta {
        last_log_id: state.applied,
        last_membership: state.membership.clone(),
        snapshot_id,
    };
    file.save_snapshot(&meta, &bytes)?;
    Ok((meta, bytes))
}

/// The reason given when the engine stopped and left none.
pub(crate) fn stopped_without_reason(why: impl std::fmt::Display) -> Fault {
    Fault::new(
        FaultKind::Internal,
        format!("the catalog has stopped: {why}; see the log, mend the cause and restart"),
    )
}
