//! A namespace and the limits of its topics.
//!
//! Which limit holds for a topic is decided in [`crate::settings`], who enforces it is the broker.

use crate::ids::WallMs;
use crate::settings::{Limit, Limits};
use serde::{Deserialize, Serialize};

/// Where topics live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// When it was made; 0 for the namespaces that were always there.
    pub created_at: WallMs,
    /// The limits that it sets for its topics.
    pub policies: Limits,
}

impl Namespace {
    /// A namespace that sets no limits.
    pub fn new(created_at: WallMs) -> Namespace {
        Namespace { created_at, policies: Limits::default() }
    }
}

/// What every snapshot of a level below 4 has in place of limits: then nobody could set any.
pub(super) fn limits_before_level_4() -> Limits {
    let mut limits: Limits = crate::settings::LIMITS.map(|limit| (limit, 0)).into_iter().collect();
    limits.set(Limit::MaxMessageSize, Some(10 << 20));
    limits
}
