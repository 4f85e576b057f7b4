//! Numbered batches: stored once, in order, whatever fails.

use super::failing_disk::FailingDisk;
use super::*;
use crate::RecordBatchBuilder;
use bytes::BufMut;
use danube_core::ProducerId;
use danube_core::sequence::{Opened, Origin, SequenceRefusal};
use std::sync::Arc;

const P: ProducerId = ProducerId(9);

fn send(
    log: &TopicLog,
    epoch: u32,
    first_sequence: u64,
    texts: &[&str],
) -> Receiver<Result<Appended, AppendError>> {
    let origin = Origin { producer: P, epoch, after: first_sequence - 1, first_sequence };
    let mut batch = RecordBatchBuilder::numbered(origin, 0, 0);
    texts.iter().for_each(|text| batch.push(|out| out.put_slice(text.as_bytes())));
    let batch = batch.build().expect("has a record");
    let (tell, answers) = mpsc::sync_channel(1);
    let sync = WalSyncMode::FsyncBatch;
    log.append_batch(batch, sync, move |outcome| {
        tell.send(outcome).expect("somebody waits");
    });
    answers
}

#[test]
fn a_batch_sent_twice_is_stored_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let log = topic(&store, 1);
    let Opened { epoch, last_sequence } = open_producer(&log, P);
    assert_eq!(last_sequence, 0);
    let stored = Appended { first: Offset(0), count: 2 };
    assert_eq!(wait(&send(&log, epoch, 1, &["a", "b"])), Ok(stored));
    put(&log, "somebody else's");
    assert_eq!(wait(&send(&log, epoch, 1, &["a", "b"])), Ok(stored));
    let later = wait(&send(&log, epoch, 3, &["c"])).expect("goes on");
    assert_eq!((later.first, log.bounds().next), (Offset(3), Offset(4)));
    assert_eq!(open_producer(&log, P).last_sequence, 3);
    let why = SequenceRefusal::Fenced { epoch: epoch + 1 };
    let fenced = AppendError::Sequence { topic: TopicId(1), why };
    assert_eq!(wait(&send(&log, epoch, 4, &["d"])), Err(fenced));
}

#[test]
fn nothing_overtakes_a_batch_that_the_disk_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = FailingDisk::default();
    let store = Store::open_on(Arc::new(disk.clone()), options(dir.path()), &mut |_| {});
    let store = store.expect("opens");
    let log = topic(&store, 1);
    let epoch = open_producer(&log, P).epoch;
    disk.set(|condition| condition.fail_sync = true);
    let refused = wait(&send(&log, epoch, 1, &["a"]));
    assert!(matches!(refused, Err(AppendError::Io { .. })), "{refused:?}");
    disk.set(|condition| condition.fail_sync = false);
    let why = SequenceRefusal::OutOfOrder { last: 0 };
    let early = AppendError::Sequence { topic: TopicId(1), why };
    assert_eq!(wait(&send(&log, epoch, 2, &["b"])), Err(early));
    let first = wait(&send(&log, epoch, 1, &["a"])).expect("the disk is well");
    let second = wait(&send(&log, epoch, 2, &["b"])).expect("in order");
    assert_eq!(second.first, first.first.next());
}
