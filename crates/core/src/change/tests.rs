//! Tests of the changes: every outcome, the stored form, and laws over random histories.

mod histories;
mod operations;

use super::*;
use crate::catalog::POLICIES_AHEAD_MAX;
use crate::ids::Offset;
use crate::intent::{Delivery, Intent, PoisonPolicy};
use crate::name::{ConsumerName, NamespaceName, SubscriptionName};
use crate::policy::{FailurePolicy, SubscriptionType};
use crate::schema::{
    Compatibility, JsonLevel, ProtobufLevel, SchemaType, SubjectName, ValidationPolicy,
};
use expect_test::{expect, expect_file};
use std::collections::{BTreeMap, BTreeSet};

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

fn namespace(name: &str) -> NamespaceName {
    NamespaceName::parse(name).expect("well formed")
}

fn subscription(name: &str) -> SubscriptionName {
    SubscriptionName::parse(name).expect("well formed")
}

fn create(name: &str) -> CreateTopic {
    CreateTopic {
        name: topic(name),
        partitions: None,
        intent: None,
        delivery: Delivery::Reliable,
        schema_subject: None,
        dead_letter_topic: None,
        implicit: false,
    }
}

fn implicit(name: &str) -> CreateTopic {
    CreateTopic { implicit: true, delivery: Delivery::NonReliable, ..create(name) }
}

/// A queue whose dead letters go to `target`.
fn failing(target: &str) -> CreateTopic {
    CreateTopic { dead_letter_topic: Some(topic(target)), ..queue("/default/t") }
}

fn queue(name: &str) -> CreateTopic {
    CreateTopic { intent: Some(Intent::TaskQueue), ..create(name) }
}

fn attach(id: u32, name: &str, consumer: &str) -> AttachConsumer {
    AttachConsumer {
        topic: TopicId(id),
        subscription: subscription(name),
        kind: SubscriptionType::Shared,
        start: Offset(7),
        consumer: ConsumerName::parse(consumer).expect("well formed"),
        key_filters: vec![],
    }
}

fn dead_letter_to(target: &str) -> FailurePolicy {
    FailurePolicy {
        poison_policy: PoisonPolicy::DeadLetter,
        dead_letter_topic: Some(topic(target)),
        ..FailurePolicy::default()
    }
}

fn set(name: &str, policy: FailurePolicy) -> SetFailurePolicy {
    SetFailurePolicy { topic: topic(name), subscription: subscription("s"), policy }
}

fn window(name: &str, max_unacked_messages: u32) -> SetDispatchConfig {
    SetDispatchConfig { topic: topic(name), subscription: subscription("s"), max_unacked_messages }
}

fn delete(name: &str) -> DeleteTopic {
    DeleteTopic { name: topic(name) }
}

fn subject(name: &str) -> SubjectName {
    SubjectName::parse(name).expect("well formed")
}

/// Version number `revision + 1` of `name`, if nothing else happened to it.
fn register(name: &str, definition: &str, revision: u64) -> RegisterSchema {
    RegisterSchema {
        subject: subject(name),
        schema_type: SchemaType::Avro,
        definition: definition.into(),
        fingerprint: format!("sha256:of-{definition}").into(),
        references: BTreeMap::new(),
        description: "".into(),
        created_by: "ann".into(),
        tags: vec![],
        by: "ann from 127.0.0.1".into(),
        expects: revision,
    }
}

fn delete_schema(name: &str, version: Option<u32>) -> DeleteSchema {
    DeleteSchema { subject: subject(name), version, by: "bob".into() }
}

fn compatibility(name: &str, mode: Compatibility) -> SetCompatibility {
    let subject = subject(name);
    SetCompatibility { subject, mode: Some(mode), json: None, protobuf: None, by: "bob".into() }
}

fn configure(topic_name: &str, name: &str) -> ConfigureTopicSchema {
    ConfigureTopicSchema {
        topic: topic(topic_name),
        subject: subject(name),
        validation_policy: ValidationPolicy::Enforce,
        enable_payload_validation: true,
        by: "bob".into(),
    }
}

fn policy_of(topic_name: &str, validation_policy: ValidationPolicy) -> SetValidationPolicy {
    SetValidationPolicy {
        topic: topic(topic_name),
        validation_policy,
        enable_payload_validation: false,
        by: "bob".into(),
    }
}

