//! Tests of the whole: what is confirmed stays, whatever happens to process and files.

mod damage;
mod storage;

use crate::file::File;
use crate::log::Log;
use crate::machine::Machine;
use crate::node::{Request, lead};
use crate::published::Published;
use crate::types::{Batch, Raft};
use crate::{Meta, MetaError, MetaOptions};
use danube_core::catalog::Catalog;
use danube_core::change::{CreateNamespace, CreateTopic, Outcome, StartIncarnation};
use danube_core::{
    Delivery, Fault, FaultKind, Incarnation, Intent, NamespaceName, TopicName, WallMs,
};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

fn create(name: &str) -> CreateTopic {
    CreateTopic {
        name: topic(name),
        partitions: None,
        intent: Some(Intent::AuditLog),
        delivery: Delivery::Reliable,
        schema_subject: None,
        dead_letter_topic: None,
        implicit: false,
    }
}

async fn open(dir: &Path) -> Meta {
    Meta::open(MetaOptions::new(dir)).await.expect("the catalog opens")
}

/// Makes topics `first .. end` and returns the catalog after that.
async fn fill(meta: &Meta, first: u32, end: u32) -> Catalog {
    for at in first..end {
        let outcome = meta.propose(create(&format!("/default/t{at}")), WallMs(u64::from(at))).await;
        assert!(outcome.is_ok(), "{outcome:?}");
    }
    meta.view().as_ref().clone()
}

/// The engine without the thread around it, for what only the engine can be asked.
async fn engine(dir: &Path) -> (Raft, Arc<Published>) {
    let options = MetaOptions::new(dir);
    let file = Arc::new(File::open(dir, 1).expect("the file opens"));
    let published = Arc::new(Published::new());
    let machine = Machine::load(Arc::clone(&file), Arc::clone(&published))
        .expect("the file is sound")
        .expect("the snapshot can be read");
    (lead(&options, 1, Log::new(file), machine).await.expect("the engine leads"), published)
}

#[tokio::test]
async fn a_restart_finds_everything() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut before = Catalog::default();
    for start in 1..=4_u32 {
        let opening = std::time::Instant::now();
        let meta = open(dir.path()).await;
        println!("open number {start} took {:?}", opening.elapsed());
        assert_eq!(*meta.view(), before);
        let started = meta.propose(StartIncarnation {}, WallMs(1)).await;
        let incarnation = Incarnation(start);
        assert_eq!(started, Ok(Outcome::IncarnationStarted { incarnation }));
        before = fill(&meta, start * 10, start * 10 + 5).await;
        meta.close().await;
    }
    assert_eq!(before.topics().count(), 20);
}

/// What a `kill -9` leaves behind is what the files hold at that moment.
#[tokio::test]
async fn a_copy_of_the_files_has_every_confirmed_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    for round in 0..3 {
        let confirmed = fill(&meta, round * 5, round * 5 + 5).await;
        let copy = tempfile::tempdir().expect("a directory");
        std::fs::copy(dir.path().join("raft.redb"), copy.path().join("raft.redb")).expect("copied");
        let survivor = open(copy.path()).await;
        assert_eq!(*survivor.view(), confirmed);
        survivor.close().await;
    }
    meta.close().await;
}

#[tokio::test]
async fn a_dropped_catalog_closes_by_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let confirmed = fill(&meta, 0, 3).await;
    let mut alive = meta.alive();
    drop(meta);
    while alive.changed().await.is_ok() {}
    let again = open(dir.path()).await;
    assert_eq!(*again.view(), confirmed);
    again.close().await;
}

#[tokio::test]
async fn a_restart_finds_everything_in_the_snapshot_when_the_log_is_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let confirmed = fill(&meta, 0, 20).await;
    meta.close().await;

    let (raft, _) = engine(dir.path()).await;
    let last = raft.metrics().borrow().last_applied.expect("entries were applied");
    raft.trigger().snapshot().await.expect("the engine runs");
    raft.wait(None).snapshot(last, "a snapshot of everything").await.expect("the engine runs");
    raft.trigger().purge_log(last.index).await.expect("the engine runs");
    raft.wait(None).purged(Some(last), "no log left").await.expect("the engine runs");
    raft.shutdown().await.expect("it ends well");
    drop(raft);

    let meta = reopen_when_free(dir.path()).await;
    assert_eq!(*meta.view(), confirmed);
    let confirmed = fill(&meta, 20, 25).await;
    meta.close().await;
    let file = File::open(dir.path(), 1).expect("the file opens");
    let entries = file.entries(..).expect("the log is sound");
    assert!(entries.first().is_some_and(|first| first.log_id.index > last.index));
    drop(file);
    let meta = open(dir.path()).await;
    assert_eq!(*meta.view(), confirmed);
    meta.close().await;
}

/// The engine's own tasks let go of the file a moment after it has shut down.
async fn reopen_when_free(dir: &Path) -> Meta {
    loop {
        match Meta::open(MetaOptions::new(dir)).await {
            Err(MetaError::InUse { .. }) => tokio::task::yield_now().await,
            opened => return opened.expect("the catalog opens"),
        }
    }
}

