//! The face of the replicated catalog.

use crate::error::MetaError;
use crate::node::{self, Request};
use crate::published::{MetaStats, Published};
use danube_core::catalog::Catalog;
use danube_core::change::{Change, Command, Outcome};
use danube_core::{Fault, WallMs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Proposals that may wait for the consensus thread.
const PROPOSALS_MAX: usize = 1024;
/// How long a proposal may take.
const PROPOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the catalog is and how it is kept.
#[derive(Debug, Clone)]
pub struct MetaOptions {
    /// The directory of its files; made if missing. No other process may use it.
    pub dir: PathBuf,
    /// A snapshot is taken each time the log has grown by this many entries.
    pub snapshot_every: u64,
}

impl MetaOptions {
    /// The catalog in `dir`, with a snapshot each 1000 entries.
    pub fn new(dir: impl Into<PathBuf>) -> MetaOptions {
        MetaOptions { dir: dir.into(), snapshot_every: 1000 }
    }
}

/// The replicated catalog. A clone is another handle to the same; when the last one is dropped the
/// catalog closes by itself, but only [`Meta::close`] says when.
#[derive(Debug, Clone)]
pub struct Meta {
    pub(crate) requests: mpsc::Sender<Request>,
    published: Arc<Published>,
    /// Its sender lives as long as the thread has files open.
    alive: watch::Receiver<()>,
}

impl Meta {
    /// Opens the catalog as a cluster of one. When this returns, the node leads and
    /// [`Meta::view`] has everything that was ever confirmed.
    ///
    /// # Errors
    /// The directory cannot be used, is in use, or holds what this version cannot read.
    pub async fn open(options: MetaOptions) -> Result<Meta, MetaError> {
        let (requests, queue) = mpsc::channel(PROPOSALS_MAX);
        let (ready, opened) = oneshot::channel();
        let (living, alive) = watch::channel(());
        let published = Arc::new(Published::new());
        let dir = options.dir.clone();
        let not_started = |why: String| MetaError::NotStarted { dir: dir.clone(), why };
        let shown = Arc::clone(&published);
        std::thread::Builder::new()
            .name("danube-meta".to_owned())
            .spawn(move || node::run(&options, &shown, ready, queue, living))
            .map_err(|error| not_started(format!("no thread: {error}")))?;
        // The thread ends without a word only when it panics; the database may do that over a
        // file that was altered behind its back.
        opened.await.unwrap_or_else(|_| {
            Err(not_started("its thread failed; the file may be damaged, see the log".to_owned()))
        })?;
        Ok(Meta { requests, published, alive })
    }

    /// Puts `change` in order behind all earlier ones and applies it. `at` is the time that the
    /// catalog will remember for it. When this returns an outcome, the change is on the device and
    /// in [`Meta::view`]. Dropping the future does not take the proposal back.
    ///
    /// # Errors
    /// The refusal of the change; [`Retry`](danube_core::FaultKind::Retry) when there is no leader,
    /// the catalog is closing, or no answer came within 5 seconds (the change may then still
    /// happen); [`Unsupported`](danube_core::FaultKind::Unsupported) or
    /// [`Internal`](danube_core::FaultKind::Internal) when the catalog has stopped for good.
    pub async fn propose(&self, change: impl Into<Change>, at: WallMs) -> Result<Outcome, Fault> {
        self.order(Command::new(change.into(), at)).await
    }

    /// The same, asked for by `by`, which the catalog's trail is to have.
    ///
    /// # Errors
    /// As [`Meta::propose`].
    pub async fn propose_by(
        &self,
        change: impl Into<Change>,
        at: WallMs,
        by: String,
    ) -> Result<Outcome, Fault> {
        self.order(Command::new(change.into(), at).by(by)).await
    }

    async fn order(&self, command: Command) -> Result<Outcome, Fault> {
        let command = command.encode();
        let (reply, answer) = oneshot::channel();
        let asking = async {
            let request = Request::Propose { command, reply };
            self.requests.send(request).await.map_err(|_| self.gone())?;
            answer.await.unwrap_or_else(|_| Err(self.gone()))
        };
        match tokio::time::timeout(PROPOSE_TIMEOUT, asking).await {
            Ok(end) => end,
            Err(_) => Err(Fault::retry(format!(
                "the catalog gave no answer within {} s; the change may still happen, so look \
                 before trying again",
                PROPOSE_TIMEOUT.as_secs()
            ))),
        }
    }

    /// The catalog as applied here so far.
    pub fn view(&self) -> Arc<Catalog> {
        self.published.view()
    }

    /// Tells of every new revision of the catalog; revisions grow, and may skip numbers. The view
    /// is then at least of that revision.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.published.watch()
    }

    /// How the consensus stands now.
    pub fn stats(&self) -> MetaStats {
        self.published.stats()
    }

    /// Closes the catalog: what was taken is finished, and when this returns the files are closed
    /// and another process may have them. Proposals from now on are refused with
    /// [`Retry`](danube_core::FaultKind::Retry). Closing twice does no harm.
    pub async fn close(&self) {
        // Where nobody takes the request any more it is closing already.
        let _ = self.requests.send(Request::Close).await;
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    #[cfg(test)]
    pub(crate) fn alive(&self) -> watch::Receiver<()> {
        self.alive.clone()
    }

    fn gone(&self) -> Fault {
        match self.published.stopped() {
            Some(fault) => fault.clone(),
            None => Fault::retry("the catalog is closed or closing; try another broker, or later"),
        }
    }
}
