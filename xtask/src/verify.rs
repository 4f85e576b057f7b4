//! `cargo xtask verify`: runs the steps in order and stops at the first that does not hold.
//!
//! Law: it changes nothing in the tree, and says so itself if it ever does.

use crate::ground::Ground;
use crate::report::{Ending, Report};
use crate::step::{STEPS, Step};
use anyhow::{Result, bail};
use clap::Args;
use std::time::Instant;
use xshell::cmd;

/// What to verify.
#[derive(Args)]
pub struct Options {
    /// Steps to run, in the order of the list; all of them when none is named.
    #[arg(value_name = "STEP")]
    steps: Vec<String>,
    /// Print the steps and stop.
    #[arg(long)]
    list: bool,
    /// Run the steps that follow a failed one too.
    #[arg(long)]
    keep_going: bool,
}

/// Runs what `options` ask for.
///
/// # Errors
/// When a step is unknown or does not hold.
pub fn run(ground: &Ground, options: &Options) -> Result<()> {
    if options.list {
        for step in STEPS {
            println!("{:<16} {}", step.name, step.about);
        }
        return Ok(());
    }
    let chosen = choose(&options.steps)?;
    let before = tree_state(ground)?;
    let mut report = Report::default();
    for step in &chosen {
        if report.failed() && !options.keep_going {
            report.end(step.name, Ending::NotRun);
            continue;
        }
        report.start(step.name, step.about);
        let started = Instant::now();
        let ending = match (step.run)(ground) {
            Ok(()) => Ending::Passed(started.elapsed()),
            Err(error) => Ending::Failed(started.elapsed(), format!("{error:#}")),
        };
        report.end(step.name, ending);
    }
    eprint!("{}", report.summary());
    let after = tree_state(ground)?;
    if before != after {
        bail!(
            "the tree changed while verify ran, and verify must change nothing; `git status` \
             before:\n{before}\nand after:\n{after}"
        );
    }
    if report.failed() {
        bail!("verify failed");
    }
    Ok(())
}

fn choose(names: &[String]) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`; the steps are {}", known.join(", "));
    }
    let chosen = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    Ok(STEPS.iter().filter(chosen).collect())
}

/// What git sees of the tree: which files differ from HEAD or are unknown to it.
fn tree_state(ground: &Ground) -> Result<String> {
    let shell = ground.shell()?;
    Ok(cmd!(shell, "git status --porcelain --untracked-files=all").quiet().read()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_run_in_the_order_of_the_list_whatever_the_order_asked_for() {
        let names: Vec<String> = ["test", "house"].map(String::from).to_vec();
        let chosen: Vec<&str> =
            choose(&names).expect("both exist").iter().map(|step| step.name).collect();
        assert_eq!(chosen, ["house", "test"]);
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_list() {
        let error = choose(&["tset".to_string()]).err().expect("no such step").to_string();
        assert!(error.contains("`tset`") && error.contains("house, fmt, clippy"), "{error}");
    }
}
