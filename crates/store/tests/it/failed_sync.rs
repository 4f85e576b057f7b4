//! A sync that fails: the kernel may drop what it had, and nobody may take that for damage.

use crate::sim::disk::SimDisk;
use crate::sim::faults::{Fault, Plan};
use bytes::Bytes;
use danube_core::{Epoch, Incarnation, Offset, TopicId, WalSyncMode};
use danube_store::{ReadBatch, ReadError, ReadLimit, Store, StoreOptions, TopicLog};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;

fn append(log: &TopicLog, text: &str) -> bool {
    let (tell, answer) = mpsc::sync_channel(1);
    let record = Bytes::copy_from_slice(text.as_bytes());
    log.append(vec![record], WalSyncMode::OsCacheFlush, move |outcome| {
        tell.send(outcome).expect("somebody waits");
    });
    answer.recv().expect("an answer").is_ok()
}

fn read(log: &TopicLog) -> Result<ReadBatch, ReadError> {
    let (tell, answer) = mpsc::sync_channel(1);
    let limit = ReadLimit { records_max: usize::MAX, bytes_max: usize::MAX };
    log.read(Offset(0), limit, move |outcome| tell.send(outcome).expect("somebody waits"));
    answer.recv().expect("an answer")
}

/// What is acknowledged is in memory and in doubt, and read from there is what the kernel dropped.
#[test]
fn what_a_failed_sync_drops_is_no_damage_and_is_written_again() {
    let (mut waited, mut moved) = (0, 0);
    // From whichever operation on it fails: some hit the sync before the checkpoint.
    for (seed, from) in (0..10).flat_map(|seed| (20..60).map(move |from| (seed, from))) {
        let disk = SimDisk::new(seed, false);
        let faults = vec![(from..99, Fault::Sync), (from..99, Fault::Create)];
        disk.begin(Plan { faults, ..Plan::default() });
        let options = StoreOptions {
            file_bytes_max: 4096,
            journal_files_keep: 0,
            cache_bytes_max: 0,
            sync_interval_ms: 0,
            background: false,
            ..StoreOptions::new("/data", Incarnation(1))
        };
        let store = Store::open_on(Arc::new(disk.clone()), options, &mut |_| {}).expect("opens");
        let log = store.topic(TopicId(1), Epoch(1));
        // Full files, so that there is something to say in a checkpoint.
        let other = store.topic(TopicId(2), Epoch(1));
        let full = (0..2).all(|_| append(&other, &"x".repeat(4000)));
        if !(full && append(&log, "one")) {
            continue;
        }
        let _ = store.tend();
        match read(&log) {
            Ok(batch) => assert_eq!(batch.records.len(), 1),
            Err(error @ ReadError::Io { .. }) => {
                waited += 1;
                assert!(error.to_string().contains("written again"), "{error}");
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
        disk.mend();
        assert!(append(&log, "two"), "seed {seed}: the disk is whole again");
        let second = |name: &PathBuf| name.ends_with("journal-00000000000000000002.log");
        moved += u32::from(disk.names().iter().any(second));
        let texts: Vec<Bytes> =
            read(&log).expect("reads").records.into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["one", "two"], "seed {seed}");
        assert_eq!(log.damage(), None);
    }
    assert!(waited > 0 && moved > 0, "{waited} {moved}");
}
