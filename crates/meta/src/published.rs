//! What the consensus thread shows to everybody else.
//!
//! Law: who is told of a revision finds it in the view.

use crate::types::EngineMetrics;
use danube_core::Fault;
use danube_core::catalog::Catalog;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::watch;

/// The applied catalog, its revision, and the reason why applying stopped, if it did.
#[derive(Debug)]
pub(crate) struct Published {
    view: RwLock<Arc<Catalog>>,
    revision: watch::Sender<u64>,
    stopped: OnceLock<Fault>,
    engine: OnceLock<Engine>,
    snapshot_bytes: AtomicU64,
}

/// What the consensus engine tells of itself.
#[derive(Debug)]
struct Engine {
    metrics: watch::Receiver<EngineMetrics>,
    /// The term before this start.
    term_before: u64,
}

/// How the consensus stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetaStats {
    /// The current term; it grows with each election.
    pub term: u64,
    /// Elections since this process started.
    pub elections: u64,
    /// Index of the last entry of the log here.
    pub last_log_index: u64,
    /// Index of the last entry that the catalog here has.
    pub applied_index: u64,
    /// Bytes of the latest snapshot; 0 while there is none.
    pub snapshot_bytes: u64,
    /// Whether this node leads.
    pub leads: bool,
}

impl Published {
    pub(crate) fn new() -> Published {
        Published {
            view: RwLock::new(Arc::new(Catalog::default())),
            revision: watch::Sender::new(0),
            stopped: OnceLock::new(),
            engine: OnceLock::new(),
            snapshot_bytes: AtomicU64::new(0),
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

    /// Where the engine's own figures come from, from now on.
    pub(crate) fn follow(&self, metrics: watch::Receiver<EngineMetrics>, term_before: u64) {
        let _ = self.engine.set(Engine { metrics, term_before });
    }

    /// Notes how long the latest snapshot is.
    pub(crate) fn snapshot_len(&self, bytes: usize) {
        self.snapshot_bytes.store(bytes as u64, Relaxed);
    }

    pub(crate) fn stats(&self) -> MetaStats {
        let snapshot_bytes = self.snapshot_bytes.load(Relaxed);
        let Some(engine) = self.engine.get() else {
            return MetaStats { snapshot_bytes, ..MetaStats::default() };
        };
        let shown = engine.metrics.borrow();
        MetaStats {
            term: shown.current_term,
            elections: shown.current_term.saturating_sub(engine.term_before),
            last_log_index: shown.last_log_index.unwrap_or(0),
            applied_index: shown.last_applied.map_or(0, |applied| applied.index),
            snapshot_bytes,
            leads: shown.current_leader == Some(shown.id),
        }
    }

    pub(crate) fn stopped(&self) -> Option<&Fault> {
        self.stopped.get()
    }
}
