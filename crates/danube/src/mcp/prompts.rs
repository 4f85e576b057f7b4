//! Prompts: how an assistant goes about the three tasks that operators have most often.

use rmcp::model::{ErrorData, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

const HEALTH: &str = "cluster_health_check";
const TRIAGE: &str = "dead_letter_triage";
const EVOLUTION: &str = "manage_schema_evolution";

/// All prompts.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |name: &str, about: &str, required| {
        PromptArgument::new(name).with_description(about).with_required(required)
    };
    vec![
        Prompt::new(HEALTH, Some("Find out whether the broker and its topics are well"), None),
        Prompt::new(
            TRIAGE,
            Some("Find out why messages failed for good, and what to do with them"),
            Some(vec![argument("topic", "The topic, or its dead-letter topic", true)]),
        ),
        Prompt::new(
            EVOLUTION,
            Some("Bring a schema to its next version without breaking anybody"),
            Some(vec![
                argument("subject", "The schema subject", true),
                argument("schema_type", "avro, json_schema or protobuf", false),
            ]),
        ),
    ]
}

/// One prompt with its arguments put in.
pub(super) fn get(
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<GetPromptResult, ErrorData> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let wanted = |argument: &str| {
        text(argument).ok_or_else(|| {
            ErrorData::invalid_params(format!("prompt `{name}` needs `{argument}`"), None)
        })
    };
    let says = match name {
        HEALTH => "Check the health of this Danube broker, reading only.\n\
             1. `cluster_status` and `list_brokers`: is every broker active?\n\
             2. `list_topics` for each of `list_namespaces`.\n\
             3. For topics with subscriptions, `describe_topic`: look for a growing backlog, blocked \
             messages, subscriptions without consumers.\n\
             4. Where something stands still, `why_not_delivering` says the first reason.\n\
             5. `list_drift`: has anything moved away from its manifest?\n\
             Report in a short table what is wrong, how bad it is, and what you propose. Change \
             nothing."
            .to_owned(),
        TRIAGE => {
            let topic = wanted("topic")?;
            let dead = if topic.ends_with("-dlq") { topic.to_owned() } else { format!("{topic}-dlq") };
            format!(
                "Messages of `{topic}` failed for good. Find out why.\n\
                 1. `peek_messages` on `{dead}`. Each message says where it came from \
                 (x-original-topic, x-original-subscription, x-original-topic-offset), how often it \
                 was tried (x-delivery-attempt) and why it failed (x-failure-reason).\n\
                 2. Group them by reason and subscription; show one example of each group.\n\
                 3. `get_subscription_failure_policy` of each subscription: do timeout and retries \
                 fit the work?\n\
                 4. Say for each group whether it is the message, the consumer or the policy that \
                 must change.\n\
                 5. Only after the user has agreed that the cause is mended: `replay_dlq` with \
                 `dry_run: true`, show the counts, then for real if that tool is offered."
            )
        }
        EVOLUTION => {
            let subject = wanted("subject")?;
            let language = text("schema_type").map(|kind| format!(" (a {kind} schema)"));
            format!(
                "Help to bring schema subject `{subject}`{} to its next version.\n\
                 1. `get_schema` and `list_schema_versions`: what is there.\n\
                 2. `get_schema_compatibility_mode`: what the subject promises.\n\
                 3. Ask the user for the change, write the new definition, and check it with \
                 `check_schema_compatibility`. Explain each break by its path and its example.\n\
                 4. Offer a compatible way: an optional field, a default, a new subject.\n\
                 5. `register_schema` only when the check passes and the user agrees.\n\
                 Never lower the compatibility mode to get a definition through.",
                language.unwrap_or_default()
            )
        }
        other => {
            return Err(ErrorData::invalid_params(format!("prompt `{other}` is not known"), None));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, says)]))
}
