//! `danube doctor`: what is in a stopped data directory, what is wrong with it, and, with
//! `--repair`, what can be done.
//!
//! The looking and the repairing are the log's own (`danube_store::doctor`); this prints them.
//!
//! Law: exit code 0 says that everything promised is there; 1 that something was lost or is
//! damaged, or that the directory cannot be looked at; 2 that the command was wrong.

use crate::failure::Failure;
use crate::output::{self, Format};
use danube_broker::CATALOG_FILE_NAME;
use danube_ops::view::Table;
use danube_store::OpenError;
use danube_store::disk::{Disk, OsDisk};
use danube_store::doctor::{self, Lost, Problem, Repaired, Report};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Explain the files of a stopped data directory, find damage, and repair what can be repaired
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The data directory of a broker, or a directory with its journal
    #[arg(value_name = "DATA_DIR")]
    data_dir: PathBuf,
    /// Repair what can be repaired; everything that changes is kept in `quarantine/` first
    #[arg(long)]
    repair: bool,
    /// How to print the report
    #[arg(long, value_enum, default_value = "text")]
    output: Format,
}

/// Looks, repairs if asked to, and prints what was found.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage) when it is no data directory,
/// [`Exit::Refused`](crate::failure::Exit::Refused) when it is in use, cannot be read, or has
/// damage.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let place = Place::find(&arguments.data_dir)?;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    if arguments.repair {
        let repaired = doctor::repair(&disk, &place.journal).map_err(refused)?;
        match arguments.output {
            Format::Text => output::line(repaired_text(&place, &repaired))?,
            Format::Json => output::json(&repaired_document(&place, &repaired))?,
        }
        return verdict(&repaired.before, &repaired.after, true);
    }
    let report = doctor::examine(&disk, &place.journal).map_err(refused)?;
    match arguments.output {
        Format::Text => output::line(text(&place, &report))?,
        Format::Json => output::json(&document(&place, &report))?,
    }
    verdict(&report, &report, false)
}

fn verdict(before: &Report, after: &Report, repaired: bool) -> Result<(), Failure> {
    let damage = |report: &Report| report.problems.iter().filter(|it| it.is_damage).count();
    let (found, left) = (damage(before), damage(after));
    match (found, left, repaired) {
        (0, 0, _) => Ok(()),
        (_, 0, true) => Err(Failure::refused(format!("damage was found and repaired in {}", places(found)))
            .help("what is lost is listed above; start the broker, and keep `quarantine/` until you are sure")),
        (_, left, true) => Err(Failure::refused(format!("damage that cannot be repaired is left in {}", places(left)))
            .help("restore the files named above from a copy, or delete the topics that they stop")),
        (found, _, false) => Err(Failure::refused(format!("damage was found in {}", places(found)))
            .help("run it again with --repair, after making a copy of the directory if you can")),
    }
}

fn places(count: usize) -> String {
    format!("{count} {}", if count == 1 { "place" } else { "places" })
}

fn refused(error: OpenError) -> Failure {
    match &error {
        OpenError::Locked { .. } => Failure::refused(error.to_string())
            .help("stop the broker first; a doctor does not operate on the living"),
        _ => Failure::refused(error.to_string()),
    }
}

/// Where the parts of a data directory are.
struct Place {
    data_dir: PathBuf,
    journal: PathBuf,
    /// The catalog's file and its size.
    catalog: Option<(PathBuf, u64)>,
}

impl Place {
    fn find(data_dir: &Path) -> Result<Place, Failure> {
        if !data_dir.is_dir() {
            return Err(Failure::usage(format!("`{}` is not a directory", data_dir.display()))
                .help("give the --data-dir that the broker was started with"));
        }
        let below = data_dir.join("wal");
        let journal = if below.is_dir() { below } else { data_dir.to_path_buf() };
        let is_journal = std::fs::read_dir(&journal).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name == "LOCK" || name.starts_with("journal") || name.starts_with("checkpoint.")
            })
        });
        if !is_journal {
            return Err(Failure::usage(format!("`{}` has no journal", data_dir.display())).help(
                "give the --data-dir that the broker was started with, or its --wal-dir if it had one",
            ));
        }
        let catalog = data_dir.join("raft").join(CATALOG_FILE_NAME);
        let catalog = catalog.metadata().ok().map(|file| (catalog, file.len()));
        Ok(Place { data_dir: data_dir.to_path_buf(), journal, catalog })
    }

    fn catalog_text(&self) -> String {
        match &self.catalog {
            Some((path, bytes)) => {
                format!(
                    "catalog   {} ({bytes} bytes): topics, subscriptions, policies; not looked into",
                    path.display()
                )
            }
            None => format!(
                "catalog   not in {}; without it the log does not know its topics' names",
                self.data_dir.display()
            ),
        }
    }
}

