//! What has to be done so that a catalog looks as a manifest declares.
//!
//! Each object is planned on a copy of the catalog that has had all earlier steps, so that the plan
//! is what will happen. Law: what cannot be changed without losing something is a conflict, never a
//! deletion and a new creation.

mod schema;
mod subscription;
mod topic;

use super::live::{self, fields, revision};
use super::{Declared, Manifest, Mark, SchemaSource};
use crate::catalog::{Catalog, Fields, ObjectKey};
use crate::change::{
    ApplyStep, Change, CreateNamespace, DeleteNamespace, DeleteSchema, DeleteSubscription,
    DeleteTopic, SetNamespacePolicies, Stamp,
};
use crate::fault::Fault;
use crate::ids::WallMs;
use crate::position::Position;
use crate::schema::{Compatibility, SubjectName};
use crate::settings::{Limit, Limits};
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

/// How to plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Remove what the same owner declared before and declares no longer.
    pub prune: bool,
    /// Remove even what has data or clients.
    pub force: bool,
    /// Who applies, as far as the broker knows.
    pub by: String,
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

    /// Whether it changes anything that a person would notice.
    pub fn has_changes(&self) -> bool {
        let changes = [Action::Create, Action::Update, Action::Prune];
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
    if options.prune {
        found.extend(undeclared(catalog, manifest));
    }
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
    let mut planner = Planner { scratch: catalog.clone(), owner: &manifest.owner, options, busy };
    let mut items: Vec<Item> =
        manifest.objects.iter().map(|declared| planner.declared(declared, ask)).collect();
    let mut gone = undeclared(catalog, manifest);
    if options.prune {
        items.extend(gone.drain(..).map(|key| planner.prune(key)));
    }
    Plan { owner: manifest.owner.clone(), items, undeclared: gone }
}

struct Planner<'a> {
    /// The catalog after all earlier steps.
    scratch: Catalog,
    owner: &'a str,
    options: &'a Options,
    busy: &'a BTreeMap<ObjectKey, String>,
}

/// What is to be done to an object that can become what is declared.
#[derive(Default)]
struct Work {
    changes: Vec<Change>,
    warnings: Vec<String>,
}

/// What differs between an object and what is declared of it.
struct Difference<'a> {
    declared: &'a Declared,
    /// What it is; `None` when it does not exist.
    live: Option<Fields>,
    /// What is wanted, schemas with their fingerprint.
    wanted: Fields,
    changes: Vec<FieldChange>,
}

impl Difference<'_> {
    fn has(&self, prefix: &str) -> bool {
        self.changes.iter().any(|change| change.field.starts_with(prefix))
    }

    /// What a field becomes; `None` when it is not set any more.
    fn becomes(&self, field: &str) -> Option<&Value> {
        self.changes.iter().find(|change| change.field == field)?.new.as_ref()
    }
}

