//! One object after another, each planned on a copy of the catalog that has had all earlier steps.
//!
//! Law: a step is in the plan only after the copy has taken it.

use super::{
    Action, AskSchema, FieldChange, Item, Options, SchemaFacts, namespace, schema, subscription,
    topic,
};
use crate::catalog::{Catalog, Fields, ObjectKey};
use crate::change::{
    ApplyStep, Change, DeleteNamespace, DeleteSchema, DeleteSubscription, DeleteTopic, Stamp,
};
use crate::fault::Fault;
use crate::ids::WallMs;
use crate::manifest::live::{fields, policy_fields, revision};
use crate::manifest::{Declared, Manifest};
use crate::name::TopicName;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) struct Planner<'a> {
    /// The catalog after all earlier steps.
    scratch: Catalog,
    owner: &'a str,
    options: &'a Options,
    busy: &'a BTreeMap<ObjectKey, String>,
}

/// What is to be done to an object that can become what is declared.
#[derive(Default)]
pub(super) struct Work {
    pub(super) changes: Vec<Change>,
    pub(super) warnings: Vec<String>,
}

/// What differs between an object and what is declared of it.
pub(super) struct Difference<'a> {
    pub(super) declared: &'a Declared,
    /// What it is; `None` when it does not exist.
    pub(super) live: Option<Fields>,
    /// What is wanted, schemas with their fingerprint.
    pub(super) wanted: Fields,
    pub(super) changes: Vec<FieldChange>,
}

impl Difference<'_> {
    pub(super) fn has(&self, prefix: &str) -> bool {
        self.changes.iter().any(|change| change.field.starts_with(prefix))
    }

    /// What a field becomes; `None` when it is not set any more.
    pub(super) fn becomes(&self, field: &str) -> Option<&Value> {
        self.changes.iter().find(|change| change.field == field)?.new.as_ref()
    }
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        catalog: &Catalog,
        owner: &'a str,
        options: &'a Options,
        busy: &'a BTreeMap<ObjectKey, String>,
    ) -> Planner<'a> {
        Planner { scratch: catalog.clone(), owner, options, busy }
    }

    pub(super) fn declared(&mut self, declared: &Declared, ask: &mut AskSchema<'_>) -> Item {
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
        let mut action = match (&difference.live, difference.changes.is_empty()) {
            (None, _) => Action::Create,
            (Some(_), true) => Action::Unchanged,
            (Some(_), false) => Action::Update,
        };
        let work = match (self.changes(&difference, facts.as_ref()), key) {
            (Err(_), ObjectKey::Topic(name))
                if action == Action::Update && self.options.replace.contains(name) =>
            {
                action = Action::Replace;
                self.replacement(name, &difference)?
            }
            (work, _) => work?,
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

    /// What makes an object what is declared of it; a refusal when it cannot become that.
    fn changes(
        &self,
        difference: &Difference<'_>,
        facts: Option<&SchemaFacts>,
    ) -> Result<Work, Fault> {
        let key = &difference.declared.key;
        match key {
            ObjectKey::Namespace(name) => namespace::work(name, difference),
            ObjectKey::Schema(subject) => {
                schema::work(subject, difference, facts, &self.options.by)
            }
            ObjectKey::Topic(name) => topic::work(&self.scratch, name, difference, self.options),
            ObjectKey::Subscription(name, subscription) => {
                let busy = self.busy.get(key).map(String::as_str);
                subscription::work(&self.scratch, name, subscription, difference, busy)
            }
        }
    }

    /// Another topic of the same name, in the place of one that cannot become what is declared.
    fn replacement(&self, name: &TopicName, difference: &Difference<'_>) -> Result<Work, Fault> {
        let declared = difference.declared;
        if let (Some(why), false) = (self.busy.get(&declared.key), self.options.force) {
            return Err(Fault::precondition(format!(
                "{why}, which a replacement loses; give --force to replace it all the same"
            )));
        }
        let fresh = differences(declared, None, difference.wanted.clone(), None);
        let mut work = topic::work(&self.scratch, name, &fresh, self.options)?;
        work.changes.insert(0, DeleteTopic { name: name.clone() }.into());
        work.warnings
            .push("what is in the old topic, and its subscriptions, go with it".to_owned());
        Ok(work)
    }

    /// What the subscriptions of a topic inherited from its old intent, `before`, they get from the
    /// new one; what somebody set or the manifest declares stays.
    pub(super) fn inherit(
        &mut self,
        before: &Catalog,
        manifest: &Manifest,
        name: &TopicName,
    ) -> Vec<Item> {
        let mut items = Vec::new();
        for (subscription, policy) in subscription::inherit(before, &self.scratch, name) {
            let key = ObjectKey::Subscription(name.clone(), subscription.clone());
            let declared = manifest.objects.iter().find(|declared| declared.key == key);
            let is_declared =
                |field: &str| declared.is_some_and(|declared| declared.fields.contains_key(field));
            let live = fields(&self.scratch, &key).unwrap_or_default();
            let wanted =
                policy_fields(&policy).into_iter().filter(|(field, _)| !is_declared(field));
            let changes: Vec<FieldChange> = wanted
                .filter(|(field, new)| live.get(field) != Some(new))
                .map(|(field, new)| FieldChange {
                    old: live.get(&field).cloned(),
                    new: Some(new),
                    field,
                })
                .collect();
            if changes.is_empty() {
                continue;
            }
            let set = subscription::with(&self.scratch, name, &subscription, &changes);
            // What an earlier step of this plan writes down must not be written over.
            let applied = || self.scratch.applied_by(self.owner)?.get(&key);
            let record = declared.map(|declared| &declared.fields);
            let record = record.or_else(|| Some(&applied()?.fields)).cloned();
            let step = ApplyStep {
                object: key.clone(),
                expects: revision(&self.scratch, &key),
                record,
                changes: set.into_iter().collect(),
            };
            let refused = self.rehearse(&step).err();
            items.push(Item {
                action: if refused.is_some() { Action::Conflict } else { Action::Update },
                object: key,
                at: declared.map(|declared| declared.at.clone()),
                fields: changes,
                step: refused.is_none().then_some(step),
                why: refused.map(|fault| fault.message).unwrap_or_default(),
                warnings: Vec::new(),
                start: None,
            });
        }
        items
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

    pub(super) fn prune(&mut self, key: ObjectKey) -> Item {
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
