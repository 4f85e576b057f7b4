//! Adds a version to a subject, and makes the subject where there is none.

use super::{Outcome, Stamp};
use crate::catalog::{Catalog, SchemaVersion, SubjectEvent, VERSIONS_MAX};
use crate::fault::Fault;
use crate::schema::{SchemaType, SubjectName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "first version",
    "next version",
    "registered before",
    "subject came back",
    "changed meanwhile: retry",
    "reference gone: retry",
    "text too long: invalid",
    "too many versions: exhausted",
];

/// Longest description, in bytes.
pub const DESCRIPTION_LEN_MAX: usize = 4096;
/// Longest name of whoever made a version or a change, and longest tag, in bytes.
pub const LABEL_LEN_MAX: usize = 255;
/// Tags of one version.
pub const TAGS_MAX: usize = 64;

/// Adds a version to a subject. A definition that means the same as an existing version is that
/// version.
///
/// Whether the new version may follow the others was decided by the proposer, who has the parsers,
/// and holds only while the subject is at the revision that it looked at. So registrations of many
/// proposers make one history: all but the first are told to look again.
///
/// ```
/// # use danube_core::{FaultKind, SchemaType, SubjectName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let register = RegisterSchema {
///     subject: SubjectName::parse("greetings")?,
///     schema_type: SchemaType::String,
///     definition: "".into(),
///     fingerprint: "sha256:473287f8298dba7163a897908958f7c0eae733e25d2e027992ea2edc9bed2fa8".into(),
///     references: Default::default(),
///     description: "".into(),
///     created_by: "docs".into(),
///     tags: vec![],
///     by: "docs".into(),
///     expects: 0, // nobody has registered it
/// };
/// let mut catalog = Catalog::default();
/// catalog.apply(&Command::new(register.into(), WallMs(5)))?;
/// let latest = catalog.subject("greetings").and_then(|subject| subject.latest());
/// assert_eq!(latest.map(|(version, _)| version), Some(1));
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterSchema {
    /// The subject.
    pub subject: SubjectName,
    /// The language of the definition.
    pub schema_type: SchemaType,
    /// Exactly as it came.
    pub definition: Arc<str>,
    /// Of its canonical form.
    pub fingerprint: Arc<str>,
    /// What its references stand for: subject and version.
    pub references: BTreeMap<SubjectName, u32>,
    /// For people; at most [`DESCRIPTION_LEN_MAX`] bytes.
    pub description: Arc<str>,
    /// Who made it, as they say; at most [`LABEL_LEN_MAX`] bytes.
    pub created_by: Arc<str>,
    /// At most [`TAGS_MAX`] of at most [`LABEL_LEN_MAX`] bytes.
    pub tags: Vec<String>,
    /// Who asks, as far as the broker knows.
    pub by: String,
    /// The revision of the subject that the check was made against; 0 for a new one.
    pub expects: u64,
}

impl RegisterSchema {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let name = &self.subject;
        self.check_lengths()?;
        if let Some(subject) = catalog.subject_record(name.as_str())
            && let Some(version) = subject.same(self.schema_type, &self.fingerprint)
        {
            return Ok(Outcome::SchemaRegistered { id: subject.id, version, is_new: false });
        }
        let revision = catalog.subject_record(name.as_str()).map_or(0, |known| known.revision);
        if revision != self.expects {
            return Err(Fault::retry(format!(
                "schema subject `{name}` was changed meanwhile; check against it again"
            )));
        }
        for (of, version) in &self.references {
            let known = catalog.subject_record(of.as_str());
            if known.is_none_or(|known| !known.versions.contains_key(version)) {
                return Err(Fault::retry(format!(
                    "version {version} of `{of}`, which a new version of `{name}` refers to, was \
                     deleted meanwhile; resolve it again"
                )));
            }
        }
        catalog.add_definition(self.definition.len())?;
        if catalog.subject_record(name.as_str()).is_none() {
            catalog.insert_subject(name)?;
        }
        let subject = catalog.subject_mut(name.as_str()).expect("it is there by now");
        if subject.versions.size() >= VERSIONS_MAX {
            return Err(Fault::exhausted(format!(
                "schema subject `{name}` has {VERSIONS_MAX} versions; delete some that nobody uses"
            )));
        }
        let version = subject.next_version;
        subject.next_version = version.checked_add(1).ok_or_else(|| {
            Fault::exhausted(format!("all versions of schema subject `{name}` have been used"))
        })?;
        subject.versions.insert_mut(version, self.version(stamp));
        subject.revision += 1;
        let event = SubjectEvent::Registered {
            version,
            schema_type: self.schema_type,
            fingerprint: self.fingerprint.as_ref().into(),
        };
        subject.remember(stamp.at, &self.by, event);
        let id = subject.id;
        catalog.schema_changed();
        Ok(Outcome::SchemaRegistered { id, version, is_new: true })
    }

    fn version(&self, stamp: Stamp) -> SchemaVersion {
        SchemaVersion {
            schema_type: self.schema_type,
            definition: Arc::clone(&self.definition),
            fingerprint: Arc::clone(&self.fingerprint),
            references: self.references.clone(),
            description: Arc::clone(&self.description),
            created_by: Arc::clone(&self.created_by),
            created_at: stamp.at,
            tags: self.tags.clone(),
        }
    }

    fn check_lengths(&self) -> Result<(), Fault> {
        let name = &self.subject;
        let too_long = |what: &str, len: usize, max: usize| {
            Err(Fault::invalid(format!(
                "a version of schema subject `{name}` has {what} of {len} bytes; at most {max} are \
                 allowed"
            )))
        };
        if self.description.len() > DESCRIPTION_LEN_MAX {
            return too_long("a description", self.description.len(), DESCRIPTION_LEN_MAX);
        }
        if self.created_by.len() > LABEL_LEN_MAX {
            return too_long("a created_by", self.created_by.len(), LABEL_LEN_MAX);
        }
        if let Some(tag) = self.tags.iter().find(|tag| tag.len() > LABEL_LEN_MAX) {
            return too_long("a tag", tag.len(), LABEL_LEN_MAX);
        }
        if self.tags.len() > TAGS_MAX {
            return Err(Fault::invalid(format!(
                "a version of schema subject `{name}` has {} tags; at most {TAGS_MAX} are allowed",
                self.tags.len()
            )));
        }
        Ok(())
    }
}
