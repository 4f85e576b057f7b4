//! The line that a person would type for a call that a program or a form makes.
//!
//! Law: the line, typed, is the same call; so every face can show how it is done by hand.

use crate::operation::Op;
use clap::ArgAction;
use serde_json::{Map, Value};

impl Op {
    /// `danube ctl topics seek /default/jobs -s workers --to offset:80`, for a document of
    /// arguments as [`Op::read`] takes it. What is not set is left out. A manifest is a file.
    pub fn command_line(&self, arguments: &Map<String, Value>) -> String {
        let (noun, verb) = self.spec.path;
        let mut line = String::from("danube ctl");
        for word in [noun, verb].into_iter().filter(|word| !word.is_empty()) {
            line += &format!(" {word}");
        }
        if arguments.contains_key("manifest") {
            line += " -f manifest.yaml";
        }
        let command = self.command();
        // What has no flag stands first, in its order.
        let (bare, flagged): (Vec<_>, Vec<_>) =
            command.get_arguments().partition(|argument| argument.is_positional());
        for argument in bare.into_iter().chain(flagged) {
            let Some(value) = arguments.get(argument.get_id().as_str()) else { continue };
            let is_default = |value: &str| {
                argument.get_default_values().first().is_some_and(|default| default == value)
            };
            for value in words(value).into_iter().filter(|value| !is_default(value)) {
                match (argument.get_long(), argument.get_action()) {
                    (None, _) => line += &format!(" {}", quoted(&value)),
                    (Some(long), ArgAction::SetTrue) if value == "true" => {
                        line += &format!(" --{long}");
                    }
                    (Some(_), ArgAction::SetTrue) => {}
                    (Some(long), _) if value.starts_with('-') => {
                        line += &format!(" --{long}={}", quoted(&value));
                    }
                    (Some(long), _) => line += &format!(" --{long} {}", quoted(&value)),
                }
            }
        }
        line
    }
}

/// The values of an argument, each as text.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values.iter().flat_map(words).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/_-.:=,@+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use crate::list::OPS;
    use serde_json::{Value, json};

    fn line(noun: &str, verb: &str, arguments: Value) -> String {
        let op = OPS.iter().find(|op| op.spec.path == (noun, verb)).expect("listed");
        op.command_line(arguments.as_object().expect("an object"))
    }

    #[test]
    fn a_line_is_what_a_person_would_type() {
        for (noun, verb, arguments, expected) in [
            (
                "topics",
                "seek",
                json!({"topic": "/d/jobs", "subscription": "w", "to": "offset:80", "dry_run": false}),
                "danube ctl topics seek /d/jobs --subscription w --to offset:80",
            ),
            (
                "topics",
                "replay-dlq",
                json!({"topic": "/d/jobs-dlq", "filter": ["a=b c", "d=e"], "dry_run": true}),
                "danube ctl topics replay-dlq /d/jobs-dlq --filter 'a=b c' --filter d=e --dry-run",
            ),
            (
                "topics",
                "publish",
                json!({"topic": "/d/t", "message": "it's -n; $(rm)\n", "namespace": "default"}),
                "danube ctl topics publish /d/t --message 'it'\\''s -n; $(rm)\n'",
            ),
            (
                "topics",
                "publish",
                json!({"topic": "/d/t", "message": "-x"}),
                "danube ctl topics publish /d/t --message=-x",
            ),
            (
                "",
                "apply",
                json!({"manifest": "topics: []", "dry_run": true}),
                "danube ctl apply -f manifest.yaml --dry-run",
            ),
        ] {
            assert_eq!(line(noun, verb, arguments), expected);
        }
    }
}
