//! Rule: some words belong to some crates.
//!
//! The name of a library in a source or a manifest is the arrow that `cargo metadata` cannot see:
//! a type that leaks, a comment that ties a reader to today's choice. Only `meta` names the
//! consensus library and its database; neither the pure core nor the log knows a runtime or gRPC.

use super::{Finding, House};

/// A word, and where it must not stand.
struct Fence {
    /// In two halves, so that this file does not hold the word itself.
    halves: (&'static str, &'static str),
    /// Whether a file at this path may not hold it.
    keeps_out: fn(&str) -> bool,
    /// What to say or do instead.
    instead: &'static str,
}

const FENCES: &[Fence] = &[
    Fence {
        halves: ("open", "raft"),
        keeps_out: |path| !path.starts_with("crates/meta/"),
        instead: "say `the consensus library`, and reach it through danube_meta::Meta",
    },
    Fence {
        halves: ("re", "db"),
        keeps_out: |path| !path.starts_with("crates/meta/"),
        instead: "say `the catalog's database`, and reach it through danube_meta::Meta",
    },
    Fence {
        halves: ("ton", "ic"),
        keeps_out: |path| in_crates(path, &["core", "store", "meta"]),
        instead: "return a Fault or an error of your own; wire turns it into a status code",
    },
    Fence {
        halves: ("tok", "io"),
        keeps_out: |path| in_crates(path, &["core", "store"]),
        instead: "take callbacks (store) or return effects (core); the broker owns the runtime",
    },
];

/// The table of versions at the top names everything, and that is its purpose.
const EXEMPT: &str = "Cargo.toml";

fn in_crates(path: &str, names: &[&str]) -> bool {
    names.iter().any(|name| path.starts_with(&format!("crates/{name}/")))
}

/// Finds words on the wrong side of their fence, in Rust sources and manifests.
pub fn check(house: &House) -> Vec<Finding> {
    let mut found = Vec::new();
    let judged =
        |path: &str| path != EXEMPT && (path.ends_with(".rs") || path.ends_with("Cargo.toml"));
    for file in house.files.iter().filter(|file| judged(&file.path)) {
        for fence in FENCES.iter().filter(|fence| (fence.keeps_out)(&file.path)) {
            let word = [fence.halves.0, fence.halves.1].concat();
            for (number, line) in file.lines() {
                if holds_word(line, &word) {
                    let what = format!("`{word}` is named");
                    found.push(Finding::new(file.at(number), what, fence.instead));
                }
            }
        }
    }
    found
}

/// Whether `line` holds `word` as a word or as a part of one joined by `_` or `-`.
pub fn holds_word(line: &str, word: &str) -> bool {
    let letter = |one: Option<char>| one.is_some_and(char::is_alphanumeric);
    line.match_indices(word).any(|(start, _)| {
        !letter(line[..start].chars().next_back())
            && !letter(line[start + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_where_it_is_kept_out_and_nowhere_else() {
        let consensus = ["open", "raft"].concat();
        let grpc = ["use ton", "ic::Status;"].concat();
        let house = House::of(&[
            ("Cargo.toml", &consensus),
            ("crates/meta/src/lib.rs", &consensus),
            ("crates/broker/src/lib.rs", &format!("//! fine\nuse {consensus}::Raft;")),
            ("crates/broker/src/rpc.rs", &grpc),
            ("crates/store/src/lib.rs", &grpc),
            ("docs/adr/x.md", &consensus),
        ]);
        let at: Vec<String> = check(&house).into_iter().map(|finding| finding.at).collect();
        assert_eq!(at, ["crates/broker/src/lib.rs:2", "crates/store/src/lib.rs:1"]);
    }

    #[test]
    fn a_part_of_another_word_does_not_count() {
        assert!(holds_word("a pony_x", "pony") && holds_word("pony", "pony"));
        assert!(!holds_word("ponytail", "pony") && !holds_word("spony", "pony"));
    }
}
