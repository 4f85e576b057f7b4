//! Parsed schemas of registered versions, kept while they are used.
//!
//! Law: at most [`ENTRIES_MAX`] and [`DEFINITIONS_LEN_MAX`] are kept here; the one that was asked
//! for longest ago gives way. Nothing is parsed while the lock is held.

use super::references::Pinned;
use danube_core::catalog::{Catalog, Subject};
use danube_core::{Fault, SchemaId};
use danube_schema::Schema;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Schemas kept.
const ENTRIES_MAX: usize = 2_048;
/// Bytes of their definitions together; parsed they take several times that.
const DEFINITIONS_LEN_MAX: usize = 32 << 20;

/// The cache.
#[derive(Default)]
pub(super) struct Compiled {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<(SchemaId, u32), Entry>,
    definitions_len: usize,
    asked: u64,
}

struct Entry {
    schema: Arc<Schema>,
    len: usize,
    asked: u64,
}

impl Compiled {
    /// The schema of a version of `subject`, whose name is `name`.
    ///
    /// # Errors
    /// `NotFound` when there is no such version; `Internal` when it does not parse any more, which
    /// it did when it was registered.
    pub(super) fn get(
        &self,
        catalog: &Catalog,
        (name, subject): (&str, &Subject),
        version: u32,
    ) -> Result<Arc<Schema>, Fault> {
        let key = (subject.id, version);
        if let Some(schema) = self.kept.lock().take(key) {
            return Ok(schema);
        }
        let stored = subject.versions.get(&version).ok_or_else(|| {
            Fault::not_found(format!("schema subject `{name}` has no version `{version}`"))
        })?;
        let references = Pinned { catalog, version: stored };
        let parsed = Schema::parse(stored.schema_type, stored.definition.as_bytes(), &references);
        let schema = Arc::new(parsed.map_err(|error| {
            Fault::internal(format!("version {version} of schema subject `{name}`: {error}"))
        })?);
        self.kept.lock().put(key, Arc::clone(&schema), stored.definition.len());
        Ok(schema)
    }

    /// Keeps a schema that was just registered.
    pub(super) fn put(&self, id: SchemaId, version: u32, schema: Arc<Schema>, len: usize) {
        self.kept.lock().put((id, version), schema, len);
    }
}

impl Kept {
    fn take(&mut self, key: (SchemaId, u32)) -> Option<Arc<Schema>> {
        self.asked += 1;
        let asked = self.asked;
        self.entries.get_mut(&key).map(|entry| {
            entry.asked = asked;
            Arc::clone(&entry.schema)
        })
    }

    fn put(&mut self, key: (SchemaId, u32), schema: Arc<Schema>, len: usize) {
        self.asked += 1;
        let entry = Entry { schema, len, asked: self.asked };
        self.definitions_len += len;
        if let Some(before) = self.entries.insert(key, entry) {
            self.definitions_len -= before.len;
        }
        while self.entries.len() > ENTRIES_MAX || self.definitions_len > DEFINITIONS_LEN_MAX {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.asked);
            let Some(key) = oldest.map(|(key, _)| *key) else { break };
            if let Some(gone) = self.entries.remove(&key) {
                self.definitions_len -= gone.len;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_schema::{NoReferences, SchemaType};

    #[test]
    fn what_was_asked_for_longest_ago_gives_way() {
        let schema =
            Arc::new(Schema::parse(SchemaType::Bytes, b"", &NoReferences).expect("a plain type"));
        let mut kept = Kept::default();
        let key = |version| (SchemaId(1), version);
        for version in 1..=4 {
            kept.put(key(version), Arc::clone(&schema), DEFINITIONS_LEN_MAX / 4);
        }
        assert!(kept.take(key(1)).is_some());
        kept.put(key(5), Arc::clone(&schema), 1);
        assert!(kept.take(key(2)).is_none() && kept.take(key(1)).is_some());
        kept.put(key(5), Arc::clone(&schema), 2);
        assert_eq!(kept.definitions_len, 3 * (DEFINITIONS_LEN_MAX / 4) + 2);
        for version in 10..10 + 2 * ENTRIES_MAX as u32 {
            kept.put(key(version), Arc::clone(&schema), 0);
        }
        assert_eq!(kept.entries.len(), ENTRIES_MAX);
        assert!(kept.definitions_len <= 2);
    }
}
