//! What has to be done so that a catalog looks as a manifest declares.
//!
//! Each object is planned on a copy of the catalog that has had all earlier steps, so that the plan
//! is what will happen. Law: what cannot be changed without losing something is a conflict, never a
//! deletion and a new creation, unless that was asked for by name.

mod namespace;
mod planner;
mod schema;
mod subscription;
mod topic;

use self::planner::Planner;
use super::live::fields;
use super::{Manifest, Mark, SchemaSource};
use crate::catalog::{Catalog, OBJECT_KINDS, ObjectKey};
use crate::change::ApplyStep;
use crate::fault::Fault;
use crate::name::TopicName;
use crate::position::Position;
use crate::schema::{Compatibility, SubjectName};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be done about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It does not exist and is made.
    Create,
    /// Some fields become others.
    Update,
    /// It is as declared.
    Unchanged,
    /// It cannot become what is declared.
    Conflict,
    /// It cannot become what is declared and is made anew, losing what is in it.
    Replace,
    /// It is no longer declared and goes.
    Prune,
    /// It is no longer declared, and something speaks against removing it.
    Blocked,
}

impl Action {
    /// The word that people and programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Update => "update",
            Action::Unchanged => "unchanged",
            Action::Conflict => "conflict",
            Action::Replace => "replace",
            Action::Prune => "prune",
            Action::Blocked => "blocked",
        }
    }
}

/// One field that becomes another value.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// Its name, for example `retention.time_ms`.
    pub field: String,
    /// What it was; `None` when it was not set.
    pub old: Option<Value>,
    /// What it becomes; `None` when it is left to the layers below.
    pub new: Option<Value>,
}

/// One line of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What is to be done.
    pub action: Action,
    /// To which object.
    pub object: ObjectKey,
    /// Where it is declared; `None` for what no longer is.
    pub at: Option<Mark>,
    /// The fields that change.
    pub fields: Vec<FieldChange>,
    /// Why it is a conflict or blocked; else empty.
    pub why: String,
    /// What should be known besides.
    pub warnings: Vec<String>,
    /// What is proposed to the catalog; `None` when there is nothing to do.
    pub step: Option<ApplyStep>,
    /// Where a new subscription starts; the proposer knows which offsets that means.
    pub start: Option<Position>,
}

impl Item {
    /// The topic whose intent becomes another.
    fn topic_with_new_intent(&self) -> Option<&TopicName> {
        let ObjectKey::Topic(name) = &self.object else { return None };
        let is_new = |change: &FieldChange| change.field == "intent" && change.new.is_some();
        (self.action == Action::Update && self.fields.iter().any(is_new)).then_some(name)
    }
}

/// How to plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Remove what the same owner declared before and declares no longer.
    pub prune: bool,
    /// Kinds of objects that may be removed, as [`ObjectKey::kind`] has them; all when empty.
    pub prune_kinds: BTreeSet<String>,
    /// Topics that may be made anew where they cannot become what is declared.
    pub replace: BTreeSet<TopicName>,
    /// Where an intent changes, give subscriptions what they inherit from the new one.
    pub update_subscriptions: bool,
    /// Remove and replace even what has data or clients.
    pub force: bool,
    /// Who applies, as far as the broker knows.
    pub by: String,
}

impl Options {
    /// Checks that they fit `manifest`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FaultKind::Invalid), naming what does not.
    pub fn check(&self, manifest: &Manifest) -> Result<(), Fault> {
        if let Some(kind) =
            self.prune_kinds.iter().find(|kind| !OBJECT_KINDS.contains(&kind.as_str()))
        {
            return Err(Fault::invalid(format!(
                "objects of kind `{}` cannot be pruned; known are {}",
                kind.escape_debug(),
                OBJECT_KINDS.join(", ")
            )));
        }
        let is_declared = |name: &&TopicName| {
            let key = ObjectKey::Topic((*name).clone());
            manifest.objects.iter().any(|declared| declared.key == key)
        };
        match self.replace.iter().find(|name| !is_declared(name)) {
            Some(name) => Err(Fault::invalid(format!(
                "topic `{name}` is to be replaced and is not in the manifest; declare it there"
            ))),
            None => Ok(()),
        }
    }

    /// Whether objects like `key` may be removed.
    fn prunes(&self, key: &ObjectKey) -> bool {
        self.prune && (self.prune_kinds.is_empty() || self.prune_kinds.contains(key.kind()))
    }
}

