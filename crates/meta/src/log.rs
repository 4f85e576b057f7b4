//! The consensus log in the file, as the consensus library wants to see it.
//!
//! Law (the library's): entries have no hole between them, and writes are done one after another.

use crate::file::File;
use crate::types::{Entry, LogId, StorageError, Types, Vote};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, LogState, RaftLogReader, StorageIOError};
use std::fmt::Debug;
use std::ops::RangeBounds;
use std::sync::Arc;

/// The log and the vote. A clone reads the same file.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    file: Arc<File>,
}

impl Log {
    pub(crate) fn new(file: Arc<File>) -> Log {
        Log { file }
    }
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self
            .file
            .entries(range)
            .map_err(|error| StorageIOError::read_logs(AnyError::new(&error)))?)
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let read = || {
            let last_purged_log_id = self.file.purged()?;
            let last = self.file.last_entry()?.map(|entry| entry.log_id);
            Ok(LogState { last_purged_log_id, last_log_id: last.or(last_purged_log_id) })
        };
        Ok(read().map_err(|error: crate::file::FileError| {
            StorageIOError::read_logs(AnyError::new(&error))
        })?)
    }

    async fn get_log_reader(&mut self) -> Log {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        Ok(self
            .file
            .save_vote(vote)
            .map_err(|error| StorageIOError::write_vote(AnyError::new(&error)))?)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.file.vote().map_err(|error| StorageIOError::read_vote(AnyError::new(&error)))?)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        // The thread is the consensus engine's own, so waiting for the device here delays no one.
        match self.file.append(&entries) {
            Ok(()) => {
                callback.log_io_completed(Ok(()));
                Ok(())
            }
            Err(error) => {
                callback.log_io_completed(Err(std::io::Error::other(error.to_string())));
                Err(StorageIOError::write_logs(AnyError::new(&error)).into())
            }
        }
    }

    async fn truncate(&mut self, from: LogId) -> Result<(), StorageError> {
        Ok(self
            .file
            .truncate(from.index)
            .map_err(|error| StorageIOError::write_logs(AnyError::new(&error)))?)
    }

    async fn purge(&mut self, last: LogId) -> Result<(), StorageError> {
        Ok(self
            .file
            .purge(&last)
            .map_err(|error| StorageIOError::write_logs(AnyError::new(&error)))?)
    }
}
