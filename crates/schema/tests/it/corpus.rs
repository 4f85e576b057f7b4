//! The fuzz targets as ordinary tests: over the corpus, and over changed copies of it. With nightly
//! and cargo-fuzz, `cd fuzz && cargo fuzz run schema_pair` goes on from there.

use danube_schema::fuzzing;
use std::fs;
use std::path::Path;

/// Changed copies of each file of the corpus.
const COPIES: u64 = 40;

#[expect(clippy::disallowed_methods, reason = "the corpus is files, and this is a test")]
fn run(target: &str, fuzz: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has a corpus", dir.display());
    for (number, path) in (1..).zip(&files) {
        let bytes = fs::read(path).expect("reads");
        fuzz(&bytes);
        for copy in 0..COPIES {
            let mut random = Random(copy << 8 | number);
            fuzz(&changed(&mut random, bytes.clone()));
        }
    }
    fuzz(&[]);
}

/// Splitmix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).expect("below a usize")
    }
}

/// A few bytes changed, cut, doubled, or exchanged for what means something to a parser.
fn changed(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = b"{}[]\":,0-\\\xff\0"[random.below(12)],
            3 if at < bytes.len() => {
                bytes.remove(at);
            }
            4 => {
                let words: [&[u8]; 6] =
                    [b"\"$ref\":\"#\",", b"null", b"1e999", b"\"R\"", b"\xf0\x90", b"99999999999"];
                let word = words[random.below(6)];
                bytes.splice(at..at, word.iter().copied());
            }
            _ => {
                let end = bytes.len().min(at + 1 + random.below(60));
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

#[test]
fn any_bytes_as_a_definition() {
    run("schema_definition", fuzzing::definition);
}

#[test]
fn any_bytes_as_a_payload() {
    run("schema_payload", fuzzing::payload);
}

#[test]
fn any_bytes_as_two_versions() {
    run("schema_pair", fuzzing::pair);
}
