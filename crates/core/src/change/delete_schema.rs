//! Removes a version of a subject, or all of them.

use super::{Outcome, Stamp};
use crate::catalog::{Catalog, SubjectEvent};
use crate::fault::Fault;
use crate::schema::SubjectName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "version deleted",
    "subject deleted",
    "unknown subject: not_found",
    "unknown version: not_found",
    "referred to: precondition",
    "in use: precondition",
];

/// Topics and subjects that a refusal names.
const NAMED_MAX: usize = 5;

/// Removes a version, or all of them. Its number is not given again, and messages that carry it
/// count as unknown from then on. The history of the subject stays, also when nothing else does.
///
/// ```
/// # use danube_core::{FaultKind, SubjectName, WallMs, catalog::Catalog, change::*};
/// let delete =
///     DeleteSchema { subject: SubjectName::parse("a")?, version: Some(1), by: "docs".into() };
/// let command = Command::new(delete.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("there is none");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteSchema {
    /// The subject.
    pub subject: SubjectName,
    /// Which version; all when not given.
    pub version: Option<u32>,
    /// Who asks, as far as the broker knows.
    pub by: String,
}

impl DeleteSchema {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let name = &self.subject;
        let subject = catalog.subject(name.as_str()).ok_or_else(|| unknown_subject(name))?;
        let doomed: Vec<u32> = match self.version {
            None => subject.versions.keys().copied().collect(),
            Some(version) if subject.versions.contains_key(&version) => vec![version],
            Some(version) => {
                return Err(Fault::not_found(format!(
                    "schema subject `{name}` has no version `{version}`"
                )));
            }
        };
        if doomed.len() == subject.versions.size() {
            self.check_unused(catalog)?;
        }
        self.check_not_referred_to(catalog, &doomed)?;
        let subject = catalog.subject_mut(name.as_str()).expect("it was found");
        let mut removed_len = 0;
        for version in &doomed {
            let Some(found) = subject.versions.get(version) else { continue };
            removed_len += found.definition.len();
            let fingerprint = found.fingerprint.as_ref().into();
            subject.versions.remove_mut(version);
            let event = SubjectEvent::Deleted { version: *version, fingerprint };
            subject.remember(stamp.at, &self.by, event);
        }
        subject.revision += 1;
        catalog.remove_definition(removed_len);
        catalog.schema_changed();
        Ok(Outcome::SchemaDeleted { versions: doomed })
    }

    fn check_unused(&self, catalog: &Catalog) -> Result<(), Fault> {
        let name = &self.subject;
        let users: Vec<&str> =
            catalog.topics_of_subject(name.as_str()).map(|topic| topic.as_str()).collect();
        match users.is_empty() {
            true => Ok(()),
            false => Err(Fault::precondition(format!(
                "schema subject `{name}` cannot lose its last version: topics use it ({}); give \
                 them another subject or delete them first",
                listed(&users)
            ))),
        }
    }

    fn check_not_referred_to(&self, catalog: &Catalog, doomed: &[u32]) -> Result<(), Fault> {
        let name = &self.subject;
        let mut users = Vec::new();
        for (other, subject) in catalog.subjects() {
            for (number, version) in subject.versions.iter() {
                let to = version.references.get(name);
                if other != name && to.is_some_and(|to| doomed.contains(to)) {
                    users.push(format!("version {number} of `{other}`"));
                }
            }
        }
        match users.is_empty() {
            true => Ok(()),
            false => Err(Fault::precondition(format!(
                "schema subject `{name}` cannot lose a version that others refer to: {}; delete \
                 those first",
                listed(&users.iter().map(String::as_str).collect::<Vec<_>>())
            ))),
        }
    }
}

/// The refusal of a subject that has no version.
pub(super) fn unknown_subject(name: &SubjectName) -> Fault {
    Fault::not_found(format!("schema subject `{name}` not found; register a version of it first"))
}

fn listed(names: &[&str]) -> String {
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(NAMED_MAX)].join(", "))
}