/// Everything to be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Whose manifest it is.
    pub owner: String,
    /// The lines.
    pub items: Vec<Item>,
    /// What the owner declared before and declares no longer, where pruning was not asked for.
    pub undeclared: Vec<ObjectKey>,
}

impl Plan {
    /// Whether something in it cannot be done, so that nothing is.
    pub fn is_refused(&self) -> bool {
        self.items.iter().any(|item| matches!(item.action, Action::Conflict | Action::Blocked))
    }

    /// Whether `object` belongs to a topic that is made anew.
    pub fn replaces(&self, object: &ObjectKey) -> bool {
        let ObjectKey::Subscription(name, _) = object else { return false };
        let is_new = |item: &Item| {
            item.action == Action::Replace && item.object == ObjectKey::Topic(name.clone())
        };
        self.items.iter().any(is_new)
    }

    /// Whether it changes anything that a person would notice.
    pub fn has_changes(&self) -> bool {
        let changes = [Action::Create, Action::Update, Action::Replace, Action::Prune];
        self.items.iter().any(|item| changes.contains(&item.action))
    }
}

/// What only somebody with parsers knows of a declared schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFacts {
    /// Of the canonical form.
    pub fingerprint: String,
    /// What its references stand for.
    pub references: BTreeMap<SubjectName, u32>,
    /// The revision of the subject that compatibility was checked against.
    pub expects: u64,
    /// Some version, not always the latest, means the same.
    pub is_known: bool,
}

/// Finds out about a declared schema, or says why it cannot be registered.
pub type AskSchema<'a> = dyn FnMut(
        &Catalog,
        &SubjectName,
        &SchemaSource,
        Option<Compatibility>,
    ) -> Result<SchemaFacts, Fault>
    + 'a;

/// Objects of which the plan must know whether they have data or clients: those that may be pruned,
/// and subscriptions that are to get another type.
pub fn candidates(catalog: &Catalog, manifest: &Manifest, options: &Options) -> Vec<ObjectKey> {
    let retyped = manifest.objects.iter().filter(|declared| {
        let is_subscription = matches!(declared.key, ObjectKey::Subscription(..));
        let live = is_subscription.then(|| fields(catalog, &declared.key)).flatten();
        live.is_some_and(|live| live.get("type") != declared.fields.get("type"))
    });
    let mut found: Vec<ObjectKey> = retyped.map(|declared| declared.key.clone()).collect();
    let replaced = options.replace.iter().map(|name| ObjectKey::Topic(name.clone()));
    found.extend(replaced.filter(|key| fields(catalog, key).is_some()));
    found.extend(undeclared(catalog, manifest).into_iter().filter(|key| options.prunes(key)));
    found
}

/// What the owner declared before and declares no longer, in the order of removal.
fn undeclared(catalog: &Catalog, manifest: &Manifest) -> Vec<ObjectKey> {
    let declared: BTreeSet<&ObjectKey> = manifest.objects.iter().map(|known| &known.key).collect();
    let Some(applied) = catalog.applied_by(&manifest.owner) else { return Vec::new() };
    let mut gone: Vec<ObjectKey> =
        applied.keys().filter(|key| !declared.contains(key)).cloned().collect();
    gone.sort_by(|left, right| right.cmp(left));
    gone
}

/// Plans. `busy` has those of the [`candidates`] that have data or clients, and says which.
pub fn plan(
    catalog: &Catalog,
    manifest: &Manifest,
    options: &Options,
    busy: &BTreeMap<ObjectKey, String>,
    ask: &mut AskSchema<'_>,
) -> Plan {
    let mut planner = Planner::new(catalog, &manifest.owner, options, busy);
    let mut items: Vec<Item> =
        manifest.objects.iter().map(|declared| planner.declared(declared, ask)).collect();
    if options.update_subscriptions {
        let inherited: Vec<Item> = items
            .iter()
            .filter_map(Item::topic_with_new_intent)
            .flat_map(|name| planner.inherit(catalog, manifest, name))
            .collect();
        items.extend(inherited);
    }
    let gone = undeclared(catalog, manifest).into_iter();
    let (pruned, undeclared): (Vec<_>, Vec<_>) = gone.partition(|key| options.prunes(key));
    items.extend(pruned.into_iter().map(|key| planner.prune(key)));
    Plan { owner: manifest.owner.clone(), items, undeclared }
}
