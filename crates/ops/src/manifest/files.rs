//! The files of a manifest: which, what is in them, and the files that these name.
//!
//! Law: files are read, never written, and an environment variable is put in only where the user
//! asked for that.

use crate::error::OpError;
use danube_core::manifest::{self, Manifest};
use danube_wire::proto::control::ManifestFile;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest manifest, in bytes; the broker takes no more in one request.
const BYTES_MAX: u64 = 12 << 20;

/// Where a manifest comes from.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct ManifestArgs {
    /// The manifest: a file, a directory of .yml, .yaml and .json files, or - for stdin
    #[arg(short, long, value_name = "FILE", required = true)]
    #[serde(default, skip)]
    file: Vec<PathBuf>,
    /// The manifest as text, for callers that have no files
    #[arg(skip)]
    #[serde(default)]
    manifest: Option<String>,
    /// Put environment variables in, written as ${NAME}
    #[arg(long)]
    #[serde(default, skip)]
    env: bool,
    /// Whose manifest it is [default: the one it names, else apply]
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub(super) owner: Option<String>,
}

/// A manifest, read.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) files: Vec<ManifestFile>,
    pub(super) definitions: HashMap<String, String>,
}

impl ManifestArgs {
    /// Reads all of it.
    ///
    /// # Errors
    /// Which file cannot be read, or which variable is not set.
    pub(super) fn read(&self) -> Result<Files, OpError> {
        let mut read = Files::default();
        if let Some(text) = &self.manifest {
            read.files.push(ManifestFile { name: "manifest".into(), text: text.clone() });
            return Ok(read);
        }
        if self.file.is_empty() {
            return Err(OpError::usage("no manifest is given").help("give its text in `manifest`"));
        }
        for path in &self.file {
            for path in expand(path)? {
                self.read_one(&path, &mut read)?;
            }
        }
        Ok(read)
    }

    fn read_one(&self, path: &Path, read: &mut Files) -> Result<(), OpError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let text = if is_stdin { stdin()? } else { contents(path, &name)? };
        let text = if self.env { substitute(&text, &name)? } else { text };
        // What cannot be read is told by the broker, with everything else that is wrong.
        let named = manifest::read(&name, &text).map(|documents| Manifest::files(&documents));
        let home = path.parent().filter(|_| !is_stdin).unwrap_or(Path::new(""));
        for file in named.unwrap_or_default() {
            if let std::collections::hash_map::Entry::Vacant(entry) =
                read.definitions.entry(file.clone())
            {
                entry.insert(contents(&home.join(&file), &file)?);
            }
        }
        read.files.push(ManifestFile { name, text });
        Ok(())
    }
}

/// The files that a path stands for.
fn expand(path: &Path) -> Result<Vec<PathBuf>, OpError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let cannot = |error: std::io::Error| {
        OpError::usage(format!("directory `{}` cannot be read: {error}", path.display()))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(cannot)? {
        let file = entry.map_err(cannot)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yml" | "yaml" | "json")) {
            found.push(file);
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(OpError::usage(format!(
            "directory `{}` has no file that ends in .yml, .yaml or .json",
            path.display()
        ))),
        false => Ok(found),
    }
}

fn contents(path: &Path, name: &str) -> Result<String, OpError> {
    let cannot = |why: String| OpError::usage(format!("file `{name}` cannot be read: {why}"));
    let len = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
    if len > BYTES_MAX {
        return Err(cannot(format!("it has {len} bytes; at most {BYTES_MAX} are taken")));
    }
    std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))
}

fn stdin() -> Result<String, OpError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| OpError::usage(format!("stdin cannot be read: {error}")))?;
    match text.len() as u64 > BYTES_MAX {
        true => Err(OpError::usage(format!("stdin has more than {BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

/// `${NAME}` replaced by the variable of that name.
fn substitute(text: &str, file: &str) -> Result<String, OpError> {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        done.push_str(before);
        let Some(end) = after.find('}') else { break };
        let name = &after[2..end];
        let value = std::env::var(name).map_err(|_| {
            let line = text.len() - rest.len() + start;
            let line = text[..line].matches('\n').count() + 1;
            OpError::usage(format!("{file}:{line}: variable `{}` is not set", name.escape_debug()))
        })?;
        done.push_str(&value);
        rest = &after[end + 1..];
    }
    done.push_str(rest);
    Ok(done)
}
