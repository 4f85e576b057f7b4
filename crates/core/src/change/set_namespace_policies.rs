//! Sets limits of a namespace's topics.

use super::{Outcome, Stamp};
use crate::catalog::Catalog;
use crate::fault::Fault;
use crate::name::NamespaceName;
use crate::settings::{Limit, Limits};
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] =
    &["set", "cleared", "unknown namespace: not_found", "limits: invalid"];

/// Sets some limits and leaves others to the broker again; what is in neither list stays.
///
/// ```
/// # use danube_core::{NamespaceName, WallMs, catalog::Catalog, change::*, settings::*};
/// let set = SetNamespacePolicies {
///     namespace: NamespaceName::parse("default")?,
///     set: [(Limit::MaxProducersPerTopic, 3)].into_iter().collect(),
///     clear: vec![],
/// };
/// let mut catalog = Catalog::default();
/// catalog.apply(&Command::new(set.into(), WallMs(5)))?;
/// let namespace = catalog.namespace(&NamespaceName::parse("default")?).expect("it is there");
/// assert_eq!(namespace.policies.get(Limit::MaxProducersPerTopic), Some(3));
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetNamespacePolicies {
    /// The namespace.
    pub namespace: NamespaceName,
    /// What it sets from now on.
    pub set: Limits,
    /// What it leaves to the broker from now on.
    pub clear: Vec<Limit>,
}

impl SetNamespacePolicies {
    pub(super) fn apply(&self, catalog: &mut Catalog, _: Stamp) -> Result<Outcome, Fault> {
        self.set.check()?;
        let name = &self.namespace;
        let namespace = catalog
            .namespace_mut(name)
            .ok_or_else(|| Fault::not_found(format!("namespace `{name}` does not exist")))?;
        for (limit, value) in self.set.iter() {
            namespace.policies.set(limit, Some(value));
        }
        for limit in &self.clear {
            namespace.policies.set(*limit, None);
        }
        Ok(Outcome::NamespacePoliciesSet)
    }
}
