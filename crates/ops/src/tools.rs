//! The operations as tools for programs that talk to people: their names, which arguments they show
//! under which names, and what may be done by whom.
//!
//! An operation is a tool by itself; a line in [`NAMED`] only gives it the name and the argument
//! names that the existing product has for it. Law: a tool that is not offered cannot be called, and
//! what destroys or moves data wants a word of confirmation.

use crate::error::OpError;
use crate::list::OPS;
use crate::operation::{Call, Effect, Op};
use serde_json::{Map, Value, json};

/// A path, the tool's name, and arguments that it shows under other names.
type Named = ((&'static str, &'static str), &'static str, &'static [(&'static str, &'static str)]);

/// Operations that have names of their own as tools: path, name, and arguments with other names.
#[rustfmt::skip]
const NAMED: &[Named] = &[
    (("topics", "create"), "create_topic", &[("topic", "name")]),
    (("topics", "describe"), "describe_topic", &[]),
    (("topics", "explain"), "explain_topic", &[]),
    (("topics", "configure"), "configure_topic", &[]),
    (("topics", "list"), "list_topics", &[]),
    (("topics", "delete"), "delete_topic", &[]),
    (("topics", "unload"), "unload_topic", &[]),
    (("topics", "subscriptions"), "list_subscriptions", &[]),
    (("topics", "create-subscription"), "create_subscription", &[]),
    (("topics", "unsubscribe"), "unsubscribe", &[]),
    (("topics", "get-failure-policy"), "get_subscription_failure_policy", &[]),
    (("topics", "set-failure-policy"), "set_subscription_failure_policy", &[]),
    (("topics", "get-dispatch-config"), "get_subscription_dispatch_config", &[]),
    (("topics", "set-dispatch-config"), "set_subscription_dispatch_config", &[]),
    (("topics", "publish"), "publish_message", &[]),
    (("topics", "peek"), "peek_messages", &[]),
    (("topics", "seek"), "seek_subscription", &[]),
    (("topics", "replay-dlq"), "replay_dlq", &[]),
    (("topics", "why"), "why_not_delivering", &[]),
    (("topics", "configure-schema"), "configure_topic_schema", &[("subject", "schema_subject")]),
    (("topics", "set-validation-policy"), "set_topic_validation_policy", &[]),
    (("topics", "get-schema-config"), "get_topic_schema_config", &[]),
    (("schemas", "register"), "register_schema", &[("schema", "schema_definition")]),
    (("schemas", "get"), "get_schema", &[]),
    (("schemas", "versions"), "list_schema_versions", &[]),
    (("schemas", "check"), "check_schema_compatibility", &[("schema", "schema_definition")]),
    (("schemas", "get-compatibility"), "get_schema_compatibility_mode", &[]),
    (("schemas", "set-compatibility"), "set_schema_compatibility_mode", &[]),
    (("schemas", "delete"), "delete_schema_version", &[]),
    (("schemas", "list-subjects"), "list_subjects", &[]),
    (("schemas", "history"), "schema_history", &[]),
    (("namespaces", "create"), "create_namespace", &[("name", "namespace")]),
    (("namespaces", "delete"), "delete_namespace", &[("name", "namespace")]),
    (("namespaces", "list"), "list_namespaces", &[]),
    (("namespaces", "topics"), "list_namespace_topics", &[]),
    (("namespaces", "policies"), "get_namespace_policies", &[]),
    (("namespaces", "set-policies"), "set_namespace_policies", &[]),
    (("brokers", "list"), "list_brokers", &[]),
    (("brokers", "leader-broker"), "get_leader", &[]),
    (("cluster", "status"), "cluster_status", &[]),
    (("metadata", "get"), "get_metadata", &[]),
    (("metadata", "list"), "list_metadata", &[]),
    (("", "overview"), "get_overview", &[]),
    (("", "apply"), "apply_manifest", &[]),
    (("", "diff"), "diff_manifest", &[]),
    (("", "export"), "export_manifest", &[]),
    (("", "drift"), "list_drift", &[]),
];

/// Arguments that make an operation remove things which without them it would not.
const REMOVING: &[&str] = &["prune", "prune_allow", "replace", "force"];

/// The argument that confirms.
const CONFIRM: &str = "confirm";

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Look.
    ReadOnly,
    /// Look, create and set.
    Default,
    /// Everything, with a confirmation for what destroys or moves data.
    Destructive,
}

