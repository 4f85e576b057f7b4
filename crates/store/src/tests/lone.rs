//! Who syncs what comes alone.

use super::*;
use std::thread::{self, ThreadId};

/// Appends to `log` and returns who did it, once nobody is at it any more.
fn who(store: &Store, log: &TopicLog) -> ThreadId {
    let (tell, answers) = mpsc::sync_channel(1);
    let records = vec![Bytes::from_static(b"alone")];
    log.append(records, WalSyncMode::FsyncBatch, move |outcome| {
        tell.send(outcome.map(|_| thread::current().id())).expect("somebody waits");
    });
    let who = wait(&answers).expect("appends");
    store.settle();
    who
}

#[test]
fn what_comes_alone_is_synced_by_who_brings_it_until_they_have_others_to_serve() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let log = topic(&store, 1);
    let me = thread::current().id();
    let many: Vec<_> = (0..200).map(|_| who(&store, &log) == me).collect();
    assert!(!many[0], "nothing is known yet");
    let mine = many.iter().filter(|it| **it).count();
    assert!((150..200).contains(&mine), "nearly all, and the writer looks now and then: {mine}");
    let synced = store.stats().syncs;
    assert_eq!(synced, 200, "each of them, whoever did it");

    for turn in 0..100 {
        store.callers_are_busy();
        // The first is under way before anybody looks.
        assert!(who(&store, &log) != me || turn == 0, "{turn}");
    }
    let free: Vec<_> = (0..10).map(|_| who(&store, &log) == me).collect();
    assert!(free[9], "as soon as they have nothing else to do: {free:?}");

    assert_eq!(append(&log, "company", WalSyncMode::Async).map(|it| it.count), Ok(1));
    store.settle();
    assert_ne!(who(&store, &log), me, "others write too");
    store.close().expect("closes");

    let store = open(dir.path());
    assert_eq!(texts(&topic(&store, 1)).len(), 200 + 100 + 10 + 1 + 1);
}
