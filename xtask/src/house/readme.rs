//! Rule: README has the two commands of the house in fenced blocks, and CI runs the second.
//!
//! That the tour works is proved by the step `newcomer`; here is only that it exists and is
//! well formed.

use super::{Finding, House};
use crate::step::tour;

/// The two commands, as a newcomer pastes them.
const COMMANDS: &[&str] = &["cargo run --release -- start", "cargo xtask verify"];
const FENCED: &str = "put it alone on a line of a fenced ```sh block";
const TOUR: &str = "mark its blocks ```sh tour terminal=N, see xtask/src/step/tour.rs";
const CI: &str = "let .ci/run call exactly `cargo xtask verify`";

/// Finds what is missing from README and `.ci/run`.
pub fn check(house: &House) -> Vec<Finding> {
    let text = |path: &str| house.file(path).map_or("", |file| file.text.as_str());
    let mut found = Vec::new();
    let fenced = fenced_lines(text("README.md"));
    for command in COMMANDS.iter().filter(|command| !fenced.contains(*command)) {
        found.push(Finding::new("README.md", format!("it does not show `{command}`"), FENCED));
    }
    match tour::read(text("README.md")) {
        Ok(blocks) if blocks.is_empty() => {
            found.push(Finding::new("README.md", "it has no tour", TOUR));
        }
        Ok(_) => {}
        Err(error) => found.push(Finding::new("README.md", error.to_string(), TOUR)),
    }
    if !text(".ci/run").lines().any(|line| line == "cargo xtask verify") {
        found.push(Finding::new(".ci/run", "it does not run README's test command", CI));
    }
    found
}

fn fenced_lines(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOUR_AND_VERIFY: &str = "```sh tour terminal=1 until=\"ready\"\n\
        cargo run --release -- start\n```\n```sh\ncargo xtask verify\n```\n";

    #[test]
    fn a_whole_readme_passes() {
        let ci = "#!/usr/bin/env bash\ncargo xtask verify\n";
        assert_eq!(check(&House::of(&[("README.md", TOUR_AND_VERIFY), (".ci/run", ci)])), []);
    }

    #[test]
    fn commands_in_prose_do_not_count() {
        let house = House::of(&[("README.md", "cargo run --release -- start\n")]);
        assert_eq!(check(&house).len(), 4, "two commands, the tour and CI");
    }
}