impl Level {
    /// One sentence that tells a caller what it may do.
    pub fn about(self) -> &'static str {
        match self {
            Level::ReadOnly => "Read-only: tools that change anything are not offered.",
            Level::Default => {
                "You may read, create and set policies. Tools that destroy or move data (delete, \
                 unsubscribe, seek, replay, prune) are not offered; the operator can allow them \
                 with --allow-destructive."
            }
            Level::Destructive => {
                "You may do everything. Tools that destroy or move data need the argument \
                 `confirm: true`, except for a dry run; ask the user first."
            }
        }
    }
}

impl Op {
    /// Whether a call with these arguments removes or moves data, so that a caller should have been
    /// asked first. A dry run does not.
    pub fn destroys(&self, arguments: &Map<String, Value>) -> bool {
        let is_set = |argument: &str| arguments.get(argument) == Some(&Value::Bool(true));
        let replaces = match arguments.get("replace") {
            None | Some(Value::Null) => false,
            Some(named) => named.as_array().is_none_or(|names| !names.is_empty()),
        };
        let removes = self.spec.effect == Effect::Destructive || is_set("prune") || replaces;
        removes && !is_set("dry_run")
    }
}

/// An operation as a tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The operation.
    pub op: &'static Op,
    renamed: &'static [(&'static str, &'static str)],
    name: Option<&'static str>,
}

/// The tools that a caller of this level is offered.
pub fn tools(level: Level) -> impl Iterator<Item = Tool> {
    let allowed = move |op: &&Op| match op.spec.effect {
        Effect::Read => true,
        Effect::Write => level >= Level::Default,
        Effect::Destructive => level >= Level::Destructive,
    };
    OPS.iter().filter(allowed).map(Tool::of)
}

impl Tool {
    fn of(op: &'static Op) -> Tool {
        let named = NAMED.iter().find(|(path, ..)| *path == op.spec.path);
        Tool {
            op,
            name: named.map(|(_, name, _)| *name),
            renamed: named.map_or(&[], |(_, _, renamed)| renamed),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.map_or_else(|| self.op.name(), str::to_owned)
    }

    /// Whether it has a name in [`NAMED`].
    #[cfg(test)]
    fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// The schema of its arguments for a caller of `level`.
    pub fn input_schema(&self, level: Level) -> Map<String, Value> {
        let mut schema = self.op.input_schema();
        let removes = self.removes();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            if level < Level::Destructive && removes {
                properties.retain(|name, _| !REMOVING.contains(&name.as_str()));
            } else if removes {
                let help = "Must be true to destroy or move data; a dry run needs none";
                let confirm = json!({"type": "boolean", "description": help});
                properties.insert(CONFIRM.to_owned(), confirm);
            }
            for (own, shown) in self.renamed {
                if let Some(property) = properties.remove(*own) {
                    properties.insert((*shown).to_owned(), property);
                }
            }
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            for name in required {
                let shown = self.renamed.iter().find(|(own, _)| name == own);
                if let Some((_, shown)) = shown {
                    *name = Value::from(*shown);
                }
            }
        }
        schema
    }

    fn removes(&self) -> bool {
        let command = self.op.command();
        let mut arguments = command.get_arguments();
        self.op.spec.effect == Effect::Destructive
            || arguments
                .any(|argument| argument.get_id() == "prune" && self.op.spec.effect != Effect::Read)
    }

