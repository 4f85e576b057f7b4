//! The one file of the catalog: the consensus log, the vote and the latest snapshot.
//!
//! `docs/formats/catalog.md` describes it. What the records mean is left to [`log`](crate::log)
//! and [`machine`](crate::machine).
//!
//! Law: a write that returned is on the device, and a file that was not finished being made is
//! never taken for a finished one: it gets its name last.

use crate::error::MetaError;
use crate::types::{Entry, LogId, SnapshotMeta, Vote};
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError,
    TableDefinition,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File as OsFile, TryLockError};
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};

pub(crate) const FILE: &str = "raft.redb";
const FILE_UNFINISHED: &str = "raft.redb.new";
const LOCK_FILE: &str = "raft.lock";

/// Version of the tables and their records.
const FORMAT: u32 = 1;
/// The catalog is small and lives in memory; the database need not keep it a second time.
const CACHE_BYTES_MAX: usize = 4 << 20;

/// Index of a log entry to the entry, as JSON.
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("raft_log");
/// Everything there is one of, as JSON.
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("raft_state");

const KEY_FORMAT: &str = "format";
const KEY_NODE: &str = "node_id";
const KEY_VOTE: &str = "vote";
const KEY_PURGED: &str = "purged";
const KEY_SNAPSHOT_META: &str = "snapshot_meta";
const KEY_SNAPSHOT: &str = "snapshot";

/// What a read or write of the file can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The database or the device.
    #[error("{0}")]
    Database(redb::Error),
    /// A record that is not what we wrote.
    #[error("record `{record}` is damaged: {why}")]
    Record { record: String, why: String },
}

impl<E: Into<redb::Error>> From<E> for FileError {
    fn from(error: E) -> FileError {
        FileError::Database(error.into())
    }
}

/// The open file, locked for this process.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    database: Database,
    /// Ends with the process, however that ends.
    _lock: OsFile,
}

impl File {
    /// Opens the file in `dir`, making both where missing; a new file is for node `node`.
    pub(crate) fn open(dir: &Path, node: u64) -> Result<File, MetaError> {
        let io = |doing, path: &Path, error: std::io::Error| MetaError::Io {
            doing,
            path: path.to_path_buf(),
            why: error.to_string(),
        };
        std::fs::create_dir_all(dir).map_err(|error| io("make directory", dir, error))?;
        let lock = lock(dir)?;
        let path = dir.join(FILE);
        match path.try_exists() {
            Ok(true) => {
                let database = open_database(dir, &path)?;
                let file = File { path, database, _lock: lock };
                file.check_format()?;
                Ok(file)
            }
            Ok(false) => {
                let unfinished = dir.join(FILE_UNFINISHED);
                match std::fs::remove_file(&unfinished) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(io("remove", &unfinished, error));
                    }
                    _ => {}
                }
                let database = open_database(dir, &unfinished)?;
                let file = File { path: path.clone(), database, _lock: lock };
                file.initialise(node).map_err(|error| file.error("write", &error))?;
                std::fs::rename(&unfinished, &path)
                    .and_then(|()| OsFile::open(dir)?.sync_all())
                    .map_err(|error| io("make", &path, error))?;
                Ok(file)
            }
            Err(error) => Err(io("find", &path, error)),
        }
    }

    fn initialise(&self, node: u64) -> Result<(), FileError> {
        let write = self.begin_write()?;
        {
            write.open_table(LOG)?;
            let mut state = write.open_table(STATE)?;
            state.insert(KEY_FORMAT, encode(&FORMAT).as_slice())?;
            state.insert(KEY_NODE, encode(&node).as_slice())?;
        }
        Ok(write.commit()?)
    }

    fn check_format(&self) -> Result<(), MetaError> {
        let damaged = |why: String| MetaError::Damaged { path: self.path.clone(), why };
        match self.get::<u32>(KEY_FORMAT).map_err(|error| damaged(error.to_string()))? {
            Some(FORMAT) => Ok(()),
            Some(other) => Err(damaged(format!(
                "it has format `{other}`, this version of danube knows {FORMAT}"
            ))),
            None => Err(damaged("it has no format number".to_owned())),
        }
    }

    /// The file's own account of a failure.
    pub(crate) fn error(&self, doing: &'static str, error: &FileError) -> MetaError {
        match error {
            FileError::Database(redb::Error::Corrupted(_)) | FileError::Record { .. } => {
                MetaError::Damaged { path: self.path.clone(), why: error.to_string() }
            }
            FileError::Database(error) => {
                MetaError::Io { doing, path: self.path.clone(), why: error.to_string() }
            }
        }
    }

    /// Which node this is.
    pub(crate) fn node(&self) -> Result<u64, FileError> {
        self.get(KEY_NODE)?.ok_or_else(|| FileError::Record {
            record: KEY_NODE.to_owned(),
            why: "it is missing".to_owned(),
        })
    }

    pub(crate) fn vote(&self) -> Result<Option<Vote>, FileError> {
        self.get(KEY_VOTE)
    }

    pub(crate) fn save_vote(&self, vote: &Vote) -> Result<(), FileError> {
        self.put(&[(KEY_VOTE, &encode(vote))])
    }

    /// The last entry that was removed because a snapshot covers it.
    pub(crate) fn purged(&self) -> Result<Option<LogId>, FileError> {
        self.get(KEY_PURGED)
    }

    pub(crate) fn last_entry(&self) -> Result<Option<Entry>, FileError> {
        let read = self.database.begin_read()?;
        let log = read.open_table(LOG)?;
        log.last()?.map(|(index, bytes)| decode_entry(index.value(), bytes.value())).transpose()
    }

    pub(crate) fn entries(&self, range: impl RangeBounds<u64>) -> Result<Vec<Entry>, FileError> {
        let read = self.database.begin_read()?;
        let log = read.open_table(LOG)?;
        let mut entries = Vec::new();
        for item in log.range::<u64>(range)? {
            let (index, bytes) = item?;
            entries.push(decode_entry(index.value(), bytes.value())?);
        }
        Ok(entries)
    }

    pub(crate) fn append(&self, entries: &[Entry]) -> Result<(), FileError> {
        let write = self.begin_write()?;
        {
            let mut log = write.open_table(LOG)?;
            for entry in entries {
                log.insert(entry.log_id.index, encode(entry).as_slice())?;
            }
        }
        Ok(write.commit()?)
    }

    /// Removes the entries from `index` on.
    pub(crate) fn truncate(&self, index: u64) -> Result<(), FileError> {
        let write = self.begin_write()?;
        remove_range(&mut write.open_table(LOG)?, index..)?;
        Ok(write.commit()?)
    }

    /// Removes the entries up to and with `last`.
    pub(crate) fn purge(&self, last: &LogId) -> Result<(), FileError> {
        let write = self.begin_write()?;
        {
            write.open_table(STATE)?.insert(KEY_PURGED, encode(last).as_slice())?;
            remove_range(&mut write.open_table(LOG)?, ..=last.index)?;
        }
        Ok(write.commit()?)
    }

    pub(crate) fn snapshot(&self) -> Result<Option<(SnapshotMeta, Vec<u8>)>, FileError> {
        let Some(meta) = self.get(KEY_SNAPSHOT_META)? else { return Ok(None) };
        match self.bytes(KEY_SNAPSHOT)? {
            Some(bytes) => Ok(Some((meta, bytes))),
            None => Err(FileError::Record {
                record: KEY_SNAPSHOT.to_owned(),
                why: "it is missing".to_owned(),
            }),
        }
    }

    /// Replaces the snapshot; both halves or neither.
    pub(crate) fn save_snapshot(&self, meta: &SnapshotMeta, bytes: &[u8]) -> Result<(), FileError> {
        self.put(&[(KEY_SNAPSHOT_META, &encode(meta)), (KEY_SNAPSHOT, bytes)])
    }

    fn begin_write(&self) -> Result<redb::WriteTransaction, FileError> {
        let mut write = self.database.begin_write()?;
        // With one phase, damage to the last commit looks like one that was cut off by a crash,
        // and the database quietly goes back to the one before: a confirmed change would be gone.
        // The second sync is cheap, since changes of the catalog are few and share their writes.
        write.set_two_phase_commit(true);
        Ok(write)
    }

    fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, FileError> {
        self.bytes(key)?
            .map(|bytes| {
                serde_json::from_slice(&bytes).map_err(|error| FileError::Record {
                    record: key.to_owned(),
                    why: error.to_string(),
                })
            })
            .transpose()
    }

    fn bytes(&self, key: &str) -> Result<Option<Vec<u8>>, FileError> {
        let read = self.database.begin_read()?;
        Ok(read.open_table(STATE)?.get(key)?.map(|bytes| bytes.value().to_vec()))
    }

    fn put(&self, records: &[(&str, &[u8])]) -> Result<(), FileError> {
        let write = self.begin_write()?;
        {
            let mut state = write.open_table(STATE)?;
            for (key, bytes) in records {
                state.insert(*key, *bytes)?;
            }
        }
        Ok(write.commit()?)
    }
}

