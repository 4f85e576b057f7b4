//! The `DANUBE_*` variables of the configuration.
//!
//! The variable of a key is its name in capitals after `DANUBE_`, and the one of a key in a
//! section has `__` between the two: `DANUBE_STORAGE__CACHE_BYTES`. Variables of client commands
//! are left alone, and unknown ones are reported but no error, unless they name a section: then
//! they can only be a misspelt key.

use super::CONFIG_FILE_VARIABLE;
use super::keys::{KEYS, Key, Kind, PREFIX, variable_of};
use super::layer::{Layer, Source};
use crate::failure::Failure;
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables of client commands, or the beginnings of their names.
const CLIENT_PREFIXES: [&str; 4] =
    ["DANUBE_ADMIN_", "DANUBE_SERVICE_ADDR", "DANUBE_MCP_", "DANUBE_JWT_"];

/// What the environment says.
#[derive(Debug, Default)]
pub struct Environment {
    /// One source for each variable that sets a key.
    pub sources: Vec<Source>,
    /// The file named by `DANUBE_CONFIG_FILE`.
    pub config_file: Option<PathBuf>,
    /// Variables that mean nothing to any command, sorted.
    pub unknown: Vec<String>,
}

/// Sorts the variables that start with `DANUBE_`.
///
/// # Errors
/// [`Exit::Usage`](crate::failure::Exit::Usage), naming the variable, for a value that does not
/// fit its key and for an unknown key of a section.
pub fn read(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Environment, Failure> {
    let mut environment = Environment::default();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if name == CONFIG_FILE_VARIABLE {
            environment.config_file = Some(value.into());
        } else if let Some(key) = KEYS.iter().find(|key| variable_of(key.name) == name) {
            environment.sources.push(source(name, key, &value)?);
        } else if let Some(section) = section_of(name) {
            return Err(unknown_key(name, section));
        } else if !CLIENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            environment.unknown.push(name.to_owned());
        }
    }
    environment.unknown.sort();
    Ok(environment)
}

/// The section a variable names, if there is such a section.
fn section_of(name: &str) -> Option<&'static str> {
    let (section, _) = name.strip_prefix(PREFIX)?.split_once("__")?;
    let sections = KEYS.iter().filter_map(|key| key.name.split_once('.').map(|(first, _)| first));
    sections.into_iter().find(|known| known.to_uppercase() == section)
}

fn unknown_key(name: &str, section: &str) -> Failure {
    let known = KEYS.iter().map(|key| key.name).filter(|key| key.starts_with(section));
    let known: Vec<String> = known.map(variable_of).collect();
    Failure::usage(format!("environment variable {name} names no key of section `{section}`"))
        .help(format!("unset it, or use one of {}", known.join(", ")))
}

fn source(name: &str, key: &Key, value: &OsStr) -> Result<Source, Failure> {
    let refuse = |expected: &str| {
        Failure::usage(format!(
            "environment variable {name} is `{}`, not {expected}",
            value.to_string_lossy().escape_debug()
        ))
    };
    let text = value.to_str().ok_or_else(|| refuse("UTF-8 text"))?;
    let value = match key.kind {
        Kind::Text => json!(text),
        Kind::Number => json!(text.parse::<u64>().map_err(|_| refuse("a whole number"))?),
        Kind::Truth => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => json!(true),
            "false" | "0" => json!(false),
            _ => return Err(refuse("`true` or `false`")),
        },
        Kind::List => {
            json!(text.split(',').map(str::trim).filter(|s| !s.is_empty()).collect::<Vec<_>>())
        }
    };
    let document = match key.name.split_once('.') {
        Some((section, field)) => json!({ section: { field: value } }),
        None => json!({ key.name: value }),
    };
    let layer: Layer = serde_json::from_value::<Layer>(document)
        .map_err(|_| refuse("in the range of this key"))?;
    Ok(Source::new(format!("environment variable {name}"), layer))
}
