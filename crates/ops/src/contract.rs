//! What programs must know of an operation's arguments and its result, as JSON Schemas.
//!
//! Law: the arguments' schema follows from the command line, so a program and a person are told the
//! same names, words and help.

use crate::operation::Op;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction};
use serde_json::{Map, Value, json};
use std::any::TypeId;

impl Op {
    /// The name that programs call it by, such as `topics_create`.
    pub fn name(&self) -> String {
        let (noun, verb) = self.spec.path;
        let name = if noun.is_empty() { verb.to_owned() } else { format!("{noun}_{verb}") };
        name.replace('-', "_")
    }

    /// One sentence of what it does.
    pub fn about(&self) -> String {
        self.command().get_about().map(ToString::to_string).unwrap_or_default()
    }

    /// The schema of a document of arguments, as [`Op::read`] takes it.
    pub fn input_schema(&self) -> Map<String, Value> {
        let command = self.command();
        let mut properties = Map::new();
        let mut required = Vec::new();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            if matches!(id, "help" | "version") || is_for_the_command_line(id) {
                continue;
            }
            properties.insert(id.to_owned(), property(argument));
            if argument.is_required_set() {
                required.push(Value::from(id));
            }
        }
        if is_about_a_manifest(&self.name()) {
            let help = "The manifest, in YAML or JSON";
            properties.insert("manifest".into(), json!({"type": "string", "description": help}));
            required.push("manifest".into());
        }
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        schema.insert("required".into(), required.into());
        schema.insert("additionalProperties".into(), false.into());
        schema
    }

    /// The schema of a result. A result that is a list is under `result`, for a program wants an
    /// object.
    pub fn output_schema(&self) -> Map<String, Value> {
        let mut schema = (self.output)();
        make_portable(&mut schema);
        let mut schema = schema.as_object().cloned().unwrap_or_default();
        if schema.get("type").is_some_and(|kind| kind == "object") {
            return schema;
        }
        // Definitions are looked for at the top.
        let definitions = schema.remove("$defs");
        let mut whole = Map::new();
        whole.insert("type".into(), "object".into());
        whole.insert("properties".into(), json!({ "result": schema }));
        whole.insert("required".into(), json!(["result"]));
        if let Some(definitions) = definitions {
            whole.insert("$defs".into(), definitions);
        }
        whole
    }

    /// A result as [`Op::output_schema`] says.
    pub fn structured(&self, data: Value) -> Value {
        let is_object = (self.output)().get("type").is_some_and(|kind| kind == "object");
        if is_object { data } else { json!({ "result": data }) }
    }
}

/// Brings a schema into the form that every model's tool calling takes: one `type` in a place, no
/// bare `true`, no sizes of integers, which JSON Schema has no words for.
fn make_portable(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Value::Object(members) = schema else { return };
    members.retain(|name, value| {
        name != "format" || !value.as_str().is_some_and(|format| format.contains("int"))
    });
    if let Some(Value::Array(types)) = members.get("type") {
        let branches = types.iter().map(|one| json!({ "type": one })).collect::<Vec<_>>();
        members.remove("type");
        members.insert("anyOf".into(), branches.into());
    }
    let says_nothing = |name: &String| matches!(name.as_str(), "description" | "title" | "default");
    if members.keys().all(says_nothing) {
        let types = ["object", "array", "string", "number", "boolean", "null"];
        members.insert("anyOf".into(), types.map(|one| json!({ "type": one })).to_vec().into());
    }
    for (name, value) in members {
        match (name.as_str(), value) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                schemas.values_mut().for_each(make_portable);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(make_portable);
            }
            ("items" | "additionalProperties", schema @ Value::Object(_)) => make_portable(schema),
            ("items", schema) => make_portable(schema),
            _ => {}
        }
    }
}

fn is_about_a_manifest(name: &str) -> bool {
    matches!(name, "apply" | "diff")
}

/// What has no meaning for a program: files are the caller's, not the server's.
fn is_for_the_command_line(id: &str) -> bool {
    matches!(id, "file" | "env")
}

fn property(argument: &Arg) -> Value {
    let mut property = match kind(argument.get_value_parser()) {
        _ if matches!(argument.get_action(), ArgAction::SetTrue) => json!({"type": "boolean"}),
        kind => json!({ "type": kind }),
    };
    let words: Vec<Value> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().into())
        .collect();
    if property["type"] == "string" && !words.is_empty() {
        property["enum"] = words.into();
    }
    if matches!(argument.get_action(), ArgAction::Append) {
        property = json!({"type": "array", "items": property});
    }
    if let Some(help) = argument.get_help() {
        property["description"] = help.to_string().into();
    }
    property
}

fn kind(parser: &ValueParser) -> &'static str {
    let numbers = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let id = parser.type_id();
    match numbers.into_iter().any(|number| id == number) {
        true => "integer",
        false => "string",
    }
}

/// Other names of a verb, for the reference.
pub(crate) fn words(op: &Op) -> String {
    let (noun, verb) = op.spec.path;
    crate::list::aliases(noun, verb).join("`, `")
}
