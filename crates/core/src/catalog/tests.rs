//! Tests of what the catalog answers; what changes it is tested with the changes.

use super::*;
use crate::change::{
    AttachConsumer, Change, ConfigureTopicSchema, CreateTopic, DeleteSchema, DeleteTopic,
    RegisterSchema, SetCompatibility, SetFailurePolicy,
};
use crate::ids::Offset;
use crate::intent::{Delivery, Intent, WalSyncMode};
use crate::name::{ConsumerName, SubscriptionName};
use crate::policy::{FailurePolicy, SubscriptionType};
use crate::schema::{Compatibility, JsonLevel, SchemaType, SubjectName, ValidationPolicy};
use expect_test::{expect, expect_file};

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

fn subscription(name: &str) -> SubscriptionName {
    SubscriptionName::parse(name).expect("well formed")
}

fn create(name: &str, partitions: Option<u32>, intent: Option<Intent>) -> Change {
    CreateTopic {
        name: topic(name),
        partitions,
        intent,
        delivery: Delivery::Reliable,
        schema_subject: None,
        dead_letter_topic: None,
        implicit: topic(name).partition().is_some(),
    }
    .into()
}

fn attach(id: TopicId, consumer: &str) -> Change {
    AttachConsumer {
        topic: id,
        subscription: subscription("workers"),
        kind: SubscriptionType::Shared,
        start: Offset(3),
        consumer: ConsumerName::parse(consumer).expect("well formed"),
        key_filters: vec![],
    }
    .into()
}

fn take(catalog: &mut Catalog, at: u64, change: Change) -> Outcome {
    catalog.apply(&Command::new(change, WallMs(at))).expect("the change is taken")
}

/// A catalog with a bit of everything.
fn sample() -> Catalog {
    let mut catalog = Catalog::default();
    take(&mut catalog, 10, create("/default/jobs", Some(2), Some(Intent::TaskQueue)));
    take(&mut catalog, 11, create("/default/jobs-2", None, None));
    let mut subject = create("/default/live", None, Some(Intent::Realtime));
    if let Change::CreateTopic(create) = &mut subject {
        create.schema_subject = Some("live-value".into());
    }
    take(&mut catalog, 12, subject);
    take(&mut catalog, 13, attach(TopicId(1), "w-1"));
    let policy = SetFailurePolicy {
        topic: topic("/default/jobs-2"),
        subscription: subscription("later"),
        policy: FailurePolicy::default(),
    };
    take(&mut catalog, 14, policy.into());
    catalog
}

fn subject(name: &str) -> SubjectName {
    SubjectName::parse(name).expect("well formed")
}

fn register(name: &str, definition: &str, expects: u64) -> Change {
    RegisterSchema {
        subject: subject(name),
        schema_type: SchemaType::JsonSchema,
        definition: definition.into(),
        fingerprint: format!("sha256:of-{definition}").into(),
        references: [].into(),
        description: "a live value".into(),
        created_by: "ann".into(),
        tags: vec!["live".into()],
        by: "ann from 127.0.0.1".into(),
        expects,
    }
    .into()
}

/// The same, with schemas.
fn sample_with_schemas() -> Catalog {
    let mut catalog = sample();
    take(&mut catalog, 15, register("live-value", "true", 0));
    take(&mut catalog, 16, register("https://acme.example/a%.json", "{}", 0));
    let compatibility = SetCompatibility {
        subject: subject("live-value"),
        mode: Some(Compatibility::Full),
        json: Some(JsonLevel::Strict),
        protobuf: None,
        by: "bob".into(),
    };
    take(&mut catalog, 17, compatibility.into());
    let configure = ConfigureTopicSchema {
        topic: topic("/default/live"),
        subject: subject("live-value"),
        validation_policy: ValidationPolicy::Enforce,
        enable_payload_validation: true,
        by: "bob".into(),
    };
    take(&mut catalog, 18, configure.into());
    catalog
}

