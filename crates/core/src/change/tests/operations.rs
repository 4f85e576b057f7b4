//! Rows and samples of the changes that operators and manifests make.

use super::*;
use crate::catalog::{Fields, ObjectKey, TopicOverrides};
use crate::intent::WalSyncMode;
use crate::manifest::revision;
use crate::settings::{Limit, Limits};
use proptest::prelude::*;

fn limits(limit: Limit, value: u32) -> Limits {
    [(limit, value)].into_iter().collect()
}

fn policies(name: &str, set: Limits, clear: Vec<Limit>) -> SetNamespacePolicies {
    SetNamespacePolicies { namespace: namespace(name), set, clear }
}

fn kept(name: &str, ms: u64) -> ConfigureTopic {
    let set = TopicOverrides { retention_time_ms: Some(ms), ..TopicOverrides::default() };
    ConfigureTopic { topic: topic(name), set, clear: vec![] }
}

fn fails(target: &str) -> ConfigureTopic {
    let target = Some(topic(target));
    let set = TopicOverrides { dead_letter_topic: target, ..TopicOverrides::default() };
    ConfigureTopic { topic: topic("/default/t"), set, clear: vec![] }
}

fn intent(name: &str, intent: Intent) -> SetIntent {
    SetIntent { topic: topic(name), intent }
}

fn add(name: &str, partitions: u32) -> AddPartitions {
    AddPartitions { topic: topic(name), partitions }
}

fn subscribe(name: &str, kind: SubscriptionType) -> CreateSubscription {
    let starts = [(topic(name), Offset(7))].into();
    CreateSubscription { topic: topic(name), subscription: subscription("s"), kind, starts }
}

fn step(object: ObjectKey, expects: Option<u64>, changes: Vec<Change>) -> ApplyStep {
    ApplyStep { object, expects, changes, record: Some(Fields::new()) }
}

fn steps(steps: Vec<ApplyStep>) -> ApplySteps {
    ApplySteps { owner: "apply".into(), by: "docs".into(), steps }
}

fn agents(expects: Option<u64>) -> ApplyStep {
    let create = CreateNamespace { name: namespace("agents") };
    step(ObjectKey::Namespace(namespace("agents")), expects, vec![create.into()])
}

pub(super) fn rows() -> Vec<Row> {
    let (t, plain) = ("/default/t", || vec![create("/default/t").into()]);
    let parted = |count| CreateTopic { partitions: Some(count), ..create(t) };
    let shared = SubscriptionType::Shared;
    let live = || vec![implicit(t).into()];
    let size = limits(Limit::MaxMessageSize, 0);
    let rate = limits(Limit::MaxPublishRate, 5);
    let made = after(vec![CreateNamespace { name: namespace("agents") }.into()]);
    let known = revision(&made, &ObjectKey::Namespace(namespace("agents")));
    let forgotten = ApplyStep {
        record: None,
        changes: vec![DeleteNamespace { name: namespace("agents") }.into()],
        ..agents(known)
    };
    let too_many = (0..=APPLY_STEPS_MAX).map(|_| agents(None)).collect();
    let nested = steps(vec![ApplyStep { changes: vec![steps(vec![]).into()], ..agents(None) }]);
    let unknown = ConfigureTopic { clear: vec!["max_fun".into()], ..kept(t, 5) };
    let cleared = ConfigureTopic {
        set: TopicOverrides::default(),
        clear: vec!["retention_time_ms".into()],
        ..kept(t, 5)
    };
    let sizeless = TopicOverrides { limits: size.clone(), ..TopicOverrides::default() };
    vec![
        ("set", vec![], policies("default", rate.clone(), vec![]).into()),
        (
            "cleared",
            vec![policies("default", rate.clone(), vec![]).into()],
            policies("default", Limits::default(), vec![Limit::MaxPublishRate]).into(),
        ),
        ("unknown namespace: not_found", vec![], policies("agents", rate, vec![]).into()),
        ("limits: invalid", vec![], policies("default", size, vec![]).into()),
        ("set", plain(), kept(t, 5).into()),
        ("set on partitions", vec![parted(2).into()], kept(t, 5).into()),
        ("cleared", vec![create(t).into(), kept(t, 5).into()], cleared.into()),
        ("unknown topic: not_found", vec![], kept(t, 5).into()),
        ("unknown setting: invalid", plain(), unknown.into()),
        ("settings: invalid", plain(), ConfigureTopic { set: sizeless, ..kept(t, 5) }.into()),
        ("not reliable: precondition", live(), kept(t, 5).into()),
        ("set, making dead letters", plain(), fails("/default/failed").into()),
        ("its own dead letters: invalid", plain(), fails(t).into()),
        ("set", plain(), intent(t, Intent::AuditLog).into()),
        ("set on partitions", vec![parted(2).into()], intent(t, Intent::AuditLog).into()),
        ("set, making dead letters", plain(), intent(t, Intent::TaskQueue).into()),
        ("unknown topic: not_found", vec![], intent(t, Intent::AuditLog).into()),
        (
            "one partition: invalid",
            vec![parted(2).into()],
            intent("/default/t-part-0", Intent::AuditLog).into(),
        ),
        ("other delivery: precondition", plain(), intent(t, Intent::Realtime).into()),
        ("added", vec![parted(1).into()], add(t, 3).into()),
        ("unchanged", vec![parted(2).into()], add(t, 2).into()),
        ("no partitions: precondition", plain(), add(t, 2).into()),
        ("fewer: precondition", vec![parted(3).into()], add(t, 2).into()),
        ("too many: invalid", vec![parted(3).into()], add(t, 1025).into()),
        ("created", plain(), subscribe(t, shared).into()),
        ("created on partitions", vec![parted(2).into()], subscribe(t, shared).into()),
        (
            "type set",
            vec![create(t).into(), subscribe(t, shared).into()],
            subscribe(t, SubscriptionType::KeyShared).into(),
        ),
        (
            "unchanged",
            vec![create(t).into(), subscribe(t, shared).into()],
            subscribe(t, shared).into(),
        ),
        ("unknown topic: not_found", vec![], subscribe(t, shared).into()),
        ("not reliable: precondition", live(), subscribe(t, shared).into()),
        ("done", vec![], steps(vec![agents(None)]).into()),
        ("conflict", vec![], steps(vec![agents(Some(5))]).into()),
        (
            "refused",
            vec![],
            steps(vec![step(
                ObjectKey::Topic(topic("/agents/t")),
                None,
                vec![create("/agents/t").into()],
            )])
            .into(),
        ),
        ("forgotten", vec![steps(vec![agents(None)]).into()], steps(vec![forgotten]).into()),
        ("too many steps: invalid", vec![], steps(too_many).into()),
        ("steps in a step: invalid", vec![], nested.into()),
    ]
}

