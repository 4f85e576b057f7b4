//! Forms: every operation as one, made from its arguments; and the hidden half of them all.
//!
//! Law: a form's fields are the operation's own arguments under their own names.

use crate::access::Access;
use crate::problem::Problem;
use crate::request::Pairs;
use crate::server::Shared;
use danube_ops::{Effect, Op};
use maud::{Markup, html};
use serde_json::{Map, Value};

/// Arguments whose text has lines.
const LONG: &[&str] = &["manifest", "schema", "message", "payload", "description"];

/// Whether an argument's text has lines.
pub(crate) fn is_long(name: &str) -> bool {
    LONG.contains(&name)
}

/// The path of an operation's form.
pub(crate) fn path(op: &Op) -> String {
    let (noun, verb) = op.spec.path;
    let parts: Vec<&str> = [noun, verb].into_iter().filter(|part| !part.is_empty()).collect();
    format!("/operations{}", crate::request::path(&parts))
}

/// That the form is ours.
pub(crate) fn token(shared: &Shared) -> Markup {
    html! { input type="hidden" name="token" value=(shared.token.as_str()); }
}

/// A form of nothing but a button: an operation whose arguments are known. `then` is where to go
/// after it.
pub(crate) fn button(
    shared: &Shared,
    op: &'static Op,
    fields: &[(&str, &str)],
    then: &str,
    label: &str,
) -> Markup {
    let is_allowed = shared.access == Access::On || op.spec.effect == Effect::Read;
    let class = match op.spec.effect {
        Effect::Destructive => "action danger",
        _ => "action",
    };
    // A name of its own says that it is one value of a list.
    let name_of = |name: &str| match name.contains('.') {
        true => name.to_owned(),
        false => format!("arg.{name}"),
    };
    html! {
        form.inline method="post" action=(path(op)) {
            (token(shared))
            input type="hidden" name="then" value=(then);
            @for (name, value) in fields {
                input type="hidden" name=(name_of(name)) value=(value);
            }
            button class=(class) type="submit" disabled[!is_allowed]
                title=[(!is_allowed).then_some("the console is read-only")] { (label) }
        }
    }
}

/// A link to an operation's form with some of it filled in.
pub(crate) fn link(op: &'static Op, fields: &[(&str, &str)], then: &str, label: &str) -> Markup {
    let mut pairs = fields.to_vec();
    pairs.push(("then", then));
    html! { a.action href=(crate::request::with_query(&path(op), &pairs)) { (label) } }
}

/// The form of an operation, with what `given` has filled in.
pub(crate) fn of(
    op: &'static Op,
    given: &dyn Fn(&str) -> Option<String>,
    shared: &Shared,
    then: &str,
) -> Markup {
    let schema = op.input_schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // In the order of the command line, which begins with what matters.
    let command = op.command();
    let ids = command.get_arguments().map(|argument| argument.get_id().as_str().to_owned());
    let own = ids.filter(|id| id != "namespace" || !has(properties, "topic"));
    let own = own.filter_map(|id| Some((id.clone(), properties?.get(&id)?)));
    let manifest =
        properties.and_then(|known| Some(("manifest".to_owned(), known.get("manifest")?)));
    let fields: Vec<(String, &Value)> = manifest.into_iter().chain(own).collect();
    let is_allowed = shared.access == Access::On || op.spec.effect == Effect::Read;
    let (verb, class) = match op.spec.effect {
        Effect::Read => ("Ask", "action"),
        Effect::Write => ("Do it", "action"),
        Effect::Destructive => ("Go on …", "action danger"),
    };
    html! {
        form.fields method="post" action=(path(op)) {
            (token(shared))
            input type="hidden" name="then" value=(then);
            @for (name, property) in fields {
                (field(&name, property, required.contains(&name.as_str()), given(&name)))
            }
            @if is_allowed { button class=(class) type="submit" { (verb) } }
            @else { p.notice { "The console is read-only here, so this can only be done in a shell." } }
        }
    }
}

fn has(properties: Option<&Map<String, Value>>, name: &str) -> bool {
    properties.is_some_and(|properties| properties.contains_key(name))
}

