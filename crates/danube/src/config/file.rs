//! The YAML file of the configuration.
//!
//! An unknown key is an error: a misspelt one would otherwise be a setting that silently does
//! nothing. The parser names the key and its line.

use super::layer::{Layer, Source};
use crate::failure::Failure;
use std::path::Path;

/// Reads and parses the file; an empty one is a layer that sets nothing.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage), naming the file and, inside it, key and line.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let name = format!("config file `{}`", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("{name} cannot be read: {error}"))
            .help("give the path of a readable YAML file, or start without --config-file")
    })?;
    let layer: Option<Layer> = serde_norway::from_str(&text).map_err(|error| {
        Failure::usage(format!("{name}: {error}"))
            .help("mend or remove the key; a key of a section stands indented under its name")
    })?;
    Ok(Source::new(name, layer.unwrap_or_default()))
}
