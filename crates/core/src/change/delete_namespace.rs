//! Removes an empty namespace.

use super::{Outcome, Stamp};
use crate::catalog::{Catalog, DEFAULT_NAMESPACE, SYSTEM_NAMESPACE};
use crate::fault::Fault;
use crate::name::NamespaceName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] =
    &["deleted", "built in: precondition", "unknown: not_found", "has topics: precondition"];

/// Topics that the refusal names.
const TOPICS_NAMED_MAX: usize = 5;

/// Removes a namespace that has no topics.
///
/// ```
/// # use danube_core::{FaultKind, NamespaceName, WallMs, catalog::Catalog, change::*};
/// let name = NamespaceName::parse("default")?;
/// let command = Command::new(DeleteNamespace { name }.into(), WallMs(5));
/// let fault = Catalog::default().apply(&command).expect_err("it is built in");
/// assert_eq!(fault.kind, FaultKind::Precondition);
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteNamespace {
    /// Its name.
    pub name: NamespaceName,
}

impl DeleteNamespace {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        let name = &self.name;
        if matches!(name.as_str(), DEFAULT_NAMESPACE | SYSTEM_NAMESPACE) {
            return Err(Fault::precondition(format!(
                "namespace `{name}` is built in and cannot be deleted"
            )));
        }
        let count = catalog.topics_in(name).count();
        if count > 0 {
            let some: Vec<&str> = catalog
                .topics_in(name)
                .map(|(topic, _)| topic.as_str())
                .take(TOPICS_NAMED_MAX)
                .collect();
            let more = if count > some.len() { ", …" } else { "" };
            return Err(Fault::precondition(format!(
                "namespace `{name}` has {count} topics ({}{more}); delete them first",
                some.join(", ")
            )));
        }
        if !catalog.remove_namespace(name) {
            return Err(Fault::not_found(format!("namespace `{name}` does not exist")));
        }
        Ok(Outcome::NamespaceDeleted)
    }
}