fn lock(dir: &Path) -> Result<OsFile, MetaError> {
    let path = dir.join(LOCK_FILE);
    let io = |doing, error: std::io::Error| MetaError::Io {
        doing,
        path: path.clone(),
        why: error.to_string(),
    };
    let file = OsFile::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| io("make", error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(MetaError::InUse { dir: dir.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(io("lock", error)),
    }
}

fn open_database(dir: &Path, path: &Path) -> Result<Database, MetaError> {
    let empty = std::fs::metadata(path).is_ok_and(|found| found.len() == 0);
    if empty {
        // The database would take it for a new one, and a whole catalog would be gone unnoticed.
        let why = "it is empty".to_owned();
        return Err(MetaError::Damaged { path: path.to_path_buf(), why });
    }
    Builder::new()
        .set_cache_size(CACHE_BYTES_MAX)
        // Else a file that was altered behind our back is trusted, and trips us later.
        .set_check_integrity_on_open(true)
        .create(path)
        .map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => MetaError::InUse { dir: dir.to_path_buf() },
            DatabaseError::Storage(StorageError::Io(ref io))
                if !matches!(
                    io.kind(),
                    std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
                ) =>
            {
                MetaError::Io { doing: "open", path: path.to_path_buf(), why: error.to_string() }
            }
            error => MetaError::Damaged { path: path.to_path_buf(), why: error.to_string() },
        })
}

fn remove_range(
    log: &mut redb::Table<'_, u64, &[u8]>,
    range: impl RangeBounds<u64>,
) -> Result<(), FileError> {
    let range: (Bound<u64>, Bound<u64>) =
        (range.start_bound().cloned(), range.end_bound().cloned());
    Ok(log.retain_in(range, |_, _| false)?)
}

fn encode(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("plain data with text keys is JSON")
}

fn decode_entry(index: u64, bytes: &[u8]) -> Result<Entry, FileError> {
    let damaged = |why: String| FileError::Record { record: format!("log entry {index}"), why };
    let entry: Entry = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if entry.log_id.index != index {
        return Err(damaged(format!("it says that it is entry {}", entry.log_id.index)));
    }
    Ok(entry)
}