fn adopt(topic_name: &str, name: &str) -> AdoptSchemaSubject {
    AdoptSchemaSubject { topic: topic(topic_name), subject: subject(name), by: "p".into() }
}

fn unsubscribe(name: &str) -> DeleteSubscription {
    DeleteSubscription { topic: topic(name), subscription: subscription("s") }
}

/// A catalog after `changes`, all of which must be taken.
fn after(changes: Vec<Change>) -> Catalog {
    let mut catalog = Catalog::default();
    for change in changes {
        catalog.apply(&Command::new(change, WallMs(1))).expect("the set-up is taken");
    }
    catalog
}

fn tag(change: &Change) -> String {
    let stored = serde_json::to_value(change).expect("plain data");
    let tags = stored.as_object().expect("tagged");
    tags.keys().next().expect("tagged").clone()
}

/// How a change ends, what was there before, and the change.
type Row = (&'static str, Vec<Change>, Change);

fn create_topic_rows() -> Vec<Row> {
    let t = "/default/t";
    let long = |len: usize| format!("/default/{}", "x".repeat(len));
    let parted = |count| CreateTopic { partitions: Some(count), ..create(t) };
    vec![
        ("created plain", vec![], create(t).into()),
        ("created with partitions", vec![], parted(2).into()),
        ("created one partition", vec![], implicit("/default/t-part-4").into()),
        ("created with dead letters", vec![], queue(t).into()),
        (
            "created, keeping the dead letters",
            vec![create("/default/t-dlq").into()],
            queue(t).into(),
        ),
        (
            "created as dead letters of its source",
            vec![queue(t).into(), delete("/default/t-dlq").into()],
            implicit("/default/t-dlq").into(),
        ),
        ("reserved: precondition", vec![], implicit("/system/_events").into()),
        ("no namespace: not_found", vec![], create("/agents/t").into()),
        ("partition by name: invalid", vec![], create("/default/t-part-0").into()),
        (
            "partition beyond the count: precondition",
            vec![parted(2).into()],
            implicit("/default/t-part-2").into(),
        ),
        ("partition number too high: invalid", vec![], implicit("/default/t-part-1024").into()),
        ("partition of a partition: invalid", vec![], implicit("/default/t-part-0-part-1").into()),
        ("partition count: invalid", vec![], parted(0).into()),
        ("partition count: invalid", vec![], parted(1025).into()),
        ("name too long: invalid", vec![], queue(&long(252)).into()),
        (
            "name too long: invalid",
            vec![],
            CreateTopic { partitions: Some(11), ..create(&long(248)) }.into(),
        ),
        (
            "schema subject: invalid",
            vec![],
            CreateTopic { schema_subject: Some(String::new()), ..create(t) }.into(),
        ),
        ("exists: already_exists", vec![create(t).into()], implicit(t).into()),
        ("exists: already_exists", vec![parted(2).into()], implicit("/default/t-part-1").into()),
        ("exists: already_exists", vec![parted(2).into()], parted(3).into()),
        ("plain and partitioned: already_exists", vec![create(t).into()], parted(2).into()),
        ("plain and partitioned: already_exists", vec![parted(2).into()], implicit(t).into()),
        (
            "plain and partitioned: already_exists",
            vec![create(t).into()],
            implicit("/default/t-part-0").into(),
        ),
        (
            "dead letters not reliable: precondition",
            vec![implicit("/default/t-dlq").into()],
            queue(t).into(),
        ),
        (
            "dead letters partitioned: precondition",
            vec![implicit("/default/t-dlq-part-0").into()],
            queue(t).into(),
        ),
        ("created with dead letters elsewhere", vec![], failing("/default/failed").into()),
        ("its own dead letters: invalid", vec![], failing(t).into()),
        (
            "nothing fails: precondition",
            vec![],
            CreateTopic { intent: Some(Intent::Realtime), ..failing("/default/failed") }.into(),
        ),
    ]
}

fn topic_rows() -> Vec<Row> {
    let t = "/default/t";
    let parted = || CreateTopic { partitions: Some(2), ..queue(t) };
    vec![
        ("deleted plain", vec![queue(t).into()], delete(t).into()),
        ("deleted with partitions", vec![parted().into()], delete(t).into()),
        (
            "deleted with partitions",
            vec![implicit("/default/t-part-1").into(), implicit("/default/t-part-10").into()],
            delete(t).into(),
        ),
        (
            "deleted one partition",
            vec![implicit("/default/t-part-1").into()],
            delete("/default/t-part-1").into(),
        ),
        (
            "partition alone: precondition",
            vec![parted().into()],
            delete("/default/t-part-1").into(),
        ),
        ("unknown: not_found", vec![create("/default/tt").into()], delete(t).into()),
    ]
}

fn namespace_rows() -> Vec<Row> {
    let agents = || CreateNamespace { name: namespace("agents") };
    let gone = |name| DeleteNamespace { name: namespace(name) };
    let crowd = (0..6).map(|i| create(&format!("/agents/t{i}")).into());
    vec![
        ("created", vec![], agents().into()),
        ("exists: already_exists", vec![agents().into()], agents().into()),
        ("deleted", vec![agents().into()], gone("agents").into()),
        ("built in: precondition", vec![], gone("system").into()),
        ("unknown: not_found", vec![], gone("agents").into()),
        (
            "has topics: precondition",
            std::iter::once(agents().into()).chain(crowd).collect(),
            gone("agents").into(),
        ),
    ]
}

fn attach_rows() -> Vec<Row> {
    let there = || vec![create("/default/t").into(), attach(1, "s", "c").into()];
    let filtered =
        |filters: Vec<String>| AttachConsumer { key_filters: filters, ..attach(1, "s", "c") };
    let exclusive = AttachConsumer { kind: SubscriptionType::Exclusive, ..attach(1, "s", "c") };
    vec![
        (
            "subscription created",
            vec![create("/default/t").into()],
            filtered(vec!["eu-*".into()]).into(),
        ),
        ("consumer added", there(), attach(1, "s", "d").into()),
        ("filters changed", there(), filtered(vec!["eu-*".into()]).into()),
        ("kind adopted", there(), exclusive.into()),
        ("unchanged", there(), attach(1, "s", "c").into()),
        ("unknown topic: not_found", there(), attach(2, "s", "c").into()),
        ("filters: invalid", there(), filtered(vec!["x".into(); KEY_FILTERS_MAX + 1]).into()),
        ("filters: invalid", there(), filtered(vec!["x".repeat(KEY_FILTER_LEN_MAX + 1)]).into()),
    ]
}

fn subscription_rows() -> Vec<Row> {
    let t = "/default/t";
    let parted = CreateTopic { partitions: Some(2), ..create(t) };
    vec![
        ("deleted", vec![create(t).into(), attach(1, "s", "c").into()], unsubscribe(t).into()),
        (
            "deleted on partitions",
            vec![parted.into(), attach(2, "s", "c").into()],
            unsubscribe(t).into(),
        ),
        ("unknown topic: not_found", vec![], unsubscribe(t).into()),
        (
            "unknown subscription: not_found",
            vec![create(t).into(), attach(1, "other", "c").into()],
            unsubscribe(t).into(),
        ),
    ]
}

fn policy_rows() -> Vec<Row> {
    let (t, d) = ("/default/t", "/default/d");
    let policy = FailurePolicy::default;
    let with = |dead: CreateTopic| vec![create(t).into(), dead.into()];
    let ahead = (0..POLICIES_AHEAD_MAX).map(|i| {
        let subscription = subscription(&format!("ahead-{i}"));
        SetFailurePolicy { subscription, ..set(t, policy()) }.into()
    });
    vec![
        ("set", vec![create(t).into(), attach(1, "s", "c").into()], set(t, policy()).into()),
        (
            "set on partitions",
            vec![CreateTopic { partitions: Some(2), ..create(t) }.into()],
            set(t, policy()).into(),
        ),
        ("set ahead", with(create(d)), set(t, dead_letter_to(d)).into()),
        ("unknown topic: not_found", vec![], set(t, policy()).into()),
        ("not reliable: precondition", vec![implicit(t).into()], set(t, policy()).into()),
        (
            "policy: invalid",
            vec![create(t).into()],
            set(t, FailurePolicy { dead_letter_topic: None, ..dead_letter_to(d) }).into(),
        ),
        ("own dead letters: invalid", vec![create(t).into()], set(t, dead_letter_to(t)).into()),
        (
            "no dead-letter topic: precondition",
            vec![create(t).into()],
            set(t, dead_letter_to(d)).into(),
        ),
        (
            "dead letters partitioned: precondition",
            with(CreateTopic { partitions: Some(1), ..create(d) }),
            set(t, dead_letter_to(d)).into(),
        ),
        (
            "dead letters not reliable: precondition",
            with(implicit(d)),
            set(t, dead_letter_to(d)).into(),
        ),
        (
            "too many ahead: exhausted",
            std::iter::once(create(t).into()).chain(ahead).collect(),
            set(t, policy()).into(),
        ),
    ]
}

fn dispatch_rows() -> Vec<Row> {
    let t = "/default/t";
    let parted = CreateTopic { partitions: Some(2), ..create(t) };
    let there = || vec![create(t).into(), attach(1, "s", "c").into()];
    vec![
        ("set", there(), window(t, 10).into()),
        ("set on partitions", vec![parted.into(), attach(2, "s", "c").into()], window(t, 1).into()),
        ("unknown topic: not_found", vec![], window(t, 10).into()),
        ("unknown subscription: not_found", vec![create(t).into()], window(t, 10).into()),
        (
            "not reliable: precondition",
            vec![implicit(t).into(), attach(1, "s", "c").into()],
            window(t, 10).into(),
        ),
        ("window: invalid", there(), window(t, 0).into()),
        ("window: invalid", there(), window(t, UNACKED_MESSAGES_MAX + 1).into()),
    ]
}

fn register_rows() -> Vec<Row> {
    let first = || vec![register("a", "1", 0).into()];
    let gone = || vec![register("a", "1", 0).into(), delete_schema("a", None).into()];
    let crowd =
        (0..crate::catalog::VERSIONS_MAX as u64).map(|n| register("a", &n.to_string(), n).into());
    let long = |len: usize| -> std::sync::Arc<str> { "x".repeat(len).into() };
    let refers = RegisterSchema { references: [(subject("a"), 2)].into(), ..register("b", "1", 0) };
    vec![
        ("first version", vec![], register("a", "1", 0).into()),
        ("next version", first(), register("a", "2", 1).into()),
        ("registered before", first(), register("a", "1", 7).into()),
        ("subject came back", gone(), register("a", "1", 2).into()),
        ("changed meanwhile: retry", first(), register("a", "2", 0).into()),
        ("reference gone: retry", first(), refers.into()),
        (
            "text too long: invalid",
            vec![],
            RegisterSchema { description: long(DESCRIPTION_LEN_MAX + 1), ..register("a", "1", 0) }
                .into(),
        ),
        (
            "text too long: invalid",
            vec![],
            RegisterSchema { created_by: long(LABEL_LEN_MAX + 1), ..register("a", "1", 0) }.into(),
        ),
        (
            "text too long: invalid",
            vec![],
            RegisterSchema { tags: vec!["t".into(); TAGS_MAX + 1], ..register("a", "1", 0) }.into(),
        ),
        ("too many versions: exhausted", crowd.collect(), register("a", "more", 1000).into()),
    ]
}

fn delete_schema_rows() -> Vec<Row> {
    let two = || vec![register("a", "1", 0).into(), register("a", "2", 1).into()];
    let refers = RegisterSchema { references: [(subject("a"), 1)].into(), ..register("b", "1", 0) };
    let used = [two(), vec![create("/default/t").into(), configure("/default/t", "a").into()]];
    vec![
        ("version deleted", two(), delete_schema("a", Some(1)).into()),
        ("subject deleted", two(), delete_schema("a", None).into()),
        ("unknown subject: not_found", vec![], delete_schema("a", Some(1)).into()),
        ("unknown version: not_found", two(), delete_schema("a", Some(3)).into()),
        (
            "referred to: precondition",
            [two(), vec![refers.into()]].concat(),
            delete_schema("a", Some(1)).into(),
        ),
        ("in use: precondition", used.concat(), delete_schema("a", None).into()),
    ]
}

fn topic_schema_rows() -> Vec<Row> {
    let t = "/default/t";
    let parted = || CreateTopic { partitions: Some(2), ..create(t) };
    let a = || register("a", "1", 0).into();
    let b = || register("b", "1", 0).into();
    let with = |topic: CreateTopic| vec![a(), b(), topic.into()];
    let adopted = || vec![a(), b(), create(t).into(), adopt(t, "a").into()];
    let full = || compatibility("a", Compatibility::Full);
    vec![
        ("set", vec![a()], full().into()),
        ("unchanged", vec![a(), full().into()], full().into()),
        ("unknown subject: not_found", vec![], full().into()),
        ("set", with(create(t)), configure(t, "a").into()),
        ("set on partitions", with(parted()), configure(t, "a").into()),
        (
            "unchanged",
            [with(create(t)), vec![configure(t, "a").into()]].concat(),
            configure(t, "a").into(),
        ),
        ("unknown topic: not_found", vec![a()], configure(t, "a").into()),
        ("unknown subject: not_found", with(create(t)), configure(t, "c").into()),
        ("set", adopted(), policy_of(t, ValidationPolicy::None).into()),
        (
            "set on partitions",
            [with(parted()), vec![configure(t, "a").into()]].concat(),
            policy_of(t, ValidationPolicy::None).into(),
        ),
        ("unknown topic: not_found", vec![], policy_of(t, ValidationPolicy::None).into()),
        ("no subject: precondition", with(create(t)), policy_of(t, ValidationPolicy::Warn).into()),
        ("adopted", with(create(t)), adopt(t, "a").into()),
        ("unchanged", adopted(), adopt(t, "a").into()),
        ("unknown topic: not_found", vec![a()], adopt(t, "a").into()),
        ("unknown subject: not_found", with(create(t)), adopt(t, "c").into()),
        ("other subject: precondition", adopted(), adopt(t, "b").into()),
        (
            "created one partition, with the schema of the others",
            vec![a(), implicit("/default/t-part-0").into(), configure(t, "a").into()],
            implicit("/default/t-part-1").into(),
        ),
    ]
}

fn rows() -> Vec<Row> {
    let started = ("started", vec![StartIncarnation {}.into()], StartIncarnation {}.into());
    [
        namespace_rows(),
        create_topic_rows(),
        topic_rows(),
        attach_rows(),
        subscription_rows(),
        policy_rows(),
        dispatch_rows(),
        vec![started],
        register_rows(),
        delete_schema_rows(),
        topic_schema_rows(),
        operations::rows(),
    ]
    .concat()
}

#[test]
fn every_outcome_is_as_written() {
    let mut lines = String::new();
    for (end, setup, change) in rows() {
        let mut catalog = after(setup);
        let before = catalog.clone();
        let result = catalog.apply(&Command::new(change.clone(), WallMs(2)));
        let text = match &result {
            Ok(outcome) => serde_json::to_string(outcome).expect("plain data"),
            Err(fault) => {
                assert_eq!(catalog, before, "{end}: a refused change changes nothing");
                let kind = serde_json::to_value(fault.kind).expect("plain data");
                let kind = kind.as_str().expect("a unit variant");
                assert_eq!(end.split_once(": ").map(|(_, kind)| kind), Some(kind), "{end}");
                fault.message.clone()
            }
        };
        lines.push_str(&format!("{} | {end}\n    {text}\n", tag(&change)));
    }
    expect_file!["tests/outcomes.txt"].assert_eq(&lines);
}

#[test]
fn every_outcome_has_a_row() {
    let provoked: BTreeSet<(String, &str)> =
        rows().iter().map(|(end, _, change)| (tag(change), *end)).collect();
    let declared: BTreeSet<(String, &str)> = rows()
        .iter()
        .flat_map(|(_, _, change)| change.outcomes().iter().map(|end| (tag(change), *end)))
        .collect();
    assert_eq!(provoked, declared);
}

/// One of each change, with every field in use.
fn samples() -> Vec<Change> {
    vec![
        CreateNamespace { name: namespace("agents") }.into(),
        DeleteNamespace { name: namespace("agents") }.into(),
        CreateTopic {
            partitions: Some(3),
            schema_subject: Some("orders-value".into()),
            ..queue("/agents/tasks")
        }
        .into(),
        implicit("/default/events-part-0").into(),
        delete("/agents/tasks").into(),
        AttachConsumer { key_filters: vec!["eu-*".into()], ..attach(7, "workers", "w-1") }.into(),
        unsubscribe("/agents/tasks").into(),
        set("/agents/tasks", dead_letter_to("/agents/tasks-dlq")).into(),
        StartIncarnation {}.into(),
        window("/agents/tasks", 256).into(),
        RegisterSchema {
            references: [(subject("com.acme.Address"), 3)].into(),
            description: "orders as the shop sends them".into(),
            tags: vec!["shop".into()],
            ..register("orders-value", "{\"type\":\"record\"}", 4)
        }
        .into(),
        delete_schema("orders-value", Some(2)).into(),
        SetCompatibility {
            json: Some(JsonLevel::Strict),
            protobuf: Some(ProtobufLevel::Json),
            ..compatibility("orders-value", Compatibility::Full)
        }
        .into(),
        configure("/agents/tasks", "orders-value").into(),
        policy_of("/agents/tasks", ValidationPolicy::Warn).into(),
        adopt("/agents/tasks", "orders-value").into(),
    ]
    .into_iter()
    .chain(operations::samples())
    .collect()
}

/// A changed line here is a broken promise to every log and every other broker; raise the level.
#[test]
fn the_stored_form_of_each_change_is_pinned() {
    let lines: Vec<String> = samples()
        .into_iter()
        .map(|change| Command::new(change, WallMs(1_700_000_000_000)).encode().to_string())
        .collect();
    expect_file!["../../../../docs/formats/golden/catalog-changes.jsonl"]
        .assert_eq(&(lines.join("\n") + "\n"));
    for (line, change) in lines.iter().zip(samples()) {
        let stored = serde_json::from_str(line).expect("our own JSON");
        assert_eq!(Command::decode(&stored).map(|command| command.change), Ok(change));
    }
}

#[test]
fn a_command_that_cannot_be_read_says_what_is_needed() {
    let refusal = |stored: Value| Command::decode(&stored).expect_err("unreadable").message;
    expect!["catalog command of level 4 cannot be read by this version of danube, which knows level 4: unknown variant `fly`, expected one of `create_namespace`, `delete_namespace`, `create_topic`, `delete_topic`, `attach_consumer`, `delete_subscription`, `set_failure_policy`, `set_dispatch_config`, `start_incarnation`, `register_schema`, `delete_schema`, `set_compatibility`, `configure_topic_schema`, `set_validation_policy`, `adopt_schema_subject`, `set_namespace_policies`, `configure_topic`, `set_intent`, `add_partitions`, `create_subscription`, `apply_steps`; it is damaged or a version of the same level differs"]
        .assert_eq(&refusal(serde_json::json!({"level": 4, "change": {"fly": {}}})));
    expect!["catalog command of level 1 cannot be read by this version of danube, which knows level 4: unknown variant `fly`, expected one of `create_namespace`, `delete_namespace`, `create_topic`, `delete_topic`, `attach_consumer`, `delete_subscription`, `set_failure_policy`, `set_dispatch_config`, `start_incarnation`, `register_schema`, `delete_schema`, `set_compatibility`, `configure_topic_schema`, `set_validation_policy`, `adopt_schema_subject`, `set_namespace_policies`, `configure_topic`, `set_intent`, `add_partitions`, `create_subscription`, `apply_steps`; it is damaged or a version of the same level differs"]
        .assert_eq(&refusal(
            serde_json::json!({"level": 1, "stamp": {"at": 1}, "change": {"fly": {}}}),
        ));
    expect!["catalog command is damaged: no level in `[]`"]
        .assert_eq(&refusal(serde_json::json!([])));
    // A field that we do not know would be a part of the change that we skip.
    let mut stored = Command::new(StartIncarnation {}.into(), WallMs(1)).encode();
    stored["change"]["start_incarnation"]["twice"] = true.into();
    assert!(refusal(stored).contains("unknown field `twice`"));

    let mut catalog = Catalog::default();
    let command =
        Command { level: LEVEL + 1, ..Command::new(StartIncarnation {}.into(), WallMs(1)) };
    assert!(catalog.apply(&command).is_err());
    assert_eq!(catalog, Catalog::default());
}