    /// The call that these arguments ask for.
    ///
    /// # Errors
    /// An argument that is not known or not allowed, a confirmation that is missing, or what is
    /// wrong with the arguments.
    pub fn call(&self, level: Level, mut arguments: Map<String, Value>) -> Result<Call, OpError> {
        let name = self.name();
        let schema = self.input_schema(level);
        let known = schema.get("properties").and_then(Value::as_object);
        let own_names: Vec<&str> = self.renamed.iter().map(|(own, _)| *own).collect();
        for argument in arguments.keys() {
            let is_known = known.is_some_and(|known| known.contains_key(argument));
            if REMOVING.contains(&argument.as_str()) && !is_known {
                return Err(OpError::usage(format!("`{argument}` of `{name}` is not allowed"))
                    .help("the operator can allow it with --allow-destructive"));
            }
            if !is_known && !own_names.contains(&argument.as_str()) {
                let names: Vec<&str> =
                    known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                return Err(OpError::usage(format!(
                    "`{name}` has no argument `{}`; it has {}",
                    argument.escape_debug(),
                    names.join(", ")
                )));
            }
        }
        let is_confirmed = arguments.get(CONFIRM) == Some(&Value::Bool(true));
        if self.op.destroys(&arguments) && !is_confirmed {
            return Err(OpError::usage(format!(
                "`{name}` destroys or moves data and was not confirmed"
            ))
            .help("ask the user, then call it again with `confirm: true`"));
        }
        arguments.remove(CONFIRM);
        for (own, shown) in self.renamed {
            if let Some(value) = arguments.remove(*shown) {
                arguments.insert((*own).to_owned(), value);
            }
        }
        arguments.retain(|_, value| !value.is_null());
        self.op.read(Value::Object(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_is_a_tool_with_a_name_of_its_own() {
        let names: BTreeSet<String> = tools(Level::Destructive).map(|tool| tool.name()).collect();
        assert_eq!(names.len(), OPS.len());
        for (path, ..) in NAMED {
            assert!(OPS.iter().any(|op| op.spec.path == *path), "{path:?} is no operation");
        }
        for tool in tools(Level::Destructive) {
            assert!(tool.is_named(), "{} could have a better name", tool.name());
        }
    }

    #[test]
    fn levels_take_tools_away() {
        let names = |level| tools(level).map(|tool| tool.name()).collect::<Vec<_>>();
        let has = |level, name: &str| names(level).iter().any(|known| known == name);
        assert!(has(Level::ReadOnly, "describe_topic") && !has(Level::ReadOnly, "create_topic"));
        assert!(has(Level::Default, "create_topic") && !has(Level::Default, "delete_topic"));
        assert!(has(Level::Destructive, "delete_topic"));
    }

    #[test]
    fn what_destroys_wants_to_be_confirmed() {
        let tool = |name: &str| tools(Level::Destructive).find(|tool| tool.name() == name);
        let arguments = |value: Value| value.as_object().cloned().expect("an object");
        let delete = tool("delete_topic").expect("a tool");
        let topic = json!({"topic": "/default/t"});
        let error = delete.call(Level::Destructive, arguments(topic)).expect_err("unconfirmed");
        assert!(error.message.contains("was not confirmed"), "{error}");
        let confirmed = json!({"topic": "/default/t", "confirm": true});
        assert!(delete.call(Level::Destructive, arguments(confirmed)).is_ok());
        let apply = tool("apply_manifest").expect("a tool");
        let prune = json!({"manifest": "topics: []", "prune": true});
        assert!(apply.call(Level::Default, arguments(prune.clone())).is_err());
        assert!(apply.call(Level::Destructive, arguments(prune)).is_err());
        let dry = json!({"manifest": "topics: []", "prune": true, "dry_run": true});
        assert!(apply.call(Level::Destructive, arguments(dry)).is_ok());
    }

    /// The product's seed shows these two documents.
    #[test]
    fn the_arguments_of_the_seed_are_taken_as_they_are() {
        for (name, arguments) in [
            (
                "create_topic",
                json!({"name": "/agents/tool-audit", "intent": "audit_log", "partitions": 1}),
            ),
            (
                "set_subscription_failure_policy",
                json!({
                    "topic": "/agents/tasks", "subscription": "planner-workers",
                    "max_redelivery_count": 5, "ack_timeout_ms": 60000,
                    "base_redelivery_delay_ms": 1000, "max_redelivery_delay_ms": 60000,
                    "backoff_strategy": "exponential", "dead_letter_topic": "/agents/tasks-dlq",
                    "poison_policy": "dead_letter"
                }),
            ),
        ] {
            let tool = tools(Level::Default).find(|tool| tool.name() == name).expect("a tool");
            let arguments = arguments.as_object().cloned().expect("an object");
            assert!(tool.call(Level::Default, arguments).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unknown_argument_is_told() {
        let tool =
            tools(Level::Default).find(|tool| tool.name() == "create_topic").expect("a tool");
        let arguments = json!({"name": "/default/t", "intnet": "audit_log"});
        let arguments = arguments.as_object().cloned().expect("an object");
        let error = tool.call(Level::Default, arguments).expect_err("a typo");
        assert!(error.message.contains("no argument `intnet`"), "{error}");
    }
}
