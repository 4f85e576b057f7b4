//! Rule: nothing is left open in the tree: no to-do marks, no stubs, no test switched off.
//!
//! Each of them is a promise to a user that nobody keeps a list of.

use super::words::holds_word;
use super::{Finding, House};

/// Marks in two halves, so that this file does not hold them itself.
const MARKS: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("XX", "X")];
/// Stubs and switches, likewise.
const STUBS: &[(&str, &str)] = &[("to", "do!("), ("unimple", "mented!(")];
const SWITCHED_OFF: &[(&str, &str)] = &[("#[ig", "nore"), ("@unittest.", "skip")];

const DO_IT: &str = "do it now, or file an issue and leave the code whole without it";
const MEND_IT: &str = "mend the test or remove it with the reason in the commit";

/// Finds marks, stubs and switched-off tests in everything that people write.
pub fn check(house: &House) -> Vec<Finding> {
    let judged = [".rs", ".py", ".proto", ".toml", ".md", ".sh", ".yml", ".yaml", ".ci/run"];
    let mut found = Vec::new();
    for file in &house.files {
        if !judged.iter().any(|ending| file.path.ends_with(ending)) {
            continue;
        }
        for (number, line) in file.lines() {
            for mark in MARKS.iter().map(join).filter(|mark| holds_word(line, mark)) {
                found.push(Finding::new(file.at(number), format!("`{mark}` is left here"), DO_IT));
            }
            for stub in STUBS.iter().map(join).filter(|stub| line.contains(stub)) {
                found.push(Finding::new(file.at(number), format!("a stub `{stub}`"), DO_IT));
            }
            for off in SWITCHED_OFF.iter().map(join).filter(|off| line.contains(off)) {
                let what = format!("a test is switched off with `{off}`");
                found.push(Finding::new(file.at(number), what, MEND_IT));
            }
        }
    }
    found
}

fn join((head, tail): &(&str, &str)) -> String {
    [*head, *tail].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_found_once() {
        for mark in MARKS.iter().chain(STUBS).chain(SWITCHED_OFF).map(join) {
            let house = House::of(&[("a.rs", &format!("//! x\n// {mark} later\n"))]);
            let found = check(&house);
            assert_eq!(found.len(), 1, "{mark}: {found:?}");
            assert_eq!(found[0].at, "a.rs:2");
        }
    }

    #[test]
    fn other_files_and_longer_words_are_left_alone() {
        let mark = join(&MARKS[0]);
        let house = House::of(&[("a.bin", &mark), ("a.rs", &format!("{mark}S are many"))]);
        assert_eq!(check(&house), []);
    }
}
