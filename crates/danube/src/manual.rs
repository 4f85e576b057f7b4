//! `danube completions` and `danube man`: what shells and `man` read, made from the command line
//! itself.

use crate::failure::Failure;
use clap::Command;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Flags of `danube completions`.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Flags of `danube man`.
#[derive(Debug, clap::Args)]
pub struct Manual {
    /// The directory that the pages are written to; made if missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Prints the script.
///
/// # Errors
/// When stdout cannot be written.
pub fn completions(arguments: &Completions, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "danube", &mut script);
    crate::output::line(String::from_utf8_lossy(&script).trim_end())
}

/// Writes one page for each command and verb.
///
/// # Errors
/// When the directory cannot be written.
pub fn pages(arguments: &Manual, mut command: Command) -> Result<(), Failure> {
    let dir = &arguments.dir;
    std::fs::create_dir_all(dir).map_err(|error| cannot(dir, &error))?;
    command.build();
    write(dir, &command, "danube")
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::refused(format!("`{}` cannot be written: {error}", path.display()))
}

fn write(dir: &Path, command: &Command, name: &str) -> Result<(), Failure> {
    let path = dir.join(format!("{name}.1"));
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command.clone()).title(name).render(&mut page);
    rendered.and_then(|()| std::fs::write(&path, page)).map_err(|error| cannot(&path, &error))?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write(dir, inner, &format!("{name}-{}", inner.get_name()))?;
    }
    Ok(())
}
