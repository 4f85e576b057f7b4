//! Laws that hold over random histories of commands.

use super::*;
use crate::ids::SubscriptionId;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn any_topic() -> impl Strategy<Value = TopicName> {
    let names = [
        "/default/a",
        "/default/a-part-0",
        "/default/a-part-2",
        "/default/a-dlq",
        "/default/ab",
        "/agents/a",
        "/agents/b-dlq",
        "/agents/b",
        "/system/a",
    ];
    prop::sample::select(names.to_vec()).prop_map(topic)
}

fn any_namespace() -> impl Strategy<Value = NamespaceName> {
    prop::sample::select(vec!["default", "agents", "tools"]).prop_map(namespace)
}

fn any_subscription() -> impl Strategy<Value = SubscriptionName> {
    prop::sample::select(vec!["s", "t"]).prop_map(subscription)
}

fn any_intent() -> impl Strategy<Value = Option<Intent>> {
    prop::option::of(prop::sample::select(vec![
        Intent::Realtime,
        Intent::EventStream,
        Intent::TaskQueue,
        Intent::AuditLog,
    ]))
}

fn any_create() -> impl Strategy<Value = Change> {
    (any_topic(), prop::option::of(0_u32..5), any_intent(), any::<[bool; 3]>()).prop_map(
        |(name, partitions, intent, [reliable, implicit, subject])| {
            let delivery = if reliable { Delivery::Reliable } else { Delivery::NonReliable };
            let schema_subject = subject.then(|| "orders".to_owned());
            CreateTopic {
                name,
                partitions,
                intent,
                delivery,
                schema_subject,
                dead_letter_topic: None,
                implicit,
            }
            .into()
        },
    )
}

fn any_attach() -> impl Strategy<Value = Change> {
    (0_u32..20, any_subscription(), any::<bool>(), 0_u8..3, any::<bool>()).prop_map(
        |(id, subscription, shared, consumer, filtered)| {
            let kind = if shared { SubscriptionType::Shared } else { SubscriptionType::KeyShared };
            let key_filters = if filtered { vec!["eu-*".to_owned()] } else { vec![] };
            let attach = attach(id, "s", &format!("c{consumer}"));
            AttachConsumer { subscription, kind, key_filters, ..attach }.into()
        },
    )
}

fn any_policy() -> impl Strategy<Value = Change> {
    (any_topic(), any_subscription(), prop::option::of(any_topic())).prop_map(
        |(topic, subscription, target)| {
            let policy = FailurePolicy {
                poison_policy: match target {
                    Some(_) => PoisonPolicy::DeadLetter,
                    None => PoisonPolicy::Drop,
                },
                dead_letter_topic: target,
                ..FailurePolicy::default()
            };
            SetFailurePolicy { topic, subscription, policy }.into()
        },
    )
}

/// Registrations, deletions and settings of two subjects, which may refer to each other.
fn any_schema_change() -> impl Strategy<Value = Change> {
    let name = || prop::sample::select(vec!["a", "b"]);
    let registered =
        (name(), 0_u8..6, 0_u64..6, any::<bool>()).prop_map(|(name, text, expects, refers)| {
            let references = match refers {
                true => [(subject("a"), 1)].into(),
                false => BTreeMap::new(),
            };
            RegisterSchema { references, ..register(name, &text.to_string(), expects) }.into()
        });
    prop_oneof![
        6 => registered,
        1 => (name(), prop::option::of(1_u32..5))
            .prop_map(|(name, version)| delete_schema(name, version).into()),
        1 => (name(), prop::sample::select(vec![Compatibility::None, Compatibility::Full]))
            .prop_map(|(name, mode)| compatibility(name, mode).into()),
        2 => (any_topic(), name()).prop_map(|(topic, name)| configure(topic.as_str(), name).into()),
        1 => any_topic().prop_map(|topic| policy_of(topic.as_str(), ValidationPolicy::None).into()),
        2 => (any_topic(), name()).prop_map(|(topic, name)| adopt(topic.as_str(), name).into()),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => any_schema_change(),
        6 => any_create(),
        4 => any_attach(),
        2 => any_policy(),
        2 => any_topic().prop_map(|name| DeleteTopic { name }.into()),
        1 => (any_topic(), any_subscription())
            .prop_map(|(topic, subscription)| DeleteSubscription { topic, subscription }.into()),
        1 => (any_topic(), any_subscription(), 0_u32..3).prop_map(
            |(topic, subscription, max)| {
                let max_unacked_messages = max * (UNACKED_MESSAGES_MAX - 1);
                SetDispatchConfig { topic, subscription, max_unacked_messages }.into()
            },
        ),
        1 => any_namespace().prop_map(|name| CreateNamespace { name }.into()),
        1 => any_namespace().prop_map(|name| DeleteNamespace { name }.into()),
        1 => Just(StartIncarnation {}.into()),
        4 => operations::any_change(|| any_topic().boxed(), any_subscription()),
    ]
}

/// Every number that was ever given, with what it was given to.
#[derive(Default)]
struct Given {
    topics: BTreeMap<TopicId, (TopicName, u64)>,
    subscriptions: BTreeMap<(TopicId, SubscriptionId), (SubscriptionName, u64)>,
    versions: BTreeMap<(SchemaId, u32), (SubjectName, u64)>,
}