impl Planner<'_> {
    fn declared(&mut self, declared: &Declared, ask: &mut AskSchema<'_>) -> Item {
        match self.work(declared, ask) {
            Ok(item) => item,
            Err(fault) => Item {
                action: Action::Conflict,
                object: declared.key.clone(),
                at: Some(declared.at.clone()),
                fields: Vec::new(),
                why: fault.message,
                warnings: Vec::new(),
                step: None,
                start: None,
            },
        }
    }

    fn work(&mut self, declared: &Declared, ask: &mut AskSchema<'_>) -> Result<Item, Fault> {
        let key = &declared.key;
        if let Some(other) = self.scratch.owner_of(key)
            && other != self.owner
        {
            return Err(Fault::precondition(format!(
                "it is declared by the manifest of owner `{other}`; change it there, or remove it \
                 there and prune"
            )));
        }
        let expects = revision(&self.scratch, key);
        let mut wanted = declared.fields.clone();
        let facts = match (key, &declared.schema) {
            (ObjectKey::Schema(subject), Some(source)) => {
                let mode = schema::declared_mode(declared);
                let facts = ask(&self.scratch, subject, source, mode)?;
                let live = fields(&self.scratch, key).filter(|_| facts.is_known);
                let latest = live.and_then(|mut live| live.remove("fingerprint"));
                let fingerprint = latest.unwrap_or_else(|| facts.fingerprint.clone().into());
                wanted.insert("fingerprint".to_owned(), fingerprint);
                Some(facts)
            }
            _ => None,
        };
        let record = self.scratch.applied_by(self.owner).and_then(|applied| applied.get(key));
        let difference = differences(
            declared,
            fields(&self.scratch, key),
            wanted,
            record.map(|record| &record.fields),
        );
        let is_recorded = record.is_some_and(|record| record.fields == difference.wanted);
        let work = match key {
            ObjectKey::Namespace(name) => namespace(name, &difference),
            ObjectKey::Schema(subject) => {
                schema::work(subject, &difference, facts.as_ref(), &self.options.by)
            }
            ObjectKey::Topic(name) => topic::work(name, &difference, &self.options.by),
            ObjectKey::Subscription(name, subscription) => {
                let busy = self.busy.get(key).map(String::as_str);
                subscription::work(&self.scratch, name, subscription, &difference, busy)
            }
        }?;
        let action = match (&difference.live, difference.changes.is_empty()) {
            (None, _) => Action::Create,
            (Some(_), true) => Action::Unchanged,
            (Some(_), false) => Action::Update,
        };
        let Difference { wanted, changes, live, .. } = difference;
        let has_step = action != Action::Unchanged || !is_recorded;
        let step = has_step.then(|| ApplyStep {
            object: key.clone(),
            expects,
            changes: work.changes,
            record: Some(wanted),
        });
        if let Some(step) = &step {
            self.rehearse(step)?;
        }
        Ok(Item {
            action,
            object: key.clone(),
            at: Some(declared.at.clone()),
            fields: changes,
            why: String::new(),
            warnings: work.warnings,
            start: declared.start.filter(|_| live.is_none()),
            step,
        })
    }

    /// Takes the changes of a step on the copy, as the catalog will.
    fn rehearse(&mut self, step: &ApplyStep) -> Result<(), Fault> {
        let mut next = self.scratch.clone();
        for change in &step.changes {
            change.apply(&mut next, Stamp { at: WallMs(0) })?;
        }
        self.scratch = next;
        Ok(())
    }

    fn prune(&mut self, key: ObjectKey) -> Item {
        let expects = revision(&self.scratch, &key);
        let busy = self.busy.get(&key).filter(|_| !self.options.force);
        let changes = match (&expects, busy) {
            (None, _) => Ok(Vec::new()),
            (Some(_), Some(why)) => Err(format!("{why}; give --force to remove it all the same")),
            (Some(_), None) => Ok(vec![removal(&key, &self.options.by)]),
        };
        let step = changes.map(|changes| ApplyStep {
            object: key.clone(),
            expects,
            changes,
            record: None,
        });
        let step = step.and_then(|step| match self.rehearse(&step) {
            Ok(()) => Ok(step),
            Err(fault) => Err(fault.message),
        });
        let (action, why, step) = match step {
            Ok(step) => (Action::Prune, String::new(), Some(step)),
            Err(why) => (Action::Blocked, why, None),
        };
        let warnings = match &step {
            Some(step) if step.changes.is_empty() => vec!["it is gone already".to_owned()],
            _ => Vec::new(),
        };
        Item { action, object: key, at: None, fields: Vec::new(), why, warnings, step, start: None }
    }
}

/// What differs, counting what was declared before and is no longer.
fn differences<'a>(
    declared: &'a Declared,
    live: Option<Fields>,
    wanted: Fields,
    before: Option<&Fields>,
) -> Difference<'a> {
    let empty = Fields::new();
    let now = live.as_ref().unwrap_or(&empty);
    let mut changes = Vec::new();
    for (field, new) in &wanted {
        let old = now.get(field);
        // A plain topic's 0 partitions are not worth a word.
        let is_default = live.is_none() && field == "partitions" && new == 0;
        if old != Some(new) && !is_default {
            let field = field.clone();
            changes.push(FieldChange { field, old: old.cloned(), new: Some(new.clone()) });
        }
    }
    for field in before.into_iter().flat_map(Fields::keys) {
        if let (false, Some(old)) = (wanted.contains_key(field), now.get(field)) {
            changes.push(FieldChange { field: field.clone(), old: Some(old.clone()), new: None });
        }
    }
    Difference { declared, live, wanted, changes }
}

/// The limits among the changes: those that are set, and those that no longer are.
fn limits(difference: &Difference<'_>) -> (Limits, Vec<Limit>) {
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

fn as_u32(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

fn namespace(
    name: &crate::name::NamespaceName,
    difference: &Difference<'_>,
) -> Result<Work, Fault> {
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

fn removal(key: &ObjectKey, by: &str) -> Change {
    match key {
        ObjectKey::Namespace(name) => DeleteNamespace { name: name.clone() }.into(),
        ObjectKey::Schema(subject) => {
            DeleteSchema { subject: subject.clone(), version: None, by: by.to_owned() }.into()
        }
        ObjectKey::Topic(name) => DeleteTopic { name: name.clone() }.into(),
        ObjectKey::Subscription(topic, name) => {
            DeleteSubscription { topic: topic.clone(), subscription: name.clone() }.into()
        }
    }
}
