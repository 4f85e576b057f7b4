//! Makes a namespace.

use super::{Outcome, Stamp};
use crate::catalog::{Catalog, Namespace};
use crate::fault::Fault;
use crate::name::NamespaceName;
use serde::{Deserialize, Serialize};

/// Every way this change can end.
pub(super) const OUTCOMES: &[&str] = &["created", "exists: already_exists"];

/// Makes a namespace, with the default limits.
///
/// ```
/// # use danube_core::{NamespaceName, WallMs, catalog::Catalog, change::*};
/// let agents = NamespaceName::parse("agents")?;
/// let command = Command::new(CreateNamespace { name: agents.clone() }.into(), WallMs(5));
/// let mut catalog = Catalog::default();
/// assert_eq!(catalog.apply(&command)?, Outcome::NamespaceCreated);
/// assert_eq!(catalog.namespace(&agents).map(|made| made.created_at), Some(WallMs(5)));
/// # Ok::<(), danube_core::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateNamespace {
    /// Its name.
    pub name: NamespaceName,
}

impl CreateNamespace {
    pub(super) fn apply(&self, catalog: &mut Catalog, stamp: Stamp) -> Result<Outcome, Fault> {
        if catalog.namespace(&self.name).is_some() {
            return Err(Fault::already_exists(format!("namespace `{}` exists", self.name)));
        }
        catalog.insert_namespace(self.name.clone(), Namespace::new(stamp.at));
        Ok(Outcome::NamespaceCreated)
    }
}
