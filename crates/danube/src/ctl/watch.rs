//! `--watch`: the same question again and again, printed when the answer is another one.
//!
//! Law: only what changes nothing is asked more than once.

use super::{Format, print};
use crate::failure::Failure;
use crate::signals::Signals;
use clap::ArgMatches;
use danube_ops::{Effect, Reply, Session};
use std::io::IsTerminal;
use std::time::Duration;

/// Clears a terminal and puts the cursor to its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub(super) async fn run(
    matches: &ArgMatches,
    session: &Session,
    format: Format,
    seconds: u64,
) -> Result<(), Failure> {
    let mut shown = None;
    let mut signals = Signals::listen()?;
    loop {
        let call = danube_ops::find(matches).map_err(|error| Failure::usage(error.to_string()))?;
        if call.op.spec.effect != Effect::Read {
            return Err(Failure::usage("--watch is for verbs that change nothing")
                .help("leave it out, or watch a verb such as `topics describe`"));
        }
        let Reply { data, text, .. } = call.run(session).await?;
        if shown.as_ref() != Some(&data) {
            if std::io::stdout().is_terminal() {
                eprint!("{CLEAR}");
            }
            print(format, &data, &text)?;
            shown = Some(data);
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
            _ = signals.next() => return Ok(()),
        }
    }
}
