//! The page `docs/reference/configuration.md`, made from the keys, the flags and the defaults.
//!
//! Law: nothing on it is written by hand, so that it cannot be out of date.

use super::Flags;
use super::keys::{KEYS, Key, variable_of};
use super::layer::Source;
use clap::Args as _;
use danube_broker::BrokerOptions;
use figment::Figment;
use serde_json::Value;
use std::fmt::Write as _;

const HEAD: &str = "# Configuration

Generated from the keys of `danube start`; do not edit. A value is taken from, in this order: a flag,
an environment variable, the YAML file (`--config-file FILE` or `DANUBE_CONFIG_FILE`), the default. A
key of a section stands indented under its name in the file. A mistake is told with the flag,
variable or file and line where it stands, and nothing is started. [Operations](../operations.md) has
an example.

| key | default | flag | variable | meaning |
|---|---|---|---|---|
";

/// The page.
pub fn page() -> String {
    let defaults: Value = Figment::new()
        .merge(Source::defaults(&BrokerOptions::default()))
        .extract()
        .expect("defaults are a mapping");
    let command = Flags::augment_args(clap::Command::new("start"));
    let flags: Vec<&str> = command.get_arguments().filter_map(|flag| flag.get_long()).collect();
    let mut page = HEAD.to_owned();
    for key in KEYS {
        let flag = key.name.replace('_', "-");
        let flag = match flags.contains(&flag.as_str()) {
            true => format!("`--{flag}`"),
            false => String::new(),
        };
        let (name, variable, default) = (key.name, variable_of(key.name), default(&defaults, key));
        writeln!(page, "| `{name}` | {default} | {flag} | `{variable}` | {} |", key.help)
            .expect("writing to a string does not fail");
    }
    page
}

fn default(defaults: &Value, key: &Key) -> String {
    let pointer = format!("/{}", key.name.replace('.', "/"));
    match defaults.pointer(&pointer) {
        None => String::new(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(Value::Array(list)) if list.is_empty() => String::new(),
        Some(value) => format!("`{value}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_is_up_to_date() {
        expect_file!["../../../../docs/reference/configuration.md"].assert_eq(&page());
    }

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
    fn every_key_of_a_layer_is_in_the_list() {
        let options = BrokerOptions {
            wal_dir: Some("w".into()),
            advertised_addr: Some("h:1".into()),
            ..BrokerOptions::default()
        };
        let set = Source::single("test", |layer| {
            layer.log_level = Some("info".into());
            layer.otlp_endpoint = Some("http://h:1".into());
        });
        let everything: Value = Figment::new()
            .merge(Source::defaults(&options))
            .merge(set)
            .extract()
            .expect("defaults are a mapping");
        let of_layer: BTreeSet<String> = keys_of(&everything).into_iter().collect();
        let of_list: BTreeSet<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
        assert_eq!(of_layer, of_list);
    }
}
