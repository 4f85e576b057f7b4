//! The schema registry and what topics check messages by.
//!
//! The catalog has the subjects and their versions, the crate `schema` knows what they say; here
//! the two meet. A definition is parsed and compared on a thread of its own kind, against the
//! catalog of one moment; what comes of it is proposed with that moment's revision, so that the
//! catalog takes it only while nothing has changed. One file per call; [`gate`] is what publishes
//! pass through.
//!
//! Law: the dry check and registering ask the same function, and a topic's gate is changed before
//! the administrator hears that it was.

mod caller;
mod check;
mod compatibility;
mod compiled;
mod decode;
mod delete;
mod gate;
mod get;
mod history;
mod native;
mod references;
mod register;
mod service;
#[cfg(test)]
mod tests;
mod topic_config;
mod verdict;

pub(crate) use caller::Caller;
pub(crate) use gate::{Passage, Tagged, TopicGate};
pub(crate) use native::NativeSchemas;
pub(crate) use service::Registry;
pub(crate) use topic_config::{Wanted, adopt, choose, describe};

/// What operators ask beyond the compatible contract.
pub(crate) mod control {
    pub(crate) use super::check::whole as check;
    pub(crate) use super::compatibility::{describe, set_with_levels};
    pub(crate) use super::decode::decode;
    pub(crate) use super::delete::subject as delete_subject;
    pub(crate) use super::history::list as history;
}

use crate::context::Context;
use compiled::Compiled;
use danube_core::catalog::{Catalog, ObjectKey};
use danube_core::manifest::{self, Manifest, Options, Plan, SchemaSource};
use danube_core::{Fault, SchemaId, SubjectName};
use gate::SubjectGate;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use tokio::sync::Semaphore;

/// Checks that run at a time: they are pure work, and the cores are for messages.
const CHECKS_MAX: usize = 2;
/// Checks that may wait for their turn.
const CHECKS_WAITING_MAX: usize = 256;

/// What a broker keeps for the registry besides the catalog: parsed schemas, and gates by subject.
pub(crate) struct Schemas {
    compiled: Arc<Compiled>,
    subjects: Mutex<HashMap<SchemaId, Weak<SubjectGate>>>,
    running: Semaphore,
    waiting: Semaphore,
    /// One at a time brings the gates up to the catalog, so that none falls back behind it.
    refreshing: Mutex<()>,
}

impl Default for Schemas {
    fn default() -> Schemas {
        Schemas {
            compiled: Arc::default(),
            subjects: Mutex::default(),
            running: Semaphore::new(CHECKS_MAX),
            waiting: Semaphore::new(CHECKS_WAITING_MAX),
            refreshing: Mutex::default(),
        }
    }
}

impl Schemas {
    /// Does pure work on a thread that may take its time.
    ///
    /// # Errors
    /// That of the work; `Exhausted` when too much waits.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Compiled) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let _place = self.waiting.try_acquire().map_err(|_| {
            Fault::exhausted(format!("{CHECKS_WAITING_MAX} schema checks wait for their turn"))
        })?;
        let _turn = self.running.acquire().await.expect("it is never closed");
        let compiled = Arc::clone(&self.compiled);
        let done = tokio::task::spawn_blocking(move || work(&compiled)).await;
        done.unwrap_or_else(|error| {
            Err(Fault::internal(format!("a schema check did not come to its end: {error}")))
        })
    }

    /// Plans a manifest, whose schemas only this module can judge.
    ///
    /// # Errors
    /// `Exhausted` when too much waits.
    pub(crate) async fn plan(
        &self,
        catalog: Arc<Catalog>,
        manifest: Manifest,
        options: Options,
        busy: BTreeMap<ObjectKey, String>,
    ) -> Result<Plan, Fault> {
        self.work(move |compiled| {
            let mut ask =
                |catalog: &Catalog, subject: &SubjectName, source: &SchemaSource, mode| {
                    register::facts(compiled, catalog, subject, source, mode)
                };
            Ok(manifest::plan(&catalog, &manifest, &options, &busy, &mut ask))
        })
        .await
    }

    /// What the gates of all topics of a subject share.
    fn subject_gate(&self, catalog: &Catalog, name: &str) -> Option<Arc<SubjectGate>> {
        let subject = catalog.subject(name)?;
        let name = SubjectName::parse(name).ok()?;
        let mut subjects = self.subjects.lock();
        let known = subjects.get(&subject.id).and_then(Weak::upgrade);
        if let Some(known) = &known
            && known.revision() == subject.revision
        {
            return Some(Arc::clone(known));
        }
        subjects.retain(|_, gate| gate.strong_count() > 0);
        let fresh = Arc::new(SubjectGate::new(name, subject, known.as_deref()));
        subjects.insert(subject.id, Arc::downgrade(&fresh));
        Some(fresh)
    }
}

/// Brings the gates of all loaded topics up to the catalog.
pub(crate) fn refresh(context: &Context) {
    let _alone = context.schemas.refreshing.lock();
    let view = context.meta.view();
    for handle in context.topics.loaded() {
        if let Some((_, topic)) = view.topic_by_id(handle.identity().id) {
            handle.gate().set(context, &view, topic);
        }
    }
}

/// Follows what others change, until the broker stops.
pub(crate) async fn follow(context: Arc<Context>) {
    let mut revisions = context.meta.watch();
    let mut seen = context.meta.view().schema_changes();
    while revisions.changed().await.is_ok() {
        let changes = context.meta.view().schema_changes();
        if changes != seen {
            seen = changes;
            refresh(&context);
        }
    }
}
