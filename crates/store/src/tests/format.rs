//! The bytes on disk, pinned: a file written by any earlier build of this format must open.

use super::failing_disk::FailingDisk;
use super::*;
use crate::RecordBatchBuilder;
use danube_core::ProducerId;
use danube_core::sequence::Origin;
use danube_core::subscription::progress::Progress;
use expect_test::expect_file;
use std::fmt::Write as _;
use std::sync::Arc;

fn hex(bytes: &[u8]) -> String {
    bytes.chunks(16).fold(String::new(), |mut text, line| {
        for byte in line {
            write!(text, "{byte:02x} ").expect("writes to a string");
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    })
}

fn unhex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

#[test]
fn a_journals_bytes_are_pinned() {
    let dir = tempfile::tempdir().expect("directory");
    let options = StoreOptions { incarnation: Incarnation(7), ..options(dir.path()) };
    // A disk that does not know which running of the machine this is.
    let disk = Arc::new(FailingDisk::default());
    let store = Store::open_on(disk, options, &mut |_| {}).expect("opens");
    let log = store.topic(TopicId(5), Epoch(3));
    put(&log, "zero");
    let records = vec![Bytes::from_static(b"one"), Bytes::new()];
    wait(&start_append(&log, records, WalSyncMode::FsyncBatch)).expect("appends");
    record(&log, 8, Step::Moved { cursor: Offset(1) }).expect("records");
    record(&log, 8, Step::Finished { first: Offset(2), end: Offset(3) }).expect("records");
    let (offset, reason) = (Offset(1), "no".to_owned());
    record(&log, 8, Step::Failed { offset, attempt: 2, blocked: true, reason }).expect("records");
    let records = vec![Bytes::from_static(b"mine")];
    let producer = ProducerId(77);
    open_producer(&log, producer);
    let origin = Origin { producer, epoch: 1, after: 0, first_sequence: 500 };
    let mut batch = RecordBatchBuilder::numbered(origin, 0, 0);
    batch.push(|out| out.extend_from_slice(b"mine"));
    let batch = batch.build().expect("has a record");
    log.append_batch(batch, WalSyncMode::OsCacheFlush, |_| {});
    let moved =
        ProgressRecord { subscription: SubscriptionId(9), step: Step::Moved { cursor: Offset(3) } };
    let also = vec![(log.clone(), vec![moved])];
    topic(&store, 7).append_with(records, also, WalSyncMode::OsCacheFlush, |_| {});
    put(&topic(&store, 6), "soon gone");
    store.forget_topic(TopicId(6));
    store.close().expect("closes");
    let bytes = fs::read(&journal_files(dir.path())[0]).expect("reads");
    expect_file!["testdata/journal.hex"].assert_eq(&hex(&bytes));
}

#[test]
fn the_pinned_bytes_open() {
    let dir = tempfile::tempdir().expect("directory");
    let bytes = unhex(include_str!("testdata/journal.hex"));
    fs::write(dir.path().join("journal-00000000000000000000.log"), bytes).expect("writes");
    let store = open(dir.path());
    let log = store.topic(TopicId(5), Epoch(3));
    assert_eq!(texts(&log), ["zero", "one", "", "mine"]);
    assert_eq!(log.sequences().last(ProducerId(77)), Some((500, Offset(3))));
    assert_eq!(texts(&topic(&store, 7)), ["mine"]);
    assert_eq!(log.subscription(SubscriptionId(9), Offset(0)), Progress::at(Offset(3)));
    let mut progress = Progress::at(Offset(1));
    progress.apply(&Step::Finished { first: Offset(2), end: Offset(3) });
    let (offset, reason) = (Offset(1), "no".to_owned());
    progress.apply(&Step::Failed { offset, attempt: 2, blocked: true, reason });
    assert_eq!(log.subscription(SubscriptionId(8), Offset(0)), progress);
    assert_eq!(store.stats().topics, 2, "the third one is forgotten");
}
