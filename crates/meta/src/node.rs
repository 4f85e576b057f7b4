//! The consensus node: one thread with a runtime of its own.
//!
//! Message traffic must not delay the consensus engine, nor its waits for the device delay
//! messages; so they share nothing but two queues. Proposals that wait while one is being written
//! go into the next log entry together, and share its write.
//!
//! Law: when the node reports ready it leads, and has applied everything that was ever confirmed.

use crate::error::MetaError;
use crate::file::File;
use crate::handle::MetaOptions;
use crate::log::Log;
use crate::machine::{Machine, stopped_without_reason};
use crate::network::NoPeers;
use crate::published::Published;
use crate::types::{Batch, Raft};
use danube_core::Fault;
use danube_core::change::Outcome;
use openraft::error::{ClientWriteError, RaftError};
use openraft::{BasicNode, Config, SnapshotPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Proposals in one log entry.
const BATCH_LEN_MAX: usize = 64;
/// Log entries that stay after a snapshot, for a peer that is a little behind.
const ENTRIES_KEPT: u64 = 100;
/// How long the node may take to lead; alone it needs a few writes to the device.
const LEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A new file is for this node.
const FIRST_NODE: u64 = 1;

/// What the node is asked.
#[derive(Debug)]
pub(crate) enum Request {
    /// Put this command in order and apply it.
    Propose { command: serde_json::Value, reply: oneshot::Sender<Result<Outcome, Fault>> },
    /// Stop.
    Close,
}

/// Runs the node until it is asked to close or nobody can ask any more. To be called on a thread
/// of its own. `alive` is dropped when every file is closed.
pub(crate) fn run(
    options: &MetaOptions,
    published: &Arc<Published>,
    ready: oneshot::Sender<Result<(), MetaError>>,
    requests: mpsc::Receiver<Request>,
    alive: watch::Sender<()>,
) {
    let (runtime, raft) = match start(options, published) {
        Ok(started) => started,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    runtime.block_on(serve(&raft, published, requests));
    drop(raft);
    // Ends every task, waits for a snapshot that is being written, and with the last task the
    // file is closed and its lock let go.
    drop(runtime);
    drop(alive);
}

fn start(
    options: &MetaOptions,
    published: &Arc<Published>,
) -> Result<(tokio::runtime::Runtime, Raft), MetaError> {
    let not_started = |why: String| MetaError::NotStarted { dir: options.dir.clone(), why };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .thread_name("danube-meta-io")
        .build()
        .map_err(|error| not_started(error.to_string()))?;
    let file = Arc::new(File::open(&options.dir, FIRST_NODE)?);
    let read = |error| file.error("read", &error);
    let node = file.node().map_err(read)?;
    let term_before = file.vote().map_err(read)?.map_or(0, |vote| vote.leader_id().term);
    let machine = Machine::load(Arc::clone(&file), Arc::clone(published))
        .map_err(read)?
        .map_err(|fault| MetaError::Unreadable { dir: options.dir.clone(), fault })?;
    let raft = runtime.block_on(lead(options, node, Log::new(Arc::clone(&file)), machine));
    match raft {
        Ok(raft) => {
            published.follow(raft.metrics(), term_before);
            Ok((runtime, raft))
        }
        Err(why) => Err(match published.stopped() {
            Some(fault) => MetaError::Unreadable { dir: options.dir.clone(), fault: fault.clone() },
            None => not_started(why),
        }),
    }
}

/// Brings up the engine and makes it lead.
pub(crate) async fn lead(
    options: &MetaOptions,
    node: u64,
    log: Log,
    machine: Machine,
) -> Result<Raft, String> {
    let raft = Raft::new(node, Arc::new(config(options)), NoPeers, log, machine)
        .await
        .map_err(|error| error.to_string())?;
    let initialised = raft.is_initialized().await.map_err(|error| error.to_string())?;
    if initialised {
        // Nothing to wait for: there is nobody else who could lead.
        raft.trigger().elect().await.map_err(|error| error.to_string())?;
    } else {
        let alone = BTreeMap::from([(node, BasicNode::default())]);
        raft.initialize(alone).await.map_err(|error| error.to_string())?;
    }
    raft.wait(Some(LEAD_TIMEOUT))
        .current_leader(node, "to lead")
        .await
        .map_err(|error| error.to_string())?;
    // An entry of this term confirms all that came before, and it is applied after them.
    let nothing = Batch { commands: Vec::new() };
    raft.client_write(nothing).await.map_err(|error| error.to_string())?;
    Ok(raft)
}

fn config(options: &MetaOptions) -> Config {
    Config {
        cluster_name: "danube".to_owned(),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_every),
        max_in_snapshot_log_to_keep: ENTRIES_KEPT.min(options.snapshot_every),
        // Alone there is nobody to send heartbeats to and nobody to stand against, so an idle
        // broker need not wake up for either.
        enable_tick: false,
        ..Config::default()
    }
}

/// Serves requests until it is asked to close or nobody is left to ask.
async fn serve(raft: &Raft, published: &Published, mut requests: mpsc::Receiver<Request>) {
    let mut waiting = Vec::with_capacity(BATCH_LEN_MAX);
    let mut closing = false;
    while !closing && requests.recv_many(&mut waiting, BATCH_LEN_MAX).await > 0 {
        let (mut commands, mut replies) = (Vec::new(), Vec::new());
        for request in waiting.drain(..) {
            match request {
                Request::Propose { command, reply } => {
                    commands.push(command);
                    replies.push(reply);
                }
                Request::Close => closing = true,
            }
        }
        if !commands.is_empty() {
            write(raft, published, commands, replies).await;
        }
    }
    // Proposals that are still in the queue are dropped with it, and hear that we shut down.
    drop(requests);
    if let Err(error) = raft.shutdown().await {
        tracing::error!(%error, "the consensus engine ended badly");
    }
}

/// Puts a batch of commands in order and tells everybody how theirs ended.
async fn write(
    raft: &Raft,
    published: &Published,
    commands: Vec<serde_json::Value>,
    replies: Vec<oneshot::Sender<Result<Outcome, Fault>>>,
) {
    match raft.client_write(Batch { commands }).await {
        Ok(written) => {
            debug_assert_eq!(written.data.len(), replies.len(), "one end for each command");
            for (reply, end) in replies.into_iter().zip(written.data) {
                // Who no longer waits need not be told.
                let _ = reply.send(end);
            }
        }
        Err(error) => {
            let fault = fault(published, &error);
            for reply in replies {
                let _ = reply.send(Err(fault.clone()));
            }
        }
    }
}

fn fault(published: &Published, error: &RaftError<u64, ClientWriteError<u64, BasicNode>>) -> Fault {
    match error {
        RaftError::APIError(error) => {
            Fault::retry(format!("the catalog has no leader at the moment: {error}"))
        }
        RaftError::Fatal(fatal) => {
            published.stop(stopped_without_reason(fatal));
            published.stopped().expect("just given").clone()
        }
    }
}
