//! Each setting at each level: its value and where it comes from.

use super::*;
use crate::catalog::TopicOverrides;
use crate::change::{
    Change, Command, ConfigureTopic, CreateSubscription, CreateTopic, SetDispatchConfig,
    SetFailurePolicy, SetNamespacePolicies,
};
use crate::ids::WallMs;
use crate::intent::{Intent, PoisonPolicy};
use crate::name::{NamespaceName, SubscriptionName};
use crate::policy::{Backoff, FailurePolicy, SubscriptionType};
use expect_test::expect;

fn topic() -> TopicName {
    TopicName::parse("/default/t").expect("well formed")
}

fn subscription() -> SubscriptionName {
    SubscriptionName::parse("s").expect("well formed")
}

fn create(intent: Option<Intent>) -> Change {
    CreateTopic {
        name: topic(),
        partitions: None,
        intent,
        delivery: Delivery::Reliable,
        schema_subject: None,
        dead_letter_topic: None,
        implicit: false,
    }
    .into()
}

fn broker() -> BrokerDefaults {
    let limits = LIMITS.map(|limit| (limit, 100 + limit as u32)).into_iter().collect();
    BrokerDefaults { limits, max_unacked_messages: 64, max_unacked_messages_native: 2_048 }
}

fn namespace(limit: Limit, value: u32) -> Change {
    SetNamespacePolicies {
        namespace: NamespaceName::parse("default").expect("well formed"),
        set: [(limit, value)].into_iter().collect(),
        clear: vec![],
    }
    .into()
}

fn configure(set: TopicOverrides) -> Change {
    ConfigureTopic { topic: topic(), set, clear: vec![] }.into()
}

fn subscribe() -> Change {
    CreateSubscription {
        topic: topic(),
        subscription: subscription(),
        kind: SubscriptionType::Shared,
        starts: Default::default(),
    }
    .into()
}

fn after(changes: Vec<Change>) -> Catalog {
    let mut catalog = Catalog::default();
    for change in changes {
        catalog.apply(&Command::new(change, WallMs(1))).expect("taken");
    }
    catalog
}

/// What `explain` says of a setting of the topic, or of the subscription.
fn explained(changes: Vec<Change>, of: Option<SubscriptionName>, name: &str) -> (String, Origin) {
    let catalog = after(changes);
    let found = explain(&catalog, &topic(), catalog.topic(&topic()).expect("made"), &broker());
    let mut lines = found.settings.into_iter();
    let line = lines.find(|line| line.subscription == of && line.name == name);
    let line = line.unwrap_or_else(|| panic!("{name} is not explained"));
    (line.value, line.origin)
}

#[test]
fn each_limit_is_read_back_from_each_level() {
    for limit in LIMITS {
        let default = (100 + limit as u32).to_string();
        let own = TopicOverrides {
            limits: [(limit, 7)].into_iter().collect(),
            ..TopicOverrides::default()
        };
        let levels = [
            (vec![create(None)], default, Origin::BrokerDefault),
            (vec![create(None), namespace(limit, 9)], "9".to_owned(), Origin::NamespacePolicy),
            (
                vec![create(None), namespace(limit, 9), configure(own)],
                "7".to_owned(),
                Origin::Override,
            ),
        ];
        for (changes, value, origin) in levels {
            let catalog = after(changes.clone());
            let record = catalog.topic(&topic()).expect("made");
            let held = TopicSettings::resolve(&catalog, &topic(), record, &broker()).limit(limit);
            assert_eq!((held.value.to_string(), held.origin), (value.clone(), origin), "{limit:?}");
            assert_eq!(explained(changes, None, limit.as_str()), (value, origin), "{limit:?}");
        }
    }
}

#[test]
fn durability_and_retention_are_read_back_from_each_level() {
    let own = TopicOverrides {
        wal_sync_mode: Some(WalSyncMode::Async),
        retention_time_ms: Some(60_000),
        retention_bytes: Some(0),
        ..TopicOverrides::default()
    };
    let queue = Some(Intent::TaskQueue);
    for (name, of_broker, of_intent, of_override) in [
        ("wal_sync_mode", "os_cache_flush", "fsync_batch", "async"),
        ("retention_time_ms", "604800000", "for ever", "60000"),
        ("retention_bytes", "10737418240", "no limit", "no limit"),
    ] {
        let told = |changes| explained(changes, None, name);
        assert_eq!(told(vec![create(None)]), (of_broker.to_owned(), Origin::BrokerDefault));
        assert_eq!(told(vec![create(queue)]), (of_intent.to_owned(), Origin::Intent));
        let changes = vec![create(queue), configure(own.clone())];
        assert_eq!(told(changes), (of_override.to_owned(), Origin::Override), "{name}");
    }
    let catalog = after(vec![create(queue), configure(own)]);
    let record = catalog.topic(&topic()).expect("made");
    let settings = TopicSettings::resolve(&catalog, &topic(), record, &broker());
    assert_eq!(settings.retention().time_ms, Some(60_000));
    assert_eq!(settings.retention().bytes, None);
    assert!(settings.retention().drop_finished, "the intent still says so");
}

