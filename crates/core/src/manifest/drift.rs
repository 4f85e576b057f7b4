//! What has moved away from what manifests declared, and who moved it.

use super::live::{dead_letter_topics, fields};
use super::plan::FieldChange;
use crate::catalog::{AppliedRecord, Catalog, ObjectKey, TrailLine};
use crate::name::{NamespaceName, TopicName};
use std::collections::BTreeSet;

/// How an object drifted.
#[derive(Debug, Clone, PartialEq)]
pub enum Drifted {
    /// Fields are not what was declared: `old` is declared, `new` is there.
    Changed(Vec<FieldChange>),
    /// It is gone.
    Missing,
    /// Nobody declared it, and it is in a namespace of which somebody declared something.
    Unmanaged,
}

/// One object that drifted.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Whose manifest declares it; empty when nobody's does.
    pub owner: String,
    /// The object.
    pub object: ObjectKey,
    /// How.
    pub how: Drifted,
    /// The last change by a person since it was declared, as far as the catalog remembers.
    pub last: Option<TrailLine>,
}

/// Compares what there is with what `owner`, or everybody, declared last.
pub fn drift(catalog: &Catalog, owner: Option<&str>) -> Vec<Drift> {
    let mut found = Vec::new();
    let mut namespaces = BTreeSet::new();
    let owners = catalog.owners().filter(|(known, _)| owner.is_none_or(|owner| owner == *known));
    for (owner, objects) in owners {
        for (key, record) in objects.iter() {
            namespaces.extend(namespace_of(key));
            if let Some(how) = compare(catalog, key, record) {
                let (owner, object) = (owner.to_owned(), key.clone());
                let last = last_change(catalog, key, Some(record));
                found.push(Drift { owner, object, how, last });
            }
        }
    }
    found.extend(unmanaged(catalog, &namespaces));
    found
}

fn compare(catalog: &Catalog, key: &ObjectKey, record: &AppliedRecord) -> Option<Drifted> {
    let Some(live) = fields(catalog, key) else { return Some(Drifted::Missing) };
    let differing = record.fields.iter().filter(|(field, value)| live.get(*field) != Some(*value));
    let changes: Vec<FieldChange> = differing
        .map(|(field, value)| FieldChange {
            field: field.clone(),
            old: Some(value.clone()),
            new: live.get(field).cloned(),
        })
        .collect();
    (!changes.is_empty()).then_some(Drifted::Changed(changes))
}

fn namespace_of(key: &ObjectKey) -> Option<NamespaceName> {
    match key {
        ObjectKey::Namespace(name) => Some(name.clone()),
        ObjectKey::Topic(topic) | ObjectKey::Subscription(topic, _) => Some(topic.namespace()),
        ObjectKey::Schema(_) => None,
    }
}

/// Topics that nobody declared; dead-letter topics belong to the topic that they are of.
fn unmanaged(catalog: &Catalog, namespaces: &BTreeSet<NamespaceName>) -> Vec<Drift> {
    let topics = namespaces.iter().flat_map(|namespace| catalog.topics_in(namespace));
    let made_along = dead_letter_topics(catalog);
    let is_own = |base: &TopicName| !base.is_dead_letter() && !made_along.contains(base);
    let bases: BTreeSet<_> = topics.map(|(name, _)| name.base()).filter(is_own).collect();
    let keys = bases.into_iter().map(ObjectKey::Topic);
    keys.filter(|key| catalog.owner_of(key).is_none())
        .map(|object| Drift {
            owner: String::new(),
            last: last_change(catalog, &object, None),
            object,
            how: Drifted::Unmanaged,
        })
        .collect()
}

fn last_change(
    catalog: &Catalog,
    key: &ObjectKey,
    since: Option<&AppliedRecord>,
) -> Option<TrailLine> {
    let mut lines = catalog.trail().rev();
    lines
        .find(|line| line.object == *key)
        .filter(|line| since.is_none_or(|record| line.at >= record.at))
        .cloned()
}
