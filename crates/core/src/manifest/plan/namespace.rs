//! What makes a namespace what a manifest declares of it, and limits wherever they are declared.

use super::planner::{Difference, Work};
use super::topic::as_u32;
use crate::change::{CreateNamespace, SetNamespacePolicies};
use crate::fault::Fault;
use crate::manifest::live;
use crate::name::NamespaceName;
use crate::settings::{Limit, Limits};

/// The limits among the changes: those that are set, and those that no longer are.
pub(super) fn limits(difference: &Difference<'_>) -> (Limits, Vec<Limit>) {
    let mut set = Limits::default();
    let mut clear = Vec::new();
    for change in &difference.changes {
        let name = change.field.strip_prefix(&live::policy(""));
        let Some(limit) = name.and_then(|name| Limit::parse(name).ok()) else { continue };
        match change.new.as_ref().and_then(as_u32) {
            Some(value) => set.set(limit, Some(value)),
            None => clear.push(limit),
        }
    }
    (set, clear)
}

pub(super) fn work(name: &NamespaceName, difference: &Difference<'_>) -> Result<Work, Fault> {
    let mut work = Work::default();
    if difference.live.is_none() {
        work.changes.push(CreateNamespace { name: name.clone() }.into());
    }
    let (set, clear) = limits(difference);
    if !set.is_empty() || !clear.is_empty() {
        work.changes.push(SetNamespacePolicies { namespace: name.clone(), set, clear }.into());
    }
    Ok(work)
}
