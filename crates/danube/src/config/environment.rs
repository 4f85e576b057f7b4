//! The `DANUBE_*` variables of the configuration.
//!
//! The variable of a key is its name in capitals after `DANUBE_`, and the one of a key in a
//! section has `__` between the two: `DANUBE_STORAGE__CACHE_BYTES`. Variables of client commands
//! are left alone, and unknown ones are reported but no error, unless they name a section: then
//! they can only be a misspelt key.

use super::CONFIG_FILE_VARIABLE;
use super::layer::{Layer, Source};
use crate::failure::Failure;
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

const PREFIX: &str = "DANUBE_";

/// Variables of client commands, or the beginnings of their names.
const CLIENT_PREFIXES: [&str; 4] =
    ["DANUBE_ADMIN_", "DANUBE_SERVICE_ADDR", "DANUBE_MCP_", "DANUBE_JWT_"];

/// How the text of a variable becomes a value.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Truth,
    List,
}

/// Every key; a test holds it against [`Layer`].
const KEYS: [(&str, Kind); 24] = [
    ("mode", Kind::Text),
    ("data_dir", Kind::Text),
    ("wal_dir", Kind::Text),
    ("broker_addr", Kind::Text),
    ("admin_addr", Kind::Text),
    ("http_addr", Kind::Text),
    ("advertised_addr", Kind::Text),
    ("auto_create_topics", Kind::Truth),
    ("bootstrap_namespaces", Kind::List),
    ("console", Kind::Text),
    ("log_format", Kind::Text),
    ("dispatch.max_unacked_messages", Kind::Number),
    ("storage.flush_interval_ms", Kind::Number),
    ("storage.flush_max_batch_bytes", Kind::Number),
    ("storage.sync_interval_ms", Kind::Number),
    ("storage.journal_file_bytes", Kind::Number),
    ("storage.cache_bytes", Kind::Number),
    ("policies.max_message_size", Kind::Number),
    ("policies.max_producers_per_topic", Kind::Number),
    ("policies.max_subscriptions_per_topic", Kind::Number),
    ("policies.max_consumers_per_topic", Kind::Number),
    ("policies.max_consumers_per_subscription", Kind::Number),
    ("policies.max_publish_rate", Kind::Number),
    ("policies.max_subscription_dispatch_rate", Kind::Number),
];

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
        } else if let Some((key, kind)) = KEYS.iter().find(|(key, _)| variable_of(key) == name) {
            environment.sources.push(source(name, key, *kind, &value)?);
        } else if let Some(section) = section_of(name) {
            return Err(unknown_key(name, section));
        } else if !CLIENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            environment.unknown.push(name.to_owned());
        }
    }
    environment.unknown.sort();
    Ok(environment)
}

fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_uppercase())
}

/// The section a variable names, if there is such a section.
fn section_of(name: &str) -> Option<&'static str> {
    let (section, _) = name.strip_prefix(PREFIX)?.split_once("__")?;
    let sections = KEYS.iter().filter_map(|(key, _)| key.split_once('.').map(|(first, _)| first));
    sections.into_iter().find(|known| known.to_uppercase() == section)
}

fn unknown_key(name: &str, section: &str) -> Failure {
    let known = KEYS.iter().map(|(key, _)| *key).filter(|key| key.starts_with(section));
    let known: Vec<String> = known.map(variable_of).collect();
    Failure::usage(format!("environment variable {name} names no key of section `{section}`"))
        .help(format!("unset it, or use one of {}", known.join(", ")))
}

fn source(name: &str, key: &str, kind: Kind, value: &OsStr) -> Result<Source, Failure> {
    let refuse = |expected: &str| {
        Failure::usage(format!(
            "environment variable {name} is `{}`, not {expected}",
            value.to_string_lossy().escape_debug()
        ))
    };
    let text = value.to_str().ok_or_else(|| refuse("UTF-8 text"))?;
    let value = match kind {
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
    let document = match key.split_once('.') {
        Some((section, field)) => json!({ section: { field: value } }),
        None => json!({ key: value }),
    };
    let layer: Layer = serde_json::from_value::<Layer>(document)
        .map_err(|_| refuse("in the range of this key"))?;
    Ok(Source::new(format!("environment variable {name}"), layer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_broker::BrokerOptions;
    use figment::Figment;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// The names of all keys of a document, with dots between section and field.
    fn keys_of(document: &Value) -> Vec<String> {
        let mut keys = Vec::new();
        for (key, value) in document.as_object().expect("a layer is a mapping") {
            match value {
                Value::Object(_) => {
                    keys.extend(keys_of(value).iter().map(|field| format!("{key}.{field}")));
                }
                _ => keys.push(key.clone()),
            }
        }
        keys
    }

    #[test]
    fn every_key_has_a_variable() {
        let options = BrokerOptions {
            wal_dir: Some("w".into()),
            advertised_addr: Some("h:1".into()),
            ..BrokerOptions::default()
        };
        let everything: Value = Figment::new()
            .merge(Source::defaults(&options))
            .extract()
            .expect("defaults are a mapping");
        let of_layer: BTreeSet<String> = keys_of(&everything).into_iter().collect();
        let of_table: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(of_layer, of_table);
    }
}