#[test]
fn a_new_catalog_has_its_two_namespaces() {
    let catalog = Catalog::default();
    let names: Vec<&str> = catalog.namespaces().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [DEFAULT_NAMESPACE, SYSTEM_NAMESPACE]);
    assert_eq!(catalog.topics().count(), 0);
    assert_eq!(catalog.incarnation(), Incarnation(0));
}

#[test]
fn the_documents_are_those_of_the_seed() {
    let mut text = String::new();
    for (key, value) in sample_with_schemas().documents("") {
        text.push_str(&format!("{key} {value}\n"));
    }
    expect_file!["../../../../docs/formats/golden/catalog-documents.txt"].assert_eq(&text);
}

#[test]
fn the_snapshot_is_pinned() {
    let bytes = sample().encode();
    let text = String::from_utf8(bytes).expect("JSON is text") + "\n";
    expect_file!["../../../../docs/formats/golden/catalog-snapshot.json"].assert_eq(&text);
    assert_eq!(Catalog::decode(text.as_bytes()), Ok(sample()));
}

#[test]
fn the_snapshot_with_schemas_is_pinned() {
    let bytes = sample_with_schemas().encode();
    let text = String::from_utf8(bytes).expect("JSON is text") + "\n";
    expect_file!["../../../../docs/formats/golden/catalog-snapshot-schemas.json"].assert_eq(&text);
    assert_eq!(Catalog::decode(text.as_bytes()), Ok(sample_with_schemas()));
    for (good, bad) in [
        (r#""next_schema":3"#, r#""next_schema":2"#),
        (r#""next_version":2"#, r#""next_version":1"#),
        (r#"{"id":2,"revision""#, r#"{"id":1,"revision""#),
    ] {
        assert!(text.contains(good), "{good}");
        let fault = Catalog::decode(text.replace(good, bad).as_bytes()).expect_err(bad);
        assert!(fault.message.contains("subject"), "{fault}");
    }
}

#[test]
fn a_subject_without_versions_keeps_its_history_and_gives_way_when_room_is_needed() {
    let mut catalog = Catalog::default();
    for at in 0..SUBJECTS_MAX as u64 {
        take(&mut catalog, at, register(&format!("s{at}"), "true", 0));
    }
    let full = catalog.apply(&Command::new(register("one more", "true", 0), WallMs(1)));
    assert_eq!(full.expect_err("full").kind, FaultKind::Exhausted);
    for name in ["s7", "s3"] {
        let delete = DeleteSchema { subject: subject(name), version: None, by: "bob".into() };
        take(&mut catalog, if name == "s3" { 20_000 } else { 20_001 }, delete.into());
        assert_eq!(catalog.subject(name), None);
        assert!(catalog.document(&format!("/schemas/{name}/history")).is_some());
    }
    take(&mut catalog, 20_002, register("one more", "true", 0));
    assert_eq!(catalog.subject_record("s3"), None, "the longest empty one gave way");
    let kept = catalog.subject_record("s7").expect("kept").revision;
    let Outcome::SchemaRegistered { version, .. } =
        take(&mut catalog, 20_003, register("s7", "true", kept))
    else {
        panic!("registered")
    };
    assert_eq!(version, 2, "a version's number is not given again");
}

#[test]
fn an_unreadable_snapshot_says_why() {
    let refusal = |text: &str| Catalog::decode(text.as_bytes()).expect_err(text).message;
    let text = String::from_utf8(sample().encode()).expect("JSON is text");
    expect!["catalog snapshot needs level 9, this version of danube knows level 4; start a version that knows level 9"]
        .assert_eq(&refusal(r#"{"level": 9, "flights": []}"#));
    expect!["catalog snapshot is damaged: EOF while parsing a value at line 1 column 0"]
        .assert_eq(&refusal(""));
    expect!["catalog snapshot is damaged: topics `/default/jobs-part-0` and `/default/jobs-part-1` share number 1"]
        .assert_eq(&refusal(&text.replace(r#""id":2,"#, r#""id":1,"#)));
    expect!["catalog snapshot is damaged: topic `/default/jobs-2` has the unused number 4"]
        .assert_eq(&refusal(&text.replace(r#""next_topic":6"#, r#""next_topic":3"#)));
}

#[test]
fn a_prefix_ends_at_a_slash() {
    let catalog = sample_with_schemas();
    let keys = |prefix: &str| -> Vec<String> {
        catalog.documents(prefix).into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys("/topics/default/jobs"), ["/topics/default/jobs"]);
    assert_eq!(keys("/topics/default/jobs/"), ["/topics/default/jobs"]);
    assert_eq!(
        keys("/topics/default/jobs-2"),
        [
            "/topics/default/jobs-2/delivery",
            "/topics/default/jobs-2/subscriptions/later/failure_policy"
        ]
    );
    for nothing in
        ["/topic", "/topics/def", "topics", "/topics/default/job", "/x/y", "//", "/topics//"]
    {
        assert_eq!(keys(nothing), Vec::<String>::new(), "{nothing}");
    }
    assert_eq!(keys("/"), keys(""));
    let whole = keys("");
    let parts = [
        "/topics",
        "/namespaces",
        "/topics/default",
        "/namespaces/system/policy",
        "/schemas",
        "/schemas/live-value/versions",
        "/schemas/https:%2F%2Facme.example%2Fa%25.json",
    ];
    for part in parts {
        let wanted: Vec<String> = whole
            .iter()
            .filter(|key| *key == part || key.starts_with(&format!("{part}/")))
            .cloned()
            .collect();
        assert_eq!(keys(part), wanted);
        assert!(!wanted.is_empty());
    }
    assert_eq!(catalog.document("/topics/default/jobs"), Some(2.into()));
    assert_eq!(catalog.document("/topics/default/jobs/"), None);
    assert_eq!(catalog.document("/topics/default/jobs-2"), None, "a plain topic has no count");
    assert_eq!(
        catalog.document("/namespaces/default/topics/default/jobs-2"),
        Some(serde_json::Value::Null)
    );
}

#[test]
fn partitions_go_by_number_and_take_no_strangers() {
    let mut catalog = Catalog::default();
    for name in ["/default/t-part-10", "/default/t-part-2", "/default/tt-part-0"] {
        take(&mut catalog, 1, create(name, None, None));
    }
    take(&mut catalog, 1, create("/default/t-part-x", None, None));
    let names = |base: &str| -> Vec<String> {
        catalog.partitions(&topic(base)).iter().map(TopicName::to_string).collect()
    };
    assert_eq!(names("/default/t"), ["/default/t-part-2", "/default/t-part-10"]);
    assert_eq!(names("/default/t-part-2"), ["/default/t-part-2"]);
    assert_eq!(names("/default/none"), Vec::<String>::new());
    assert_eq!(names(&format!("/default/{}", "x".repeat(255))), Vec::<String>::new());
    assert_eq!(catalog.partition_count(&topic("/default/t")), None, "made one by one");
}

#[test]
fn a_namespace_lists_its_own_topics() {
    let mut catalog = sample();
    for name in ["a", "a-b"] {
        let name = NamespaceName::parse(name).expect("well formed");
        take(&mut catalog, 1, crate::change::CreateNamespace { name }.into());
    }
    for name in ["/a/-", "/a/ü", "/a-b/x"] {
        take(&mut catalog, 1, create(name, None, None));
    }
    let a = NamespaceName::parse("a").expect("well formed");
    let names: Vec<&str> = catalog.topics_in(&a).map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["/a/-", "/a/ü"]);
}

#[test]
fn dead_letters_keep_what_their_source_kept() {
    let catalog = sample();
    let dead_letters = catalog.topic(&topic("/default/jobs-dlq")).expect("made along");
    assert_eq!(dead_letters.wal_sync_mode(), WalSyncMode::FsyncBatch);
    assert_eq!(dead_letters.delivery, Delivery::Reliable);
    expect![[r#"{"intent":"event_stream","delivery":"Reliable","wal_sync_mode":"fsync_batch","max_retries":3,"backoff_ms":500,"poison_policy":"block","dlq_suffix":null,"persistence":"wal"}"#]]
        .assert_eq(&serde_json::to_string(&dead_letters.settings).expect("plain data"));
    let plain = catalog.topic(&topic("/default/jobs-2")).expect("made");
    assert_eq!(plain.wal_sync_mode(), WalSyncMode::OsCacheFlush, "the default without an intent");
}

#[test]
fn a_subscription_inherits_once_and_keeps_what_was_set() {
    let mut catalog = sample();
    let policy = |catalog: &Catalog, name: &str, sub: &str| {
        catalog.topic(&topic(name)).and_then(|t| t.failure_policy(&subscription(sub)).cloned())
    };
    let inherited = policy(&catalog, "/default/jobs-part-0", "workers").expect("reliable");
    assert_eq!(inherited.max_redelivery_count, 5);
    assert_eq!(inherited.dead_letter_topic, Some(topic("/default/jobs-dlq")));

    // Set before anybody subscribed, on both partitions; part-0 has the subscription already.
    let own = FailurePolicy { max_redelivery_count: 8, ..inherited };
    let set = SetFailurePolicy {
        topic: topic("/default/jobs"),
        subscription: subscription("workers"),
        policy: own.clone(),
    };
    take(&mut catalog, 20, set.into());
    take(&mut catalog, 21, attach(TopicId(2), "w-2"));
    for name in ["/default/jobs-part-0", "/default/jobs-part-1"] {
        assert_eq!(policy(&catalog, name, "workers"), Some(own.clone()), "{name}");
        let topic = catalog.topic(&topic(name)).expect("made");
        assert_eq!(topic.policies_ahead.size(), 0);
    }

    // No policy where nothing can fail, and the fallback where nobody said anything.
    let id = |catalog: &Catalog, name: &str| catalog.topic(&topic(name)).expect("made").id;
    let (live, plain) = (id(&catalog, "/default/live"), id(&catalog, "/default/jobs-2"));
    take(&mut catalog, 22, attach(live, "w-1"));
    take(&mut catalog, 23, attach(plain, "w-1"));
    assert_eq!(policy(&catalog, "/default/live", "workers"), None);
    assert_eq!(policy(&catalog, "/default/jobs-2", "workers"), Some(FailurePolicy::default()));
}

#[test]
fn only_the_latest_consumers_are_remembered() {
    let mut catalog = sample();
    for at in 0..CONSUMERS_MAX as u64 + 1 {
        take(&mut catalog, 100 + at, attach(TopicId(1), &format!("c-{at}")));
    }
    let (_, topic) = catalog.topic_by_id(TopicId(1)).expect("made");
    let knows = |name: &str| {
        let name = ConsumerName::parse(name).expect("well formed");
        topic.knows_consumer(&subscription("workers"), SubscriptionType::Shared, &name, &[])
    };
    let consumers = &topic.subscriptions.get(&subscription("workers")).expect("made").consumers;
    assert_eq!(consumers.size(), CONSUMERS_MAX);
    assert!(!knows("w-1") && !knows("c-0"), "the oldest gave way");
    assert!(knows("c-1") && knows(&format!("c-{CONSUMERS_MAX}")));
}

#[test]
fn a_topic_made_again_is_another_topic() {
    let mut catalog = sample();
    let name = topic("/default/jobs-2");
    let first = catalog.topic(&name).expect("made").id;
    take(&mut catalog, 30, DeleteTopic { name: name.clone() }.into());
    assert_eq!(catalog.topic_by_id(first), None);
    take(&mut catalog, 31, create("/default/jobs-2", None, None));
    let second = catalog.topic(&name).expect("made");
    assert!(second.id > first);
    assert_eq!(second.policies_ahead.size(), 0, "nothing is left of the first");
}

#[test]
fn a_catalog_can_be_shared_between_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<std::sync::Arc<Catalog>>();
}