#[test]
fn each_value_of_a_failure_policy_is_read_back_from_each_level() {
    let own = FailurePolicy {
        max_redelivery_count: 9,
        ack_timeout_ms: 9,
        base_redelivery_delay_ms: 9,
        max_redelivery_delay_ms: 9,
        backoff_strategy: Backoff::Fixed,
        dead_letter_topic: None,
        poison_policy: PoisonPolicy::Drop,
    };
    let set: Change =
        SetFailurePolicy { topic: topic(), subscription: subscription(), policy: own }.into();
    let window: Change =
        SetDispatchConfig { topic: topic(), subscription: subscription(), max_unacked_messages: 9 }
            .into();
    let none = "none".to_owned();
    for (name, of_broker, of_intent, intent_says, of_override) in [
        ("max_redelivery_count", "5", "3", true, "9"),
        ("ack_timeout_ms", "30000", "30000", false, "9"),
        ("base_redelivery_delay_ms", "1000", "500", true, "9"),
        ("max_redelivery_delay_ms", "60000", "60000", false, "9"),
        ("backoff_strategy", "exponential", "exponential", false, "fixed"),
        ("dead_letter_topic", none.as_str(), "/default/t-dlq", true, "none"),
        ("poison_policy", "block", "dead_letter", true, "drop"),
        ("max_unacked_messages", "64", "64", false, "9"),
    ] {
        let told = |changes| explained(changes, Some(subscription()), name);
        let plain = vec![create(None), subscribe()];
        assert_eq!(told(plain), (of_broker.to_owned(), Origin::BrokerDefault), "{name}");
        let events = vec![create(Some(Intent::EventStream)), subscribe()];
        let origin = if intent_says { Origin::Intent } else { Origin::BrokerDefault };
        assert_eq!(told(events.clone()), (of_intent.to_owned(), origin), "{name}");
        let changed = [events, vec![set.clone(), window.clone()]].concat();
        assert_eq!(told(changed), (of_override.to_owned(), Origin::Override), "{name}");
    }
}

#[test]
fn what_a_publish_and_an_ack_survive_is_said_in_words() {
    let mut text = String::new();
    let modes = [WalSyncMode::Async, WalSyncMode::OsCacheFlush, WalSyncMode::FsyncBatch];
    for mode in modes {
        let set = TopicOverrides { wal_sync_mode: Some(mode), ..TopicOverrides::default() };
        let catalog = after(vec![create(Some(Intent::TaskQueue)), configure(set), subscribe()]);
        let record = catalog.topic(&topic()).expect("made");
        let found = explain(&catalog, &topic(), record, &broker());
        text += &format!("{}\n{}\n", found.publish, found.ack);
    }
    let catalog = after(vec![create(Some(Intent::Realtime))]);
    let found = explain(&catalog, &topic(), catalog.topic(&topic()).expect("made"), &broker());
    text += &format!("{}\n{}\n", found.publish, found.ack);
    expect![[r#"
        an acknowledged publish survives nothing for certain: it is answered once the broker has taken it, and written a moment later
        an answered ack survives nothing for certain: it is answered once the broker has taken it, and written a moment later
        an acknowledged publish survives a crash or kill of the broker: it is answered once the kernel has it; a power loss or kernel crash may lose the last moments
        an answered ack survives a crash or kill of the broker: it is answered once the kernel has it; a power loss or kernel crash may lose the last moments
        an acknowledged publish survives a power loss: it is answered once the device has it
        an answered ack survives a power loss: it is answered once the device has it
        an acknowledged publish was offered to whoever listened at that moment; it is kept in memory only, is never delivered again, and survives nothing
        an ack has no effect: nothing is delivered again
    "#]].assert_eq(&text);
    let catalog = after(vec![create(Some(Intent::TaskQueue)), subscribe()]);
    let found = explain(&catalog, &topic(), catalog.topic(&topic()).expect("made"), &broker());
    expect!["a message that is nacked, or not acked within 30000 ms, is delivered again up to 5 times, the first after 1000 ms, each after twice the time before, at most 60000 ms; then a copy goes to `/default/t-dlq` and the cursor moves on"].assert_eq(&found.failures[0].1);
}