impl Given {
    /// Times of creation are unique here, so a number that is used again shows another one.
    fn check(&mut self, catalog: &Catalog) {
        for (name, topic) in catalog.topics() {
            let now = (name.clone(), topic.created_at.0);
            assert_eq!(self.topics.entry(topic.id).or_insert(now.clone()), &now);
            for (name, record) in topic.subscriptions.iter() {
                let now = (name.clone(), record.created_at.0);
                let first = self.subscriptions.entry((topic.id, record.id));
                assert_eq!(first.or_insert(now.clone()), &now);
            }
        }
        for (name, record) in catalog.subjects() {
            for (number, version) in record.versions.iter() {
                let now = (name.clone(), version.created_at.0);
                let first = self.versions.entry((record.id, *number));
                assert_eq!(first.or_insert(now.clone()), &now);
            }
        }
    }
}

/// What a version refers to is there, each meaning is there once, and the history says it all.
fn check_subjects(catalog: &Catalog) {
    for (name, record) in catalog.subjects() {
        assert_eq!(catalog.subject_by_id(record.id).map(|(found, _)| found), Some(name));
        let mut fingerprints = BTreeSet::new();
        for (_, version) in record.versions.iter() {
            assert!(fingerprints.insert(version.fingerprint.clone()), "{name} has it twice");
            for (of, number) in &version.references {
                let known = catalog.subject(of.as_str());
                let there = known.is_some_and(|known| known.versions.contains_key(number));
                assert!(there || of == name, "{name} refers to {of} {number}");
            }
        }
        assert!(record.revision >= record.versions.size() as u64);
        assert!(!record.history.is_empty());
    }
}

fn check_invariants(catalog: &Catalog) {
    check_subjects(catalog);
    for (name, topic) in catalog.topics() {
        assert_eq!(catalog.topic_by_id(topic.id).map(|(found, _)| found), Some(name));
        assert!(catalog.namespace(&name.namespace()).is_some(), "{name} has no namespace");
        let base = name.base();
        assert!(base == *name || catalog.topic(&base).is_none(), "{base} is plain and partitioned");
        assert!(catalog.partitions(&base).contains(name));
        let key = format!("/topics{name}/delivery");
        assert_eq!(catalog.document(&key), Some(topic.delivery.as_str().into()), "{key}");
        let key = format!("/namespaces/{}/topics{name}", name.namespace());
        assert_eq!(catalog.document(&key), Some(Value::Null), "{key}");
        let intent = catalog.document(&format!("/topics{name}/intent"));
        assert_eq!(intent.is_some(), topic.settings.is_some());
        for (subscription, record) in topic.subscriptions.iter() {
            assert_eq!(record.failure_policy.is_some(), topic.delivery == Delivery::Reliable);
            let root = format!("/topics{name}/subscriptions/{subscription}");
            assert!(catalog.document(&root).is_some());
            let config = catalog.document(&format!("{root}/dispatch_config"));
            assert_eq!(config.is_some(), record.max_unacked_messages.is_some());
            let policy = catalog.document(&format!("{root}/failure_policy"));
            assert_eq!(policy.is_some(), record.failure_policy.is_some());
        }
    }
    for (base, count) in catalog.partitioned() {
        let partitions = catalog.partitions(base);
        assert_eq!(partitions.len() as u32, count);
        assert_eq!(catalog.document(&format!("/topics{base}")), Some(count.into()));
        let settings: Vec<_> = partitions
            .iter()
            .map(|name| catalog.topic(name).map(|topic| topic.settings.clone()))
            .collect();
        assert!(settings.windows(2).all(|pair| pair[0] == pair[1]), "one topic, one setting");
    }
}

proptest! {
    #[test]
    fn the_laws_hold_after_every_command(
        changes in prop::collection::vec(any_change(), 1..60), cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(changes.len());
        let commands: Vec<Command> = changes
            .into_iter()
            .enumerate()
            .map(|(at, change)| Command::new(change, WallMs(at as u64 + 1)))
            .collect();
        let (mut catalog, mut given, mut ends) = (Catalog::default(), Given::default(), vec![]);
        // Another broker reads every command from its stored form, and starts from a snapshot
        // in the middle.
        let mut follower = Catalog::default();
        for (at, command) in commands.iter().enumerate() {
            let before = catalog.clone();
            let end = catalog.apply(command);
            if end.is_err() {
                prop_assert_eq!(&catalog, &before, "a refused change changes nothing");
            }
            if at == cut {
                follower = Catalog::decode(&follower.encode()).expect("our own snapshot");
            }
            let stored = serde_json::from_str(&command.encode().to_string()).expect("our own JSON");
            let read = Command::decode(&stored).expect("our own command");
            prop_assert_eq!(&follower.apply(&read), &end);
            prop_assert_eq!(&follower, &catalog);
            given.check(&catalog);
            check_invariants(&catalog);
            ends.push(end);
        }
        let mut again = Catalog::default();
        let replayed: Vec<_> = commands.iter().map(|command| again.apply(command)).collect();
        prop_assert_eq!(replayed, ends);
        prop_assert_eq!(again.encode(), catalog.encode());
    }

    #[test]
    fn reading_a_damaged_snapshot_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = after(samples_for_snapshot()).encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Catalog::decode(&bytes);
        let _ = Catalog::decode(&bytes[..at]);
    }
}

pub(super) fn samples_for_snapshot() -> Vec<Change> {
    vec![
        CreateNamespace { name: namespace("agents") }.into(),
        CreateTopic { partitions: Some(2), ..queue("/agents/tasks") }.into(),
        CreateTopic { schema_subject: Some("orders".into()), ..create("/default/orders") }.into(),
        implicit("/default/live").into(),
        AttachConsumer { key_filters: vec!["eu-*".into()], ..attach(1, "workers", "w-1") }.into(),
        set("/agents/tasks-part-1", dead_letter_to("/agents/tasks-dlq")).into(),
        StartIncarnation {}.into(),
    ]
}
