//! Takes steps of a plan that was made from a manifest.
//!
//! Law: a step is taken whole or not at all, and only while its object is as the plan found it.

use super::{Change, Outcome, Stamp};
use crate::catalog::{AppliedRecord, Catalog, Fields, ObjectKey};
use crate::fault::Fault;
use crate::manifest::revision;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &[
    "done",
    "conflict",
    "refused",
    "forgotten",
    "too many steps: invalid",
    "steps in a step: invalid",
];

/// Steps of one command.
pub const APPLY_STEPS_MAX: usize = 256;

/// Takes each step whose object still has the revision that the plan was made for. A step that is
/// refused, or whose object has changed, leaves the others as they are.
///
/// ```
/// # use danube_core::{WallMs, catalog::*, change::*, NamespaceName};
/// let agents = NamespaceName::parse("agents")?;
/// let step = ApplyStep {
///     object: ObjectKey::Namespace(agents.clone()),
///     expects: None, // it does not exist
///     changes: vec![CreateNamespace { name: agents }.into()],
///     record: Some(Fields::new()),
/// };
/// let apply = ApplySteps { owner: "apply".into(), by: "docs".into(), steps: vec![step] };
/// let outcome = Catalog::default().apply(&Command::new(apply.into(), WallMs(5)))?;
/// let done = StepResult::Done(vec![Outcome::NamespaceCreated]);
/// assert_eq!(outcome, Outcome::StepsApplied { results: vec![done] });
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplySteps {
    /// Whose manifest it is.
    pub owner: String,
    /// Who applies it, as far as the broker knows.
    pub by: String,
    /// At most [`APPLY_STEPS_MAX`].
    pub steps: Vec<ApplyStep>,
}

/// What is to be done to one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyStep {
    /// The object.
    pub object: ObjectKey,
    /// The revision that it had when the plan was made; `None` when it did not exist.
    pub expects: Option<u64>,
    /// What is to change.
    pub changes: Vec<Change>,
    /// What the manifest declares of it; `None` when it no longer does.
    pub record: Option<Fields>,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// It was taken; what each of its changes did.
    Done(Vec<Outcome>),
    /// The object is not as it was planned for; nothing was changed.
    Conflict,
    /// One of its changes was refused; nothing was changed.
    Refused(Fault),
}

impl ApplySteps {
    pub(super) fn level(&self) -> u32 {
        let changes = self.steps.iter().flat_map(|step| &step.changes);
        changes.map(Change::level).max().unwrap_or(0).max(4)
    }

    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        if self.steps.len() > APPLY_STEPS_MAX {
            return Err(Fault::invalid(format!(
                "{} steps in one command; at most {APPLY_STEPS_MAX} are allowed",
                self.steps.len()
            )));
        }
        let nested = self.steps.iter().flat_map(|step| &step.changes);
        if nested.into_iter().any(|change| matches!(change, Change::ApplySteps(_))) {
            return Err(Fault::invalid("a step of a plan cannot have steps of its own"));
        }
        let results = self.steps.iter().map(|step| self.take(catalog, stamp, step)).collect();
        Ok(Outcome::StepsApplied { results })
    }

    fn take(&self, catalog: &mut Catalog, stamp: Stamp, step: &ApplyStep) -> StepResult {
        if revision(catalog, &step.object) != step.expects {
            return StepResult::Conflict;
        }
        let mut next = catalog.clone();
        match self.make(&mut next, stamp, step) {
            Ok(outcomes) => {
                *catalog = next;
                StepResult::Done(outcomes)
            }
            Err(fault) => StepResult::Refused(fault),
        }
    }

    fn make(
        &self,
        catalog: &mut Catalog,
        stamp: Stamp,
        step: &ApplyStep,
    ) -> Result<Vec<Outcome>, Fault> {
        let changes = step.changes.iter();
        let outcomes =
            changes.map(|change| change.apply(catalog, stamp)).collect::<Result<_, _>>()?;
        match &step.record {
            Some(fields) => {
                let record =
                    AppliedRecord { fields: fields.clone(), at: stamp.at, by: self.by.clone() };
                catalog.set_applied(&self.owner, &step.object, record)?;
            }
            None => catalog.remove_applied(&self.owner, &step.object),
        }
        Ok(outcomes)
    }
}