fn field(name: &str, property: &Value, is_required: bool, given: Option<String>) -> Markup {
    let id = format!("f-{name}");
    let kind = property.get("type").and_then(Value::as_str).unwrap_or("string");
    let help = property.get("description").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = property
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let field = format!("arg.{name}");
    let label = name.replace('_', " ");
    let hint = format!("{id}-help");
    if kind == "boolean" {
        return html! {
            div.field.check {
                input id=(id) type="checkbox" name=(field) value="true" checked[given.as_deref() == Some("true")] aria-describedby=(hint);
                label for=(id) { (label) }
                p.hint id=(hint) { (help) }
            }
        };
    }
    html! {
        div.field {
            label for=(id) { (label) @if is_required { span.quiet { " (needed)" } } }
            @if !words.is_empty() {
                select id=(id) name=(field) aria-describedby=(hint) {
                    @if !is_required { option value="" { "—" } }
                    @for word in words {
                        option value=(word) selected[given.as_deref() == Some(word)] { (word) }
                    }
                }
            } @else if kind == "array" || LONG.contains(&name) {
                textarea id=(id) name=(field) rows=(if kind == "array" { 2 } else { 8 })
                    required[is_required] spellcheck="false" aria-describedby=(hint) { (given.unwrap_or_default()) }
            } @else {
                input id=(id) name=(field) type=(if kind == "integer" { "number" } else { "text" })
                    value=(given.unwrap_or_default()) required[is_required]
                    min=[(kind == "integer").then_some("0")] autocomplete="off" spellcheck="false" aria-describedby=(hint);
            }
            p.hint id=(hint) { (help) @if kind == "array" { "; one a line" } }
        }
    }
}

/// The document of arguments that a sent form means.
///
/// # Errors
/// A number that is none.
pub(crate) fn arguments(op: &Op, form: &Pairs) -> Result<Map<String, Value>, Problem> {
    let schema = op.input_schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let field = format!("arg.{name}");
        let given = form.iter().filter(|(key, value)| *key == field && !value.is_empty());
        let given: Vec<&str> = given.map(|(_, value)| value.as_str()).collect();
        // One value of a list, whatever is in it.
        let one = format!("one.{name}");
        let whole: Vec<&str> =
            form.iter().filter(|(key, _)| *key == one).map(|(_, value)| value.as_str()).collect();
        if !whole.is_empty() {
            arguments.insert(name.clone(), whole.into_iter().map(Value::from).collect());
            continue;
        }
        let Some(first) = given.first() else { continue };
        let value = match property.get("type").and_then(Value::as_str) {
            Some("boolean") => Value::Bool(*first == "true"),
            Some("integer") => Value::from(first.trim().parse::<u64>().map_err(|_| {
                Problem::invalid(format!(
                    "`{name}` is `{}`, not a whole number",
                    first.escape_debug()
                ))
                .next("go back and give a whole number of 0 or more")
            })?),
            Some("array") => given
                .iter()
                .flat_map(|value| value.split('\n'))
                .map(|line| line.trim_end_matches('\r'))
                .filter(|line| !line.is_empty())
                .map(Value::from)
                .collect(),
            _ => Value::from(*first),
        };
        arguments.insert(name.clone(), value);
    }
    Ok(arguments)
}

/// The same document as hidden fields, for a form that comes after.
pub(crate) fn hidden(arguments: &Map<String, Value>) -> Markup {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    html! {
        @for (name, value) in arguments {
            @if let Value::Array(values) = value {
                @for value in values { input type="hidden" name={ "one." (name) } value=(text(value)); }
            } @else {
                input type="hidden" name={ "arg." (name) } value=(text(value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_is_the_operations_document() {
        let op = crate::admin::find("topics", "replay-dlq").expect("listed");
        let form = |pairs: &[(&str, &str)]| -> Pairs {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let sent = form(&[
            ("token", "x"),
            ("arg.topic", "/d/t-dlq"),
            ("arg.filter", "a=b\nc=d e"),
            ("arg.offset", " 7 "),
            ("arg.payload", "two\nlines"),
            ("arg.dry_run", "true"),
            ("arg.to", ""),
            ("arg.unknown", "1"),
        ]);
        let one = form(&[("arg.topic", "/d/t-dlq"), ("one.filter", "why=two\nlines")]);
        let document = arguments(op, &one).expect("well formed");
        assert_eq!(document["filter"], json!(["why=two\nlines"]));
        assert!(
            hidden(&document)
                .into_string()
                .contains("name=\"one.filter\" value=\"why=two\nlines\"")
        );
        let document = arguments(op, &sent).expect("well formed");
        assert_eq!(
            Value::Object(document),
            json!({
                "topic": "/d/t-dlq", "filter": ["a=b", "c=d e"], "offset": 7,
                "payload": "two\nlines", "dry_run": true,
            })
        );
        let wrong = arguments(op, &form(&[("arg.offset", "seven")])).expect_err("no number");
        assert!(wrong.message.contains("`seven`"), "{}", wrong.message);
    }
}
