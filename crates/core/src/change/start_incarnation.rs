//! Numbers the start of a process.

use super::{Outcome, Stamp};
use crate::catalog::Catalog;
use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &["started"];

/// Gives a starting process a number that no other start of this data has had.
///
/// ```
/// # use danube_core::{Incarnation, WallMs, catalog::Catalog, change::*};
/// let mut catalog = Catalog::default();
/// let outcome = catalog.apply(&Command::new(StartIncarnation {}.into(), WallMs(5)))?;
/// assert_eq!(outcome, Outcome::IncarnationStarted { incarnation: Incarnation(1) });
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartIncarnation {}

impl StartIncarnation {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        Ok(Outcome::IncarnationStarted { incarnation: catalog.start_incarnation()? })
    }
}