fn text(place: &Place, report: &Report) -> String {
    let mut lines = vec![format!("journal   {}", place.journal.display()), place.catalog_text()];
    let mut files = Table::new(&["file", "bytes", "what it is"]);
    for file in &report.files {
        let name = file.path.strip_prefix(&place.journal).unwrap_or(&file.path);
        files.row([name.display().to_string(), file.bytes.to_string(), file.what.clone()]);
    }
    lines.push(format!("\n{}", files.render()));
    let mut topics = Table::new(&["topic", "offsets", "segments", "subscriptions", "state"]);
    for topic in &report.topics {
        topics.row([
            topic.id.to_string(),
            format!("{} to {}", topic.start, topic.next),
            topic.segments.to_string(),
            topic.subscriptions.to_string(),
            topic
                .stopped
                .as_ref()
                .map_or_else(|| "whole".to_owned(), |why| format!("stopped: {why}")),
        ]);
    }
    lines.push(format!("\n{}", topics.render()));
    lines.push(String::new());
    lines.push(problems_text(report));
    lines.join("\n")
}

fn problems_text(report: &Report) -> String {
    if report.problems.is_empty() {
        return "nothing is wrong".into();
    }
    let problems: Vec<String> = report.problems.iter().map(problem_text).collect();
    problems.join("\n")
}

fn problem_text(problem: &Problem) -> String {
    let kind = if problem.is_damage { "damage" } else { "note" };
    let at = problem.position.map_or_else(String::new, |position| format!(", byte {position}"));
    let mut text =
        format!("{kind}: {}{at}: {}; {}", problem.path.display(), problem.what, problem.means);
    for Lost { topic, first, end } in &problem.lost {
        text += &format!("\n  lost: topic {topic}, offsets {first} to {}", end.saturating_sub(1));
    }
    text
}

fn repaired_text(place: &Place, repaired: &Repaired) -> String {
    let mut lines = vec!["before:".to_owned(), problems_text(&repaired.before)];
    lines.push("\nrepair:".into());
    if repaired.done.is_empty() {
        lines.push("nothing was changed".into());
    }
    lines.extend(repaired.done.iter().map(|done| format!("done: {done}")));
    lines.extend(repaired.left.iter().map(|left| format!("left: {left}")));
    lines.push("\nafter:".into());
    lines.push(text(place, &repaired.after));
    lines.join("\n")
}

fn document(place: &Place, report: &Report) -> Value {
    let files: Vec<Value> = report
        .files
        .iter()
        .map(|file| json!({ "path": file.path, "bytes": file.bytes, "what": file.what }))
        .collect();
    let topics: Vec<Value> = report
        .topics
        .iter()
        .map(|topic| {
            json!({
                "id": topic.id.0,
                "start": topic.start,
                "next": topic.next,
                "segments": topic.segments,
                "subscriptions": topic.subscriptions,
                "stopped": topic.stopped,
            })
        })
        .collect();
    let problems: Vec<Value> = report
        .problems
        .iter()
        .map(|problem| {
            let lost: Vec<Value> = problem
                .lost
                .iter()
                .map(|lost| json!({ "topic": lost.topic.0, "first": lost.first, "end": lost.end }))
                .collect();
            json!({
                "path": problem.path,
                "position": problem.position,
                "what": problem.what,
                "means": problem.means,
                "lost": lost,
                "is_damage": problem.is_damage,
            })
        })
        .collect();
    json!({
        "journal": place.journal,
        "catalog": place.catalog.as_ref().map(|(path, _)| path),
        "healthy": report.is_healthy(),
        "files": files,
        "topics": topics,
        "problems": problems,
    })
}

fn repaired_document(place: &Place, repaired: &Repaired) -> Value {
    json!({
        "before": document(place, &repaired.before),
        "done": repaired.done,
        "left": repaired.left,
        "after": document(place, &repaired.after),
    })
}
