//! Crashes: the last file as it was at any moment.

use super::*;

fn copy_with(from: &Path, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
    let to = tempfile::tempdir().expect("directory");
    let files = journal_files(from);
    for file in &files {
        let mut bytes = fs::read(file).expect("reads");
        if Some(file) == files.last() {
            change(&mut bytes);
            return write_last(to, file, &bytes);
        }
        fs::write(to.path().join(file.file_name().expect("name")), bytes).expect("writes");
    }
    to
}

fn write_last(to: tempfile::TempDir, file: &Path, bytes: &[u8]) -> tempfile::TempDir {
    fs::write(to.path().join(file.file_name().expect("name")), bytes).expect("writes");
    to
}

#[test]
fn whatever_was_written_before_the_crash_is_there_and_nothing_else() {
    let dir = tempfile::tempdir().expect("directory");
    // A first process leaves a whole file behind, so that the last one is not the only one.
    let store = open(dir.path());
    put(&topic(&store, 1), "old");
    store.close().expect("closes");
    let store = open(dir.path());
    let mut ends = Vec::new();
    for at in 0..12_u64 {
        let id = 1 + (at % 3) as u32;
        put(&topic(&store, id), &format!("{id}: {at}"));
        ends.push((64 + store.stats().bytes, id));
        record(&topic(&store, 9), 1, Step::Moved { cursor: Offset(at) }).expect("records");
    }
    let written = 64 + store.stats().bytes;
    for zeros in [0, 5000] {
        for len in (64..=written).step_by(7).chain([written]) {
            let crashed = copy_with(dir.path(), |bytes| {
                bytes.truncate(len as usize);
                bytes.resize(len as usize + zeros, 0);
            });
            let store = open(crashed.path());
            assert_eq!(store.stats().topics_damaged, 0, "cut at {len}");
            for id in 1..=3 {
                let log = topic(&store, id);
                let expected = ends.iter().filter(|(end, of)| *of == id && *end <= len).count();
                let expected = expected + usize::from(id == 1);
                assert_eq!(texts(&log).len(), expected, "topic {id}, cut at {len}");
            }
            let log = topic(&store, 1);
            let before = texts(&log);
            put(&log, "goes on");
            drop(store);
            let store = open(crashed.path());
            let after = texts(&topic(&store, 1));
            assert_eq!(after.split_last().map(|(_, rest)| rest.to_vec()), Some(before));
        }
    }
}

#[test]
fn a_cursor_never_sits_ahead_of_what_is_still_to_come() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let finished = Step::Finished { first: Offset(0), end: Offset(40) };
    record(&topic(&store, 1), 1, finished).expect("records");
    drop(store);
    let store = open(dir.path());
    assert_eq!(put(&topic(&store, 1), "new"), Offset(40));
    drop(store);
    let store = open(dir.path());
    assert_eq!(read(&topic(&store, 1), 40, ALL).expect("reads").records.len(), 1);
    assert_eq!(store.stats().topics_damaged, 0);
}

#[test]
fn a_crash_loop_does_not_fill_the_disk() {
    let mut dir = tempfile::tempdir().expect("directory");
    for round in 0..12_u64 {
        let store = open(dir.path());
        put(&topic(&store, 1), &round.to_string());
        store.tend().expect("works");
        // What a kill leaves behind is what is there now.
        let killed = tempfile::tempdir().expect("directory");
        for entry in fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("reads")) {
            if entry.file_type().expect("has a type").is_file() {
                fs::copy(entry.path(), killed.path().join(entry.file_name())).expect("copies");
            } else {
                let to = killed.path().join(entry.file_name());
                fs::create_dir(&to).expect("makes");
                for file in fs::read_dir(entry.path()).expect("lists") {
                    let file = file.expect("reads");
                    fs::copy(file.path(), to.join(file.file_name())).expect("copies");
                }
            }
        }
        drop(store);
        dir = killed;
    }
    let store = open(dir.path());
    store.tend().expect("works");
    let files = journal_files(dir.path()).len();
    assert!(files <= 4, "{files} journal files are left after 12 kills");
    let rounds: Vec<String> = (0..12).map(|round| round.to_string()).collect();
    assert_eq!(texts(&topic(&store, 1)), rounds);
}
