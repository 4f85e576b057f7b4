//! What the consensus thread shows to everybody else.
//!
//! Law: who is told of a revision finds it in the view.

use danube_core::Fault;
use danube_core::catalog::Catalog;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::watch;

/// The applied catalog, its revision, and the reason why applying stopped, if it did.
#[derive(Debug)]
pub(crate) struct Published {
    view: RwLock<Arc<Catalog>>,
    revision: watch::Sender<u64>,
    stopped: OnceLock<Fault>,
}

impl Published {
    pub(crate) fn new() -> Published {
        Published {
            view: RwLock::new(Arc::new(Catalog::default())),
            revision: watch::Sender::new(0),
            stopped: OnceLock::new(),
        }
    }

    pub(crate) fn view(&self) -> Arc<Catalog> {
        // Nothing can go wrong halfway while it is held, so a poisoned lock has a whole value.
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Shows `catalog`, which is that of log index `revision`.
    pub(crate) fn publish(&self, catalog: &Catalog, revision: u64) {
        let shown = Arc::new(catalog.clone());
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = shown;
        self.revision.send_replace(revision);
    }

    /// Keeps the first reason why applying stopped; what follows are its consequences.
    pub(crate) fn stop(&self, reason: Fault) {
        let _ = self.stopped.set(reason);
    }

    pub(crate) fn stopped(&self) -> Option<&Fault> {
        self.stopped.get()
    }
}
