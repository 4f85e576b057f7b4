//! Says what a subject promises about its versions.

use super::delete_schema::unknown_subject;
use super::{Outcome, Stamp};
use crate::catalog::{Catalog, Promise, SubjectEvent};
use crate::fault::Fault;
use crate::schema::{Compatibility, JsonLevel, Levels, ProtobufLevel, SubjectName};
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &["set", "unchanged", "unknown subject: not_found"];

/// Sets mode and levels of a subject; what is not given stays. Existing versions are not looked at
/// again: the promise is about what comes.
///
/// ```
/// # use danube_core::{Compatibility, FaultKind, SubjectName, WallMs};
/// # use danube_core::{catalog::Catalog, change::*};
/// let set = SetCompatibility {
///     subject: SubjectName::parse("a")?,
///     mode: Some(Compatibility::Full),
///     json: None,
///     protobuf: None,
///     by: "docs".into(),
/// };
/// let command = Command::new(set.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("no such subject");
/// assert_eq!(fault.kind, FaultKind::NotFound);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetCompatibility {
    /// The subject.
    pub subject: SubjectName,
    /// The mode.
    pub mode: Option<Compatibility>,
    /// The level for JSON Schema.
    pub json: Option<JsonLevel>,
    /// The level for Protobuf.
    pub protobuf: Option<ProtobufLevel>,
    /// Who asks, as far as the broker knows.
    pub by: String,
}

impl SetCompatibility {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        let name = self.subject.as_str();
        if catalog.subject(name).is_none() {
            return Err(unknown_subject(&self.subject));
        }
        let subject = catalog.subject_mut(name).expect("it was found");
        let from = Promise { mode: subject.compatibility, levels: subject.levels };
        let to = Promise {
            mode: self.mode.unwrap_or(from.mode),
            levels: Levels {
                json: self.json.unwrap_or(from.levels.json),
                protobuf: self.protobuf.unwrap_or(from.levels.protobuf),
            },
        };
        if from != to {
            subject.compatibility = to.mode;
            subject.levels = to.levels;
            // Whoever has checked under the old promise has to check again.
            subject.revision += 1;
            subject.remember(stamp.at, &self.by, SubjectEvent::CompatibilitySet { from, to });
        }
        Ok(Outcome::CompatibilitySet { promise: to })
    }
}
