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
//! In the pages of the book (step `book`) every block of a language that runs is a block of the tour,
//! in terminal 1 if it says none, and what cannot run says why:
//!
//! ````text
//! ```sh                                   runs to its end, which must be a success
//! ```python                               the same, as a file
//! ```text shows                           what terminal 1 must have shown
//! ```console not-run="it takes minutes"   is not run
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
    let marked = |_: usize, _: &str, rest: &str| {
        Ok(rest.strip_prefix("tour").map(|marks| Marks { text: marks.to_owned(), terminal: None }))
    };
    read_chosen(readme, marked)
}

/// Languages that a page of the book shows and nobody runs here.
const SHOWN: [&str; 11] =
    ["text", "json", "yaml", "yml", "toml", "ini", "promql", "proto", "rust", "", "dockerfile"];

/// The blocks of a page of the book.
///
/// # Errors
/// As [`read`], and when a block neither runs nor says why.
pub fn read_page(page: &str) -> Result<Vec<Block>> {
    read_chosen(page, |line, language, rest| {
        // What follows a comma is for who compiles it, as in `rust,no_run`.
        let language = language.split(',').next().unwrap_or(language);
        let runs = ["sh", "python"].contains(&language);
        let shows = language == "text" && (rest == "shows" || rest.starts_with("shows "));
        if language == "console" {
            match rest.split_once("not-run=\"") {
                Some((_, why)) if why.len() > 3 => return Ok(None),
                _ => bail!("the block on line {line} is not run and does not say why"),
            }
        }
        if !runs && !shows {
            if !SHOWN.contains(&language) {
                bail!("the block on line {line} has the language `{language}`, which nobody runs");
            }
            return Ok(None);
        }
        let text = rest.strip_prefix("shows").unwrap_or(rest).to_owned();
        Ok(Some(Marks { text, terminal: Some(1) }))
    })
}

/// What a block says of itself.
struct Marks {
    text: String,
    /// The terminal of a block that says none.
    terminal: Option<u8>,
}

fn read_chosen(
    text: &str,
    choose: impl Fn(usize, &str, &str) -> Result<Option<Marks>>,
) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
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
        let Some(marks) = choose(index + 1, language, rest)? else { continue };
        let (terminal, until) = read_marks(index + 1, marks)?;
        let act = match language {
            "sh" => Act::Run { script: body.join("\n"), until },
            // As a file, so that errors name its lines.
            "python" => Act::Run { script: python(&body), until },
            "text" => Act::Expect(body.into_iter().filter(|line| !line.is_empty()).collect()),
            other => {
                bail!("a block of the tour is `sh` or `text`, line {} is `{other}`", index + 1)
            }
        };
        blocks.push(Block { line: index + 1, terminal, act });
    }
    Ok(blocks)
}

/// A script that runs a Python program.
fn python(body: &[String]) -> String {
    format!("cat >example.py <<'THE_END'\n{}\nTHE_END\npython example.py", body.join("\n"))
}

/// Reads ` terminal=1 until="some words"`.
fn read_marks(line: usize, marks: Marks) -> Result<(u8, Option<String>)> {
    let mut terminal = marks.terminal;
    let mut until = None;
    let mut rest = marks.text.trim();
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
    fn a_page_of_the_book_runs_all_that_can_run() {
        let page = "```sh\na\n```\n```text\nnot looked at\n```\n```text shows\nb\n```\n\
            ```python\nprint(1)\n```\n```console not-run=\"needs a cluster\"\nkubectl\n```\n";
        let blocks = read_page(page).expect("well formed");
        assert_eq!(blocks.len(), 3);
        assert_eq!(blocks[1], Block { line: 7, terminal: 1, act: Act::Expect(vec!["b".into()]) });
        let Act::Run { script, .. } = &blocks[2].act else { panic!("it runs") };
        assert!(script.contains("print(1)\nTHE_END\npython example.py"), "{script}");
        for (bad, says) in [
            ("```console\nx\n```\n", "does not say why"),
            ("```bash\nx\n```\n", "the language `bash`"),
            ("```sh unitl=\"x\"\n```\n", "line 1 marks"),
        ] {
            let error = read_page(bad).expect_err("malformed").to_string();
            assert!(error.contains(says), "{error}");
        }
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