#[tokio::test]
async fn snapshots_are_taken_by_themselves() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = MetaOptions { snapshot_every: 8, ..MetaOptions::new(dir.path()) };
    let meta = Meta::open(options.clone()).await.expect("the catalog opens");
    let mut confirmed = Catalog::default();
    // Taking one goes on beside the proposals, so how many there are is not settled.
    for round in 0..10 {
        confirmed = fill(&meta, round * 10, round * 10 + 10).await;
    }
    meta.close().await;
    let file = File::open(dir.path(), 1).expect("the file opens");
    assert!(file.snapshot().expect("sound").is_some());
    drop(file);
    let meta = Meta::open(options).await.expect("the catalog opens");
    assert_eq!(*meta.view(), confirmed);
    meta.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once_all_get_their_own_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let mut proposals = tokio::task::JoinSet::new();
    for at in 0..50 {
        let meta = meta.clone();
        proposals.spawn(async move {
            let name = format!("/default/t{}", at % 25);
            let end = meta.propose(create(&name), WallMs(at)).await;
            assert!(meta.view().topic(&topic(&name)).is_some(), "in the view once answered");
            end
        });
    }
    let ends = proposals.join_all().await;
    let ids: std::collections::BTreeSet<u32> = ends
        .iter()
        .filter_map(|end| match end {
            Ok(Outcome::TopicCreated { created, .. }) => Some(created[0].id.0),
            Err(fault) if fault.kind == FaultKind::AlreadyExists => None,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, (1..=25).collect());
    meta.close().await;
}

#[tokio::test]
async fn a_refusal_comes_back_and_is_no_revision() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let mut revisions = meta.watch();
    let agents = CreateNamespace { name: NamespaceName::parse("agents").expect("well formed") };
    assert_eq!(meta.propose(agents.clone(), WallMs(1)).await, Ok(Outcome::NamespaceCreated));
    assert!(revisions.has_changed().expect("open"));
    let first = *revisions.borrow_and_update();
    let view = meta.view();
    let fault = meta.propose(agents, WallMs(2)).await.expect_err("it exists");
    assert_eq!(fault, Fault::already_exists("namespace `agents` exists"));
    assert!(!revisions.has_changed().expect("open"));
    assert!(Arc::ptr_eq(&view, &meta.view()));
    fill(&meta, 0, 1).await;
    assert!(*revisions.borrow_and_update() > first);
    meta.close().await;
}

#[tokio::test]
async fn after_closing_a_proposal_is_told_to_retry() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let confirmed = fill(&meta, 0, 1).await;
    let other = meta.clone();
    tokio::join!(meta.close(), other.close());
    meta.close().await;
    let fault = meta.propose(StartIncarnation {}, WallMs(1)).await.expect_err("closed");
    assert_eq!(fault.kind, FaultKind::Retry);
    assert_eq!(*meta.view(), confirmed, "what was known can still be read");
    // All of it is closed: the same process may have it again.
    open(dir.path()).await.close().await;
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let error = Meta::open(MetaOptions::new(dir.path())).await.expect_err("in use");
    assert!(matches!(&error, MetaError::InUse { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "the catalog in `{}` is in use by another process; stop it, or give this one another \
             data directory",
            dir.path().display()
        )
    );
    meta.close().await;
}

#[tokio::test]
async fn a_command_of_a_later_level_stops_the_catalog_for_good() {
    let dir = tempfile::tempdir().expect("a directory");
    let meta = open(dir.path()).await;
    let confirmed = fill(&meta, 0, 3).await;
    let (reply, answer) = oneshot::channel();
    let command = serde_json::json!({"level": 7, "stamp": {"at": 1}, "change": {"fly": {}}});
    meta.requests.send(Request::Propose { command, reply }).await.expect("it runs");
    let fault = answer.await.expect("answered").expect_err("unreadable");
    assert_eq!(fault.kind, FaultKind::Unsupported);
    assert!(fault.message.contains("command needs level 7"), "{fault}");
    // It is in the log now; nothing behind it can be applied, now or after a restart.
    let again = meta.propose(StartIncarnation {}, WallMs(1)).await.expect_err("stopped");
    assert_eq!(again, fault);
    assert_eq!(*meta.view(), confirmed);
    meta.close().await;
    let error = Meta::open(MetaOptions::new(dir.path())).await.expect_err("unreadable");
    assert!(matches!(&error, MetaError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("command needs level 7"), "{error}");
}

#[tokio::test]
async fn a_batch_with_an_unreadable_command_is_not_applied_in_part() {
    let dir = tempfile::tempdir().expect("a directory");
    let (raft, published) = engine(dir.path()).await;
    let good = danube_core::change::Command::new(create("/default/t").into(), WallMs(1)).encode();
    let batch = Batch { commands: vec![good, serde_json::json!({"level": 1})] };
    assert!(raft.client_write(batch).await.is_err());
    assert!(published.stopped().is_some());
    assert_eq!(*published.view(), Catalog::default());
}
