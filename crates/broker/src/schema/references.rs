//! What a definition refers to: other subjects of the registry, and nothing else.
//!
//! Law: which version a reference stood for when the definition was registered is written down with
//! it, and is what it stands for ever after.

use danube_core::SubjectName;
use danube_core::catalog::{Catalog, SchemaVersion};
use danube_schema::References;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The latest versions of other subjects; remembers which were asked for.
pub(super) struct Latest<'a> {
    catalog: &'a Catalog,
    /// The subject of the definition, which cannot refer to itself through the registry.
    own: &'a str,
    used: RefCell<BTreeMap<SubjectName, u32>>,
}

impl<'a> Latest<'a> {
    pub(super) fn new(catalog: &'a Catalog, own: &'a str) -> Latest<'a> {
        Latest { catalog, own, used: RefCell::default() }
    }

    /// What was asked for and found.
    pub(super) fn into_used(self) -> BTreeMap<SubjectName, u32> {
        self.used.into_inner()
    }
}

impl References for Latest<'_> {
    fn definition(&self, name: &str) -> Option<Vec<u8>> {
        if name == self.own {
            return None;
        }
        let (version, found) = self.catalog.subject(name)?.latest()?;
        let subject = SubjectName::parse(name).ok()?;
        self.used.borrow_mut().insert(subject, version);
        Some(found.definition.as_bytes().to_vec())
    }
}

/// The versions that a registered definition was registered with.
pub(super) struct Pinned<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) version: &'a SchemaVersion,
}

impl References for Pinned<'_> {
    fn definition(&self, name: &str) -> Option<Vec<u8>> {
        let version = self.version.references.get(name)?;
        let found = self.catalog.subject_record(name)?.versions.get(version)?;
        Some(found.definition.as_bytes().to_vec())
    }
}