pub(super) fn samples() -> Vec<Change> {
    let tasks = "/agents/tasks";
    let set = TopicOverrides {
        wal_sync_mode: Some(WalSyncMode::FsyncBatch),
        retention_time_ms: Some(0),
        retention_bytes: Some(1 << 30),
        dead_letter_topic: Some(topic("/agents/failed")),
        limits: limits(Limit::MaxPublishRate, 500),
        labels: [("team".to_owned(), "agents".to_owned())].into(),
    };
    let rate = limits(Limit::MaxProducersPerTopic, 3);
    vec![
        policies("agents", rate, vec![Limit::MaxMessageSize]).into(),
        ConfigureTopic { topic: topic(tasks), set, clear: vec!["max_message_size".into()] }.into(),
        intent(tasks, Intent::AuditLog).into(),
        add(tasks, 6).into(),
        subscribe(tasks, SubscriptionType::KeyShared).into(),
        steps(vec![ApplyStep {
            record: Some([("partitions".to_owned(), 6.into())].into()),
            ..agents(Some(7))
        }])
        .into(),
    ]
}

pub(super) fn any_change<T>(
    topics: fn() -> T,
    subscriptions: impl Strategy<Value = SubscriptionName> + 'static,
) -> impl Strategy<Value = Change>
where
    T: Strategy<Value = TopicName> + 'static,
{
    let ms = prop::option::of(0_u64..3);
    prop_oneof![
        (topics(), ms).prop_map(|(topic, ms)| {
            let set = TopicOverrides { retention_time_ms: ms, ..TopicOverrides::default() };
            ConfigureTopic { topic, set, clear: vec!["retention_bytes".into()] }.into()
        }),
        (topics(), any::<bool>()).prop_map(|(topic, audit)| {
            let intent = if audit { Intent::AuditLog } else { Intent::TaskQueue };
            SetIntent { topic, intent }.into()
        }),
        (topics(), 0_u32..6)
            .prop_map(|(topic, partitions)| AddPartitions { topic, partitions }.into()),
        (topics(), subscriptions).prop_map(|(topic, subscription)| {
            let kind = SubscriptionType::Shared;
            CreateSubscription { topic, subscription, kind, starts: Default::default() }.into()
        }),
    ]
}

#[test]
fn who_asked_is_remembered_and_the_trail_is_bounded() {
    let mut catalog = after(vec![create("/default/t").into()]);
    assert_eq!(catalog.trail().count(), 0, "nobody said who");
    for ms in 0..(crate::catalog::TRAIL_LEN_MAX as u64 + 5) {
        let command = Command::new(kept("/default/t", ms).into(), WallMs(ms)).by("ann");
        assert_eq!(command.level, 4);
        catalog.apply(&command).expect("taken");
    }
    let trail: Vec<_> = catalog.trail().collect();
    assert_eq!(trail.len(), crate::catalog::TRAIL_LEN_MAX);
    let last = trail.last().expect("full");
    assert_eq!((last.by.as_str(), last.change.as_str()), ("ann", "configure_topic"));
    assert_eq!(last.object, ObjectKey::Topic(topic("/default/t")));
}
