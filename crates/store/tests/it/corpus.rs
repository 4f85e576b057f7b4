//! The fuzz targets as ordinary tests: over the corpus, and over a few thousand changed copies of
//! it. With nightly and cargo-fuzz, `cd fuzz && cargo fuzz run open` goes on from there.

use crate::sim::random::Random;
use danube_store::fuzzing;
use std::fs;
use std::path::Path;

/// Changed copies of each file of the corpus.
const COPIES: u64 = 60;

fn run(target: &str, fuzz: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has a corpus", dir.display());
    for (number, path) in files.iter().enumerate() {
        let bytes = fs::read(path).expect("reads");
        fuzz(&bytes);
        for copy in 0..COPIES {
            let mut random = Random::new(copy, number as u64);
            fuzz(&changed(&mut random, bytes.clone()));
        }
    }
    fuzz(&[]);
}

fn changed(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..random.within(1, 4) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = random.pick(&[0, 1, 0x7f, 0xff]),
            3 => {
                let end = bytes.len().min(at + random.within(1, 60) as usize);
                bytes[at..end].fill(0);
            }
            _ => {
                let end = bytes.len().min(at + random.within(1, 200) as usize);
                let again = bytes[at..end].to_vec();
                bytes.extend(again);
            }
        }
    }
    bytes
}

#[test]
fn any_bytes_as_a_frame() {
    run("frame", fuzzing::frame);
}

#[test]
fn any_bytes_as_progress() {
    run("step", fuzzing::step);
}

#[test]
fn any_bytes_as_a_segment() {
    run("segment", fuzzing::segment);
}

#[test]
fn any_bytes_as_a_checkpoint() {
    run("checkpoint", fuzzing::checkpoint);
}

#[test]
fn any_files_as_a_data_directory() {
    run("open", fuzzing::open);
}
