//! The list of all operations, and the command line that follows from it.

use crate::operation::{Call, Op};
use crate::{metadata, namespaces, schemas, topics};
use clap::{ArgMatches, Command};

/// The things that operations are about, each with a line of help.
pub const NOUNS: &[(&str, &str)] = &[
    ("topics", "Topics and their subscriptions"),
    ("namespaces", "Namespaces, which topics live in"),
    ("schemas", "Schemas: subjects, their versions, and what they promise"),
    ("metadata", "The documents the broker keeps about all of it"),
];

/// All operations, in the order of the help.
pub static OPS: &[Op] = &[
    Op::of::<topics::Create>(),
    Op::of::<topics::Describe>(),
    Op::of::<topics::List>(),
    Op::of::<topics::Delete>(),
    Op::of::<topics::Subscriptions>(),
    Op::of::<topics::Unsubscribe>(),
    Op::of::<topics::GetFailurePolicy>(),
    Op::of::<topics::SetFailurePolicy>(),
    Op::of::<topics::GetDispatchConfig>(),
    Op::of::<topics::SetDispatchConfig>(),
    Op::of::<topics::Peek>(),
    Op::of::<topics::Seek>(),
    Op::of::<topics::ReplayDlq>(),
    Op::of::<topics::Why>(),
    Op::of::<topics::ConfigureSchema>(),
    Op::of::<topics::SetValidationPolicy>(),
    Op::of::<topics::GetSchemaConfig>(),
    Op::of::<schemas::Register>(),
    Op::of::<schemas::Get>(),
    Op::of::<schemas::Versions>(),
    Op::of::<schemas::Check>(),
    Op::of::<schemas::GetCompatibility>(),
    Op::of::<schemas::SetCompatibility>(),
    Op::of::<schemas::Delete>(),
    Op::of::<schemas::ListSubjects>(),
    Op::of::<schemas::History>(),
    Op::of::<namespaces::Create>(),
    Op::of::<namespaces::Delete>(),
    Op::of::<namespaces::List>(),
    Op::of::<metadata::Get>(),
    Op::of::<metadata::List>(),
];

/// Adds all operations to a command line, as `noun verb`.
pub fn commands(parent: Command) -> Command {
    let nouns = NOUNS.iter().map(|(noun, about)| {
        let verbs = OPS.iter().filter(|op| op.spec.path.0 == *noun).map(Op::command);
        Command::new(*noun)
            .about(*about)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(verbs)
    });
    parent.subcommand_required(true).arg_required_else_help(true).subcommands(nouns)
}

/// The call that a command line with [`commands`] asks for.
///
/// # Errors
/// What is wrong with it.
pub fn find(matches: &ArgMatches) -> Result<Call, clap::Error> {
    let called = matches.subcommand().and_then(|(noun, of_noun)| {
        of_noun.subcommand().map(|(verb, of_verb)| (noun, verb, of_verb))
    });
    let op = called.and_then(|(noun, verb, of_verb)| {
        let op = OPS.iter().find(|op| op.spec.path == (noun, verb))?;
        Some((op, of_verb))
    });
    match op {
        Some((op, of_verb)) => op.parse(of_verb),
        None => Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Effect;
    use std::collections::BTreeSet;

    fn parse(line: &[&str]) -> Result<Call, clap::Error> {
        let matches = commands(Command::new("ctl")).try_get_matches_from(line)?;
        find(&matches)
    }

    #[test]
    fn the_list_is_well_formed() {
        commands(Command::new("ctl")).debug_assert();
        let paths: BTreeSet<_> = OPS.iter().map(|op| op.spec.path).collect();
        assert_eq!(paths.len(), OPS.len(), "each operation is once in the list");
        for op in OPS {
            let (noun, verb) = op.spec.path;
            assert!(NOUNS.iter().any(|(known, _)| *known == noun), "{noun} has no line of help");
            let about = op.command().get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{noun} {verb}: {about:?}");
            for argument in op.command().get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{noun} {verb}: {} has no help",
                    argument.get_id()
                );
            }
        }
    }

    #[test]
    fn every_example_is_a_call_of_its_operation() {
        for op in OPS {
            let (noun, verb) = op.spec.path;
            let line = ["ctl", noun, verb].into_iter().chain(op.spec.example.split_whitespace());
            let call = parse(&line.collect::<Vec<_>>());
            let call = call.unwrap_or_else(|error| panic!("{noun} {verb}: {error}"));
            assert_eq!(call.op.spec.path, op.spec.path);
        }
    }

    #[test]
    fn a_typo_is_told_the_nearest_name() {
        for (line, nearest) in [
            (["ctl", "topic", "create"], "topics"),
            (["ctl", "topics", "reply-dlq"], "replay-dlq"),
            (["ctl", "namespaces", "creat"], "create"),
        ] {
            let error = parse(&line).expect_err("a typo").to_string();
            assert!(error.contains(nearest), "{error}");
        }
    }

    #[test]
    fn what_destroys_says_so() {
        let destructive = OPS.iter().filter(|op| op.spec.effect == Effect::Destructive);
        let verbs: Vec<_> = destructive.map(|op| op.spec.path).collect();
        assert_eq!(
            verbs,
            [
                ("topics", "delete"),
                ("topics", "unsubscribe"),
                ("topics", "seek"),
                ("topics", "replay-dlq"),
                ("schemas", "delete"),
                ("namespaces", "delete"),
            ]
        );
    }

    #[test]
    fn arguments_can_be_a_document() {
        let op = OPS.iter().find(|op| op.spec.path == ("topics", "seek")).expect("listed");
        let arguments = serde_json::json!({
            "topic": "/default/jobs", "subscription": "workers", "to": "offset:80",
        });
        assert!(op.read(arguments).is_ok());
        let wrong = serde_json::json!({
            "topic": "/default/jobs", "subscription": "workers", "to": "80",
        });
        let error = op.read(wrong).expect_err("no position");
        assert!(error.message.contains("is not a place in a topic"), "{error}");
    }
}
