//! The reference of all operations, made from the operations themselves.
//!
//! Law: nothing is written here that an operation does not say of itself.

use crate::contract::words;
use crate::list::{NOUNS, OPS};
use crate::operation::{Effect, Op};
use crate::tools::{Level, tools};

/// The page, in Markdown; `docs/reference/operations.md` is this.
pub fn reference() -> String {
    let mut page =
        "# Operations\n\nGenerated from `crates/ops`; a test holds it against the code. \
                    Each operation is a verb of `danube ctl` and a tool of `danube mcp`.\n"
            .to_owned();
    for (noun, about) in NOUNS.iter().chain(&[("", "Everything at once")]) {
        let title = if noun.is_empty() { "Everything" } else { noun };
        page += &format!("\n## {title}\n\n{about}.\n");
        for op in OPS.iter().filter(|op| op.spec.path.0 == *noun) {
            page += &section(op);
        }
    }
    page
}

fn section(op: &Op) -> String {
    let (noun, verb) = op.spec.path;
    let call = format!("danube ctl {noun} {verb}").replace("  ", " ");
    let effect = match op.spec.effect {
        Effect::Read => "reads",
        Effect::Write => "adds or sets",
        Effect::Destructive => "removes or moves data",
    };
    let tool = tools(Level::Destructive).find(|tool| tool.op.spec.path == op.spec.path);
    let tool = tool.map(|tool| tool.name()).unwrap_or_default();
    let aliases = words(op);
    let aliases = if aliases.is_empty() { String::new() } else { format!(" Also: `{aliases}`.") };
    let help = op.command().bin_name(call.clone()).term_width(100).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let help = help.join("\n");
    format!(
        "\n### {call}\n\nIt {effect}. Permission: {:?}. Tool: `{tool}`.{aliases}\n\n```text\n{}\n```\n\n\
         Example: `{}`\n",
        op.spec.permission,
        help.trim_end(),
        format!("{call} {}", op.spec.example).trim_end(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;

    #[test]
    fn the_reference_is_the_published_page() {
        expect_file!["../../../docs/reference/operations.md"].assert_eq(&reference());
    }

    #[test]
    fn every_operation_is_on_every_face_and_documented() {
        let page = reference();
        let names: Vec<String> = tools(Level::Destructive).map(|tool| tool.name()).collect();
        let parent = crate::list::commands(clap::Command::new("ctl"));
        for op in OPS {
            let (noun, verb) = op.spec.path;
            let within = if noun.is_empty() { Some(&parent) } else { parent.find_subcommand(noun) };
            assert!(within.and_then(|within| within.find_subcommand(verb)).is_some(), "{verb}");
            let tool = tools(Level::Destructive).find(|tool| tool.op.spec.path == op.spec.path);
            let name = tool.map(|tool| tool.name()).expect("a tool");
            assert!(names.contains(&name) && page.contains(&format!("Tool: `{name}`")), "{name}");
            assert!(op.output_schema().contains_key("type"), "{name} has no output schema");
        }
    }

    /// The two ways to give arguments must not drift apart.
    #[test]
    fn what_an_example_says_a_document_can_say_too() {
        for op in OPS {
            let matches = op
                .command()
                .try_get_matches_from(
                    std::iter::once(op.spec.path.1).chain(op.spec.example.split_whitespace()),
                )
                .expect("an example");
            let schema = op.input_schema();
            let known = schema["properties"].as_object().expect("an object");
            let mut document = serde_json::Map::new();
            for id in matches.ids().map(|id| id.as_str().to_owned()) {
                let Some(property) = known.get(&id) else { continue };
                let mut raw = matches.get_raw(&id).into_iter().flatten();
                let text = raw.next().and_then(|raw| raw.to_str()).unwrap_or_default();
                let value = match property["type"].as_str() {
                    Some("boolean") => matches.get_flag(&id).into(),
                    Some("integer") => text.parse::<u64>().expect("a number").into(),
                    Some("array") => vec![text].into(),
                    _ => text.into(),
                };
                document.insert(id, value);
            }
            if known.contains_key("manifest") {
                document.insert("manifest".into(), "topics: []".into());
            }
            let name = op.name();
            assert!(op.read(document.into()).is_ok(), "{name}");
        }
    }
}
