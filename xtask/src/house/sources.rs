//! What the rules look at: the text files of the checkout and what cargo says of its packages.
//!
//! Files are those that git tracks or would track; what is ignored is nobody's business. A test
//! makes a house from a few invented files.

use crate::ground::Ground;
use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use xshell::cmd;

/// A text file: path from the top with `/`, and content.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// As in `crates/core/src/lib.rs`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl TextFile {
    /// Lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// `path:line`, as editors read it.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }
}

/// A package of a workspace of ours, as far as the rules care.
#[derive(Debug, Clone, Default)]
pub struct Package {
    /// As in its manifest.
    pub name: String,
    /// The manifest's path from the top.
    pub manifest: String,
    /// Names of what it depends on, and whether that is for what ships (not only tests).
    pub dependencies: Vec<(String, bool)>,
    /// Names of dependencies that point into a folder rather than to a published crate.
    pub local: Vec<String>,
}

/// A published package that the product is built from on this kind of machine.
#[derive(Debug, Clone)]
pub struct Foreign {
    /// `name version`.
    pub id: String,
    /// Name alone.
    pub name: String,
    /// SPDX expression, as its manifest has it.
    pub licence: Option<String>,
}

/// Everything a rule may look at.
#[derive(Debug, Default)]
pub struct House {
    /// Text files, sorted by path.
    pub files: Vec<TextFile>,
    /// Packages of the product's workspace.
    pub packages: Vec<Package>,
    /// Packages of the satellites' workspaces.
    pub satellites: Vec<Package>,
    /// What the product is built from.
    pub foreign: Vec<Foreign>,
}

impl House {
    /// Reads the checkout.
    ///
    /// # Errors
    /// When git or cargo cannot say what there is.
    pub fn read(ground: &Ground) -> Result<House> {
        let shell = ground.shell()?;
        let listed = cmd!(shell, "git ls-files -z --cached --others --exclude-standard")
            .quiet()
            .read()
            .context("the house rules look at what git tracks; is this a git checkout?")?;
        let mut files: Vec<TextFile> = listed
            .split_terminator('\0')
            .filter_map(|path| {
                // Deleted in the tree but not yet in the index, or not text: nothing to judge.
                let text = std::fs::read_to_string(ground.root.join(path)).ok()?;
                Some(TextFile { path: path.to_string(), text })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));

        let host = cmd!(shell, "rustc --print host-tuple").quiet().read()?;
        let whole = MetadataCommand::new()
            .manifest_path(ground.root.join("Cargo.toml"))
            .other_options(["--locked".to_string(), "--filter-platform".to_string(), host])
            .exec()
            .context("cargo cannot read the workspace; is Cargo.lock up to date?")?;
        let mut satellites = Vec::new();
        for folder in ground.satellites() {
            let metadata = MetadataCommand::new()
                .manifest_path(folder.join("Cargo.toml"))
                .no_deps()
                .exec()
                .with_context(|| format!("cargo cannot read `{}`", folder.display()))?;
            satellites.extend(packages_of(&metadata, ground));
        }
        Ok(House {
            files,
            packages: packages_of(&whole, ground),
            satellites,
            foreign: foreign(&whole),
        })
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Every file whose path ends in `.rs`.
    pub fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// A house of a few invented files, for the rules' tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> House {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: (*path).to_string(),
            text: (*text).to_string(),
        };
        House { files: files.iter().map(file).collect(), ..House::default() }
    }
}

fn packages_of(metadata: &Metadata, ground: &Ground) -> Vec<Package> {
    let from_top = |path: &std::path::Path| {
        path.strip_prefix(&ground.root).unwrap_or(path).to_string_lossy().replace('\\', "/")
    };
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| Package {
            name: package.name.to_string(),
            manifest: from_top(package.manifest_path.as_std_path()),
            dependencies: package
                .dependencies
                .iter()
                .map(|one| (one.name.clone(), one.kind != DependencyKind::Development))
                .collect(),
            local: package
                .dependencies
                .iter()
                .filter(|one| one.path.is_some())
                .map(|one| one.name.clone())
                .collect(),
        })
        .collect()
}

fn foreign(metadata: &Metadata) -> Vec<Foreign> {
    let Some(resolve) = &metadata.resolve else { return Vec::new() };
    metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some())
        .filter(|package| resolve.nodes.iter().any(|node| node.id == package.id))
        .map(|package| Foreign {
            id: format!("{} {}", package.name, package.version),
            name: package.name.to_string(),
            licence: package.license.clone(),
        })
        .collect()
}
