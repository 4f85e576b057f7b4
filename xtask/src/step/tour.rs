//! README's tour, as the step `newcomer` reads it.
//!
//! The blocks of the tour are fenced and say so to a machine without troubling a person:
//!
//! ````text
//! ```sh tour terminal=1 until="ready"     starts, and the tour goes on when a line has `ready`
//! ```sh tour terminal=2                   runs to its end, which must be a success
//! ```text tour terminal=2                 what that terminal must have shown: each line, in
//!                                         order, as a part of a line of its output
//! ````
//!
//! A block for a terminal where something still runs waits until that has ended, as a person
//! would. Law: the text of a block is run as it stands.

use anyhow::{Result, bail};

/// A block of the tour.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Line of README on which it opens.
    pub line: usize,
    /// Which of the reader's terminals.
    pub terminal: u8,
    /// What to do there.
    pub act: Act,
}

/// What a block is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Act {
    /// Paste this; go on when a line of the output has `until`, or at the end if there is none.
    Run {
        /// As it stands in README.
        script: String,
        /// What the reader waits for.
        until: Option<String>,
    },
    /// See these lines.
    Expect(Vec<String>),
}

/// The blocks of the tour in `readme`.
///
/// # Errors
/// When a block does not say its terminal, says something unknown, or never ends.
pub fn read(readme: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut body = Vec::new();
        loop {
            match lines.next() {
                Some((_, "```")) => break,
                Some((_, inside)) => body.push(inside.to_string()),
                None => bail!("the block opened on line {} never ends", index + 1),
            }
        }
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        let Some(marks) = rest.strip_prefix("tour") else { continue };
        let (terminal, until) = read_marks(index + 1, marks)?;
        let act = match language {
            "sh" => Act::Run { script: body.join("\n"), until },
            "text" => Act::Expect(body.into_iter().filter(|line| !line.is_empty()).collect()),
            other => {
                bail!("a block of the tour is `sh` or `text`, line {} is `{other}`", index + 1)
            }
        };
        blocks.push(Block { line: index + 1, terminal, act });
    }
    Ok(blocks)
}

/// Reads ` terminal=1 until="some words"`.
fn read_marks(line: usize, marks: &str) -> Result<(u8, Option<String>)> {
    let mut terminal = None;
    let mut until = None;
    let mut rest = marks.trim();
    while !rest.is_empty() {
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_once(' ').unwrap_or((value, "")),
        };
        match key {
            "terminal" => terminal = value.parse().ok(),
            "until" => until = Some(value.to_string()),
            other => bail!("line {line} marks a block of the tour with the unknown `{other}`"),
        }
        rest = after.trim();
    }
    match terminal {
        Some(terminal) => Ok((terminal, until)),
        None => bail!("the block of the tour on line {line} does not say `terminal=N`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_with_their_marks() {
        let readme = "# x\n```sh tour terminal=1 until=\"danube ready\"\na\nb\n```\ntext\n\
            ```sh\nnot ours\n```\n```sh tour terminal=2\nc\n```\n```text tour terminal=2\nd\n\n```\n";
        let run = |script: &str, until: Option<&str>| Act::Run {
            script: script.to_string(),
            until: until.map(String::from),
        };
        assert_eq!(
            read(readme).expect("well formed"),
            [
                Block { line: 2, terminal: 1, act: run("a\nb", Some("danube ready")) },
                Block { line: 10, terminal: 2, act: run("c", None) },
                Block { line: 13, terminal: 2, act: Act::Expect(vec!["d".to_string()]) },
            ]
        );
    }

    #[test]
    fn a_bad_block_is_refused_with_its_line() {
        for (bad, says) in [
            ("```sh tour\n```\n", "line 1 does not say"),
            ("\n```sh tour terminal=1 unitl=\"x\"\n```\n", "line 2 marks"),
            ("```py tour terminal=1\n```\n", "line 1 is `py`"),
            ("```sh tour terminal=1\n", "line 1 never ends"),
        ] {
            let error = read(bad).expect_err("malformed").to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
