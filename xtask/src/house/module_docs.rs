//! Rule: every Rust file opens with `//!`: what it is, what it leaves to others, one law.

use super::{Finding, House};

const INSTEAD: &str = "begin the file with `//!` lines: what this is, what it leaves to others, \
                       one law it keeps";

/// Finds files that open with anything else; folders named `generated` are nobody's prose.
pub fn check(house: &House) -> Vec<Finding> {
    house
        .rust()
        .filter(|file| !file.path.split('/').any(|part| part == "generated"))
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| Finding::new(file.at(1), "the file says nowhere what it is", INSTEAD))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_module_docs_is_found_tests_too() {
        let house = House::of(&[
            ("a.rs", "//! What a is.\n"),
            ("a/tests.rs", "use super::*;\n"),
            ("generated/b.rs", "pub struct B;\n"),
            ("c.py", "import os\n"),
        ]);
        let at: Vec<String> = check(&house).into_iter().map(|finding| finding.at).collect();
        assert_eq!(at, ["a/tests.rs:1"]);
    }
}
