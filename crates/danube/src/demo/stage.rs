//! How the story is shown: headings, words, what is typed and what comes out, with time to read.
//!
//! Law: pauses and colours only where a person watches; what is shown of an operation is what the
//! operation said.

use super::temporary::TemporaryBroker;
use crate::failure::Failure;
use crate::output;
use clap::Command;
use danube_ops::{Reply, Session};
use std::io::IsTerminal;
use std::time::Duration;

/// Time to read a line of words, a command, and what came out of it.
const READ: Duration = Duration::from_millis(450);
/// Time between two things that happen.
const BEAT: Duration = Duration::from_millis(180);

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const RESET: &str = "\x1b[0m";

/// How something that happens turns out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Good,
    Bad,
}

/// Where the story is shown, and the way to its broker for what is typed.
pub struct Stage {
    is_watched: bool,
    has_colours: bool,
    session: Session,
}

impl Stage {
    /// For the terminal that this process has, if it has one.
    pub fn set(fast: bool, broker: &TemporaryBroker) -> Stage {
        let is_terminal = std::io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let admin = broker.addresses().admin;
        Stage {
            is_watched: is_terminal && !fast,
            has_colours: is_terminal && !no_colour,
            session: Session::new(format!("http://{admin}")),
        }
    }

    /// Begins a part of the story.
    pub async fn heading(&self, text: &str) -> Result<(), Failure> {
        output::line("")?;
        output::line(self.coloured(BOLD, text))?;
        self.pause(READ).await;
        Ok(())
    }

    /// Tells something, in a line or two short enough for any terminal.
    pub async fn say(&self, text: &str) -> Result<(), Failure> {
        output::line(text)?;
        self.pause(READ).await;
        Ok(())
    }

    /// Shows something that happens: to whom, with what, and how it turns out.
    pub async fn happens(
        &self,
        who: &str,
        what: &str,
        turn: Turn,
        how: &str,
    ) -> Result<(), Failure> {
        let colour = if turn == Turn::Good { GREEN } else { RED };
        output::line(format!("    {who:<10}{what:<18}{}", self.coloured(colour, how)))?;
        self.pause(BEAT).await;
        Ok(())
    }

    /// Types `danube ctl` with these words, does it, and shows what it says.
    pub async fn ctl(&self, words: &str) -> Result<Reply, Failure> {
        let typed = format!("$ danube ctl {words}");
        output::line(format!("  {}", self.coloured(BOLD, &typed)))?;
        self.pause(READ).await;
        let (words, as_json) = match words.strip_suffix(" --output json") {
            Some(words) => (words, true),
            None => (words, false),
        };
        let reply = self.ask(words).await?;
        let text = if as_json { format!("{:#}", reply.data) } else { reply.text.clone() };
        for line in text.lines() {
            output::line(format!("    {}", self.coloured(DIM, line)))?;
        }
        self.pause(READ).await;
        Ok(reply)
    }

    /// The same without showing it.
    pub async fn ask(&self, words: &str) -> Result<Reply, Failure> {
        let line = std::iter::once("ctl").chain(words.split_whitespace());
        let matches = danube_ops::commands(Command::new("ctl")).try_get_matches_from(line);
        let call = matches.and_then(|matches| danube_ops::find(&matches));
        let call = call.map_err(|error| Failure::refused(error.to_string()))?;
        Ok(call.run(&self.session).await?)
    }

    fn coloured(&self, colour: &str, text: &str) -> String {
        if self.has_colours { format!("{colour}{text}{RESET}") } else { text.to_owned() }
    }

    async fn pause(&self, pause: Duration) {
        if self.is_watched {
            tokio::time::sleep(pause).await;
        }
    }
}
