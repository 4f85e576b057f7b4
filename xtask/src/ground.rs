//! Where things are: the checkout and the folder that builds go to.
//!
//! Law: the checkout is only read through here; whatever a step makes goes under
//! [`Ground::target`].

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;
use std::path::PathBuf;
use xshell::Shell;

/// The checkout and its build folder.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Top of the checkout.
    pub root: PathBuf,
    /// Cargo's target folder, shared by every step.
    pub target: PathBuf,
}

impl Ground {
    /// Finds the checkout this xtask was started from.
    ///
    /// # Errors
    /// When cargo did not start us, or cannot read the workspace.
    pub fn find() -> Result<Ground> {
        // The value at run time: with a build folder shared by two checkouts, the one fixed at
        // compile time may belong to the other.
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("xtask must be started by cargo: run `cargo xtask`")?;
        let root = PathBuf::from(own).parent().context("xtask has a parent folder")?.to_path_buf();
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cannot read the workspace at the top of the checkout")?;
        Ok(Ground { root, target: metadata.target_directory.into_std_path_buf() })
    }

    /// A shell that stands at the top of the checkout, for commands that must not write there.
    ///
    /// # Errors
    /// When the current folder cannot be read.
    pub fn shell(&self) -> Result<Shell> {
        let shell = Shell::new()?;
        shell.change_dir(&self.root);
        shell.set_var("CARGO_TARGET_DIR", &self.target);
        shell.set_var("CARGO_TERM_COLOR", color());
        // Python would leave its compiled files beside the sources.
        shell.set_var("PYTHONDONTWRITEBYTECODE", "1");
        Ok(shell)
    }

    /// The satellite workspaces (own lock file, only published crates) that exist.
    pub fn satellites(&self) -> Vec<PathBuf> {
        let Ok(folders) = std::fs::read_dir(self.root.join("interop")) else { return Vec::new() };
        let mut found: Vec<PathBuf> = folders
            .flatten()
            .map(|folder| folder.path())
            .filter(|folder| folder.join("Cargo.toml").is_file())
            .collect();
        found.sort();
        found
    }
}

fn color() -> &'static str {
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) { "always" } else { "never" }
}
