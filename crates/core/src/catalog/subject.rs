//! What the registry knows of a subject: its versions, what it promises, and who changed what.
//!
//! Whether a new version may follow the others is decided before it is proposed, by whoever has the
//! parsers; here it counts that nothing changed in between ([`Subject::revision`]). Law: a version's
//! number is never given twice, its bytes never change, and every list that a client can make grow
//! has a bound here.

use super::Map;
use crate::ids::{SchemaId, WallMs};
use crate::schema::{Compatibility, Levels, SchemaType, SubjectName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Subjects of one registry.
pub const SUBJECTS_MAX: usize = 10_000;
/// Versions of one subject.
pub const VERSIONS_MAX: usize = 1_000;
/// Bytes of all definitions together: they are in memory and in every snapshot.
pub const DEFINITIONS_LEN_MAX: u64 = 256 << 20;
/// Remembered changes of one subject or topic; the oldest gives way.
pub const HISTORY_LEN_MAX: usize = 200;

/// A subject with its versions. One without versions is not shown, but keeps its numbers and its
/// history for the day when somebody registers it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Its number, never given to another.
    pub id: SchemaId,
    /// Grows with every change that a compatibility check depends on.
    pub revision: u64,
    /// What it promises about its versions.
    pub compatibility: Compatibility,
    /// How strictly that is meant.
    pub levels: Levels,
    /// The number of the next version.
    pub(crate) next_version: u32,
    /// Its versions by number.
    pub versions: Map<u32, SchemaVersion>,
    /// Who changed what, the latest [`HISTORY_LEN_MAX`] of it.
    pub history: Vec<SubjectRecord>,
}

impl Subject {
    pub(crate) fn new(id: SchemaId) -> Subject {
        Subject {
            id,
            revision: 0,
            compatibility: Compatibility::default(),
            levels: Levels::default(),
            next_version: 1,
            versions: Map::new_sync(),
            history: Vec::new(),
        }
    }

    /// The highest version.
    pub fn latest(&self) -> Option<(u32, &SchemaVersion)> {
        self.versions.iter().next_back().map(|(number, version)| (*number, version))
    }

    /// The version that has this type and fingerprint.
    pub fn same(&self, schema_type: SchemaType, fingerprint: &str) -> Option<u32> {
        let mut versions = self.versions.iter();
        let found = versions.find(|(_, version)| {
            version.schema_type == schema_type && *version.fingerprint == *fingerprint
        });
        found.map(|(number, _)| *number)
    }

    pub(crate) fn remember(&mut self, at: WallMs, by: &str, what: SubjectEvent) {
        keep_latest(&mut self.history, SubjectRecord { at, by: by.into(), what });
    }
}

/// One version of a subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaVersion {
    /// Its language.
    pub schema_type: SchemaType,
    /// Exactly what was registered.
    pub definition: Arc<str>,
    /// Of the canonical form; two definitions that mean the same have the same.
    pub fingerprint: Arc<str>,
    /// The versions that the definition's references stand for, by subject.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub references: BTreeMap<SubjectName, u32>,
    /// For people.
    pub description: Arc<str>,
    /// Who made it, as they said.
    pub created_by: Arc<str>,
    /// When it was registered.
    pub created_at: WallMs,
    /// For people and programs.
    pub tags: Vec<String>,
}

/// One line of a subject's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectRecord {
    /// When.
    pub at: WallMs,
    /// Who, as far as the broker knows.
    pub by: String,
    /// What.
    #[serde(flatten)]
    pub what: SubjectEvent,
}

/// What happened to a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SubjectEvent {
    /// A version was added.
    Registered {
        /// Its number.
        version: u32,
        /// Its language.
        schema_type: SchemaType,
        /// Its fingerprint.
        fingerprint: String,
    },
    /// A version was removed.
    Deleted {
        /// Its number.
        version: u32,
        /// Its fingerprint.
        fingerprint: String,
    },
    /// What the subject promises was changed.
    CompatibilitySet {
        /// What it was.
        from: Promise,
        /// What it is.
        to: Promise,
    },
}

/// A compatibility mode with its levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The mode.
    pub mode: Compatibility,
    /// The levels.
    #[serde(flatten)]
    pub levels: Levels,
}

/// Adds to a history, at the cost of its oldest line where that is one too many.
pub(crate) fn keep_latest<T>(history: &mut Vec<T>, line: T) {
    if history.len() >= HISTORY_LEN_MAX {
        history.remove(0);
    }
    history.push(line);
}
