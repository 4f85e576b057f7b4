//! The list of all operations, and the command line that follows from it.

use crate::operation::{Call, Op};
use crate::overview::Overview;
use crate::{brokers, cluster, manifest, metadata, namespaces, schemas, topics};
use clap::{ArgMatches, Command};

/// The things that operations are about, each with a line of help.
pub const NOUNS: &[(&str, &str)] = &[
    ("topics", "Topics and their subscriptions"),
    ("namespaces", "Namespaces, which topics live in"),
    ("schemas", "Schemas: subjects, their versions, and what they promise"),
    ("brokers", "Brokers"),
    ("cluster", "The cluster that brokers belong to"),
    ("metadata", "The documents the broker keeps about all of it"),
];

/// All operations, in the order of the help.
pub static OPS: &[Op] = &[
    Op::of::<topics::Create>(),
    Op::of::<topics::Describe>(),
    Op::of::<topics::Explain>(),
    Op::of::<topics::Configure>(),
    Op::of::<topics::List>(),
    Op::of::<topics::Delete>(),
    Op::of::<topics::Subscriptions>(),
    Op::of::<topics::CreateSubscription>(),
    Op::of::<topics::Unsubscribe>(),
    Op::of::<topics::GetFailurePolicy>(),
    Op::of::<topics::SetFailurePolicy>(),
    Op::of::<topics::GetDispatchConfig>(),
    Op::of::<topics::SetDispatchConfig>(),
    Op::of::<topics::Publish>(),
    Op::of::<topics::Peek>(),
    Op::of::<topics::Seek>(),
    Op::of::<topics::ReplayDlq>(),
    Op::of::<topics::Why>(),
    Op::of::<topics::Unload>(),
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
    Op::of::<namespaces::Topics>(),
    Op::of::<namespaces::Policies>(),
    Op::of::<namespaces::SetPolicies>(),
    Op::of::<brokers::List>(),
    Op::of::<brokers::Leader>(),
    Op::of::<cluster::Status>(),
    Op::of::<metadata::Get>(),
    Op::of::<metadata::List>(),
    Op::of::<Overview>(),
    Op::of::<manifest::Apply>(),
    Op::of::<manifest::Diff>(),
    Op::of::<manifest::Export>(),
    Op::of::<manifest::ListDrift>(),
];

/// Other names, as the old tools and people who guess have them: of nouns, and of verbs by noun.
const ALIASES: &[(&str, &str, &[&str])] = &[
    ("", "topics", &["topic"]),
    ("", "namespaces", &["namespace", "ns"]),
    ("", "schemas", &["schema"]),
    ("", "brokers", &["broker"]),
    ("brokers", "leader-broker", &["leader"]),
    ("namespaces", "policies", &["get-policies"]),
    ("schemas", "check", &["check-compatibility"]),
    ("schemas", "list-subjects", &["list", "subjects"]),
    ("topics", "create", &["new"]),
    ("topics", "delete", &["remove", "rm"]),
    ("topics", "list", &["ls"]),
    ("topics", "describe", &["get", "show"]),
    ("topics", "create-subscription", &["subscribe"]),
    ("topics", "replay-dlq", &["replay"]),
];

fn with_aliases(command: Command, noun: &str) -> Command {
    let name = command.get_name().to_owned();
    command.aliases(aliases(noun, &name).iter().copied())
}

/// Other names of a noun (of `""`) or of a verb.
pub(crate) fn aliases(noun: &str, name: &str) -> &'static [&'static str] {
    let known = ALIASES.iter().find(|(of, verb, _)| *of == noun && *verb == name);
    known.map_or(&[], |(_, _, aliases)| aliases)
}

/// Adds all operations to a command line, as `noun verb`.
pub fn commands(parent: Command) -> Command {
    let nouns = NOUNS.iter().map(|(noun, about)| {
        let verbs = OPS.iter().filter(|op| op.spec.path.0 == *noun).map(Op::command);
        let noun_command = Command::new(*noun)
            .about(*about)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(verbs.map(|verb| with_aliases(verb, noun)));
        with_aliases(noun_command, "")
    });
    // What is about everything at once has no noun.
    let bare = OPS.iter().filter(|op| op.spec.path.0.is_empty()).map(Op::command);
    parent
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(nouns)
        .subcommands(bare)
}

/// The call that a command line with [`commands`] asks for.
///
/// # Errors
/// What is wrong with it.
pub fn find(matches: &ArgMatches) -> Result<Call, clap::Error> {
    let op = matches.subcommand().and_then(|(first, of_first)| {
        let bare = OPS.iter().find(|op| op.spec.path == ("", first));
        match (bare, of_first.subcommand()) {
            (Some(op), _) => Some((op, of_first)),
            (None, Some((verb, of_verb))) => {
                let op = OPS.iter().find(|op| op.spec.path == (first, verb))?;
                Some((op, of_verb))
            }
            (None, None) => None,
        }
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
            let is_known = noun.is_empty() || NOUNS.iter().any(|(known, _)| *known == noun);
            assert!(is_known, "{noun} has no line of help");
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
            let line = ["ctl", noun, verb].into_iter().filter(|word| !word.is_empty());
            let line = line.chain(op.spec.example.split_whitespace());
            let call = parse(&line.collect::<Vec<_>>());
            let call = call.unwrap_or_else(|error| panic!("{noun} {verb}: {error}"));
            assert_eq!(call.op.spec.path, op.spec.path);
        }
    }

    #[test]
    fn a_typo_is_told_the_nearest_name() {
        for (line, nearest) in [
            (["ctl", "topcs", "create"], "topics"),
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
