//! The rules of apply, without a broker: a manifest and a catalog in, a plan out.

use super::*;
use crate::catalog::{Catalog, ObjectKey};
use crate::change::{
    ApplySteps, Change, Command, ConfigureTopic, DeleteTopic, Outcome, SetFailurePolicy, StepResult,
};
use crate::fault::Fault;
use crate::ids::WallMs;
use crate::name::{SubscriptionName, TopicName};
use crate::policy::FailurePolicy;
use expect_test::{Expect, expect};
use std::collections::{BTreeMap, BTreeSet};

const SEED: &str = "namespaces:
  - agents
topics:
  - name: /agents/events
    intent: agent_event_mesh
    partitions: 3
  - name: /agents/tasks
    intent: task_queue
    partitions: 6
  - name: /agents/tool-audit
    intent: tool_invocation_log
";

const WHOLE: &str = "apiVersion: danube/v1
metadata: {owner: shop}
namespaces:
  - name: shop
    policies: {max_producers_per_topic: 10}
schemas:
  - subject: orders
    type: string
    compatibility: none
topics:
  - name: /shop/orders
    intent: event_stream
    partitions: 2
    wal_sync: fsync_batch
    retention: {time: 3d, bytes: 1GiB}
    policies: {max_publish_rate: 500}
    labels: {team: shop}
    dlq: /shop/failed
    schema: {subject: orders, validation: warn}
    subscriptions:
      - name: billing
        type: key_shared
        start: earliest
        failure_policy: {max_redelivery_count: 8, ack_timeout_ms: 45000}
        dispatch: {max_unacked_messages: 100}
";

fn parse(text: &str) -> Result<Manifest, Vec<Problem>> {
    let documents = read("m.yml", text).map_err(|problem| vec![problem])?;
    Manifest::parse(&documents, None, &BTreeMap::new())
}

/// Plans with schemas that are whatever they say.
fn plan_of(catalog: &Catalog, text: &str, options: &Options) -> Plan {
    let manifest = parse(text).expect("a manifest");
    plan_busy(catalog, &manifest, options, &BTreeMap::new())
}

fn plan_busy(
    catalog: &Catalog,
    manifest: &Manifest,
    options: &Options,
    busy: &BTreeMap<ObjectKey, String>,
) -> Plan {
    let mut ask = |catalog: &Catalog, subject: &crate::SubjectName, source: &SchemaSource, _| {
        let record = catalog.subject_record(subject.as_str());
        let fingerprint = format!("of {}", source.definition);
        Ok::<_, Fault>(SchemaFacts {
            is_known: record
                .is_some_and(|known| known.same(source.schema_type, &fingerprint).is_some()),
            fingerprint,
            references: BTreeMap::new(),
            expects: record.map_or(0, |known| known.revision),
        })
    };
    plan(catalog, manifest, options, busy, &mut ask)
}

/// Does what a plan says; what became of each step.
fn carry_out(catalog: &mut Catalog, plan: &Plan) -> Vec<StepResult> {
    let steps = plan.items.iter().filter_map(|item| item.step.clone()).collect();
    let apply = ApplySteps { owner: plan.owner.clone(), by: "ann".into(), steps };
    match catalog.apply(&Command::new(apply.into(), WallMs(100))) {
        Ok(Outcome::StepsApplied { results }) => results,
        other => panic!("{other:?}"),
    }
}

fn apply(catalog: &mut Catalog, text: &str, options: &Options) -> Plan {
    let plan = plan_of(catalog, text, options);
    assert!(!plan.is_refused(), "{}", shown(&plan));
    for result in carry_out(catalog, &plan) {
        assert!(matches!(result, StepResult::Done(_)), "{result:?}");
    }
    plan
}

fn shown(plan: &Plan) -> String {
    let mut text = String::new();
    for item in &plan.items {
        text += &format!("{} {}\n", item.action.as_str(), item.object);
        for FieldChange { field, old, new } in &item.fields {
            let value = |value: &Option<serde_json::Value>| {
                value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
            };
            text += &format!("  {field}: {} -> {}\n", value(old), value(new));
        }
        for warning in &item.warnings {
            text += &format!("  warning: {warning}\n");
        }
        if !item.why.is_empty() {
            text += &format!("  why: {}\n", item.why);
        }
    }
    text
}

fn take(catalog: &mut Catalog, change: impl Into<Change>) {
    let command = Command::new(change.into(), WallMs(200)).by("bob from 10.0.0.7");
    catalog.apply(&command).expect("taken");
}

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

fn check_problems(text: &str, expected: Expect) {
    let problems = parse(text).expect_err("it is wrong");
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn the_manifest_of_the_seed_is_made_and_then_unchanged() {
    let mut catalog = Catalog::default();
    let made = apply(&mut catalog, SEED, &Options::default());
    expect![[r#"
        create namespace `agents`
        create topic `/agents/events`
          intent: - -> "event_stream"
          partitions: - -> 3
        create topic `/agents/tasks`
          intent: - -> "task_queue"
          partitions: - -> 6
        create topic `/agents/tool-audit`
          intent: - -> "audit_log"
    "#]]
    .assert_eq(&shown(&made));
    let names: Vec<&str> = catalog.topics().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 3 + 1 + 6 + 1 + 1, "{names:?}");
    let again = plan_of(&catalog, SEED, &Options::default());
    assert!(!again.has_changes() && again.items.iter().all(|item| item.step.is_none()));
}

#[test]
fn everything_that_can_be_declared_is_made_and_read_back() {
    let mut catalog = Catalog::default();
    let made = apply(&mut catalog, WHOLE, &Options::default());
    expect![[r#"
        create namespace `shop`
          policies.max_producers_per_topic: - -> 10
        create schema `orders`
          compatibility: - -> "none"
          fingerprint: - -> "of "
          type: - -> "string"
        create topic `/shop/orders`
          dlq.topic: - -> "/shop/failed"
          intent: - -> "event_stream"
          labels.team: - -> "shop"
          partitions: - -> 2
          policies.max_publish_rate: - -> 500
          retention.bytes: - -> 1073741824
          retention.time_ms: - -> 259200000
          schema.payload_validation: - -> false
          schema.subject: - -> "orders"
          schema.validation: - -> "warn"
          wal_sync: - -> "fsync_batch"
        create subscription `/shop/orders:billing`
          dispatch.max_unacked_messages: - -> 100
          failure_policy.ack_timeout_ms: - -> 45000
          failure_policy.max_redelivery_count: - -> 8
          type: - -> "key_shared"
    "#]]
    .assert_eq(&shown(&made));
    let again = plan_of(&catalog, WHOLE, &Options::default());
    assert!(again.items.iter().all(|item| item.step.is_none()), "{}", shown(&again));
    // What is exported changes nothing, for its owner and for nobody else.
    let exported = export(&catalog, &BTreeSet::new(), "shop");
    expect![[r#"
        apiVersion: danube/v1
        metadata:
          owner: shop
        namespaces:
          - default
          - name: shop
            policies:
              max_producers_per_topic: 10
        schemas:
          - subject: orders
            type: string
            compatibility: none
        topics:
          - name: /shop/orders
            intent: event_stream
            partitions: 2
            wal_sync: fsync_batch
            retention:
              time: 259200000ms
              bytes: 1073741824
            dlq:
              topic: /shop/failed
            schema:
              payload_validation: false
              subject: orders
              validation: warn
            policies:
              max_publish_rate: 500
            labels:
              team: shop
            subscriptions:
              - name: billing
                type: key_shared
                failure_policy:
                  ack_timeout_ms: 45000
                  max_redelivery_count: 8
                dispatch:
                  max_unacked_messages: 100
    "#]]
    .assert_eq(&exported);
    let again = plan_of(&catalog, &exported, &Options::default());
    assert!(!again.has_changes() && !again.is_refused(), "{}", shown(&again));
}

#[test]
fn what_is_no_longer_declared_is_left_to_the_layers_below() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, WHOLE, &Options::default());
    let fewer = WHOLE
        .replace("    wal_sync: fsync_batch\n", "")
        .replace("{time: 3d, bytes: 1GiB}", "{time: 4d}")
        .replace("{max_redelivery_count: 8, ack_timeout_ms: 45000}", "{ack_timeout_ms: 45000}")
        .replace("partitions: 2", "partitions: 4");
    let updated = apply(&mut catalog, &fewer, &Options::default());
    expect![[r#"
        unchanged namespace `shop`
        unchanged schema `orders`
        update topic `/shop/orders`
          partitions: 2 -> 4
          retention.time_ms: 259200000 -> 345600000
          retention.bytes: 1073741824 -> -
          wal_sync: "fsync_batch" -> -
          warning: with 4 partitions instead of 2, keys move between partitions
        update subscription `/shop/orders:billing`
          failure_policy.max_redelivery_count: 8 -> -
    "#]]
    .assert_eq(&shown(&updated));
    assert!(!plan_of(&catalog, &fewer, &Options::default()).has_changes());
}

#[test]
fn what_would_lose_something_is_a_conflict_and_nothing_is_made() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, SEED, &Options::default());
    let impossible = "namespaces: [agents]
topics:
  - {name: /agents/events, intent: realtime, partitions: 3}
  - {name: /agents/tasks, intent: task_queue, partitions: 2}
  - {name: /agents/tool-audit, intent: audit_log, partitions: 4}
  - {name: /nowhere/t, intent: audit_log}
  - {name: /agents/new, intent: realtime, subscriptions: [{name: s}]}
";
    let plan = plan_of(&catalog, impossible, &Options::default());
    assert!(plan.is_refused());
    expect![[r#"
        unchanged namespace `agents`
        conflict topic `/agents/events`
          why: delivery is Reliable, and intent `realtime` means NonReliable; declare another topic, or give --replace /agents/events to make it anew
        conflict topic `/agents/tasks`
          why: it has 6 partitions, and 2 are declared; removing some would lose messages, so declare `partitions: 6`, or give --replace /agents/tasks to make it anew
        conflict topic `/agents/tool-audit`
          why: it has no partitions and cannot get 4; declare another topic, or give --replace /agents/tool-audit to make it anew
        conflict topic `/nowhere/t`
          why: topic `/nowhere/t` cannot be created: namespace `nowhere` does not exist; create it first
        create topic `/agents/new`
          intent: - -> "realtime"
        conflict subscription `/agents/new:s`
          why: topic `/agents/new` is NonReliable: a subscription of it exists only while somebody listens, so it cannot be made ahead
    "#]].assert_eq(&shown(&plan));
}

#[test]
fn another_owner_keeps_what_is_his() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, SEED, &Options::default());
    let theirs = format!("metadata: {{owner: other}}\n{SEED}");
    let plan = plan_of(&catalog, &theirs, &Options::default());
    assert!(plan.is_refused());
    assert!(plan.items[0].why.contains("owner `apply`"), "{}", plan.items[0].why);
}

#[test]
fn prune_removes_only_what_the_same_owner_declared_and_nothing_that_is_in_use() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, SEED, &Options::default());
    apply(&mut catalog, WHOLE, &Options::default());
    let fewer =
        SEED.replace("  - name: /agents/tasks\n    intent: task_queue\n    partitions: 6\n", "");
    let kept = plan_of(&catalog, &fewer, &Options::default());
    assert!(!kept.has_changes());
    assert_eq!(kept.undeclared, [ObjectKey::Topic(topic("/agents/tasks"))]);
    let prune = Options { prune: true, ..Options::default() };
    let manifest = parse(&fewer).expect("a manifest");
    let busy: BTreeMap<ObjectKey, String> = candidates(&catalog, &manifest, &prune)
        .into_iter()
        .map(|key| (key, "it has 3 messages".to_owned()))
        .collect();
    let blocked = plan_busy(&catalog, &manifest, &prune, &busy);
    assert!(blocked.is_refused());
    expect![[r#"
        unchanged namespace `agents`
        unchanged topic `/agents/events`
        unchanged topic `/agents/tool-audit`
        blocked topic `/agents/tasks`
          why: it has 3 messages; give --force to remove it all the same
    "#]]
    .assert_eq(&shown(&blocked));
    let force = Options { force: true, ..prune };
    let pruned = plan_busy(&catalog, &manifest, &force, &busy);
    assert!(!pruned.is_refused());
    carry_out(&mut catalog, &pruned);
    assert!(catalog.partitions(&topic("/agents/tasks")).is_empty());
    assert!(!catalog.partitions(&topic("/shop/orders")).is_empty(), "another owner's stays");
    assert!(catalog.topic(&topic("/agents/tasks-dlq")).is_some(), "dead letters stay");
}

#[test]
fn a_dead_letter_topic_of_its_own_is_made_along_and_moves_when_it_is_declared_elsewhere() {
    let mut catalog = Catalog::default();
    let declared = |dlq: &str| format!("topics: [{{name: jobs, intent: task_queue{dlq}}}]");
    let options = Options::default();
    let missing = plan_of(&catalog, &declared(", dlq: {topic: failed, create: false}"), &options);
    expect![[r#"
        conflict topic `/default/jobs`
          why: its dead-letter topic `/default/failed` does not exist, and `create` is false; declare that topic too, or leave `create` out
    "#]]
    .assert_eq(&shown(&missing));
    let first = apply(&mut catalog, &declared(", dlq: failed"), &options);
    expect![[r#"
        create topic `/default/jobs`
          dlq.topic: - -> "/default/failed"
          intent: - -> "task_queue"
    "#]]
    .assert_eq(&shown(&first));
    let names: Vec<&str> = catalog.topics().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["/default/failed", "/default/jobs"], "no `-dlq` that nobody uses");
    let jobs = topic("/default/jobs");
    let policy = catalog.topic(&jobs).and_then(|topic| topic.own_policy(&jobs)).expect("reliable");
    assert_eq!(policy.dead_letter_topic, Some(topic("/default/failed")));
    let settings = catalog.topic(&topic("/default/failed")).expect("made").settings.as_ref();
    assert_eq!(settings.and_then(|own| own.dlq_suffix.as_ref()), None, "they end there");
    let again = plan_of(&catalog, &declared(", dlq: {topic: failed, create: false}"), &options);
    assert_eq!(again.items[0].action, Action::Unchanged, "{}", shown(&again));
    // What exports say makes the same again.
    let exported = export(&catalog, &BTreeSet::new(), "apply");
    assert!(exported.contains("dlq:\n      topic: /default/failed"), "{exported}");
    // Moved elsewhere, then left to the intent again.
    apply(&mut catalog, &declared(", dlq: broken"), &options);
    assert!(catalog.topic(&topic("/default/broken")).is_some());
    apply(&mut catalog, &declared(""), &options);
    let policy = catalog.topic(&jobs).and_then(|topic| topic.own_policy(&jobs)).expect("reliable");
    assert_eq!(policy.dead_letter_topic, Some(topic("/default/jobs-dlq")));
}

#[test]
fn a_topic_is_replaced_only_when_it_is_named_and_with_what_is_in_it_only_by_force() {
    let mut catalog = Catalog::default();
    let subscribed = |intent: &str| {
        format!("topics: [{{name: t, intent: {intent}, subscriptions: [{{name: s}}]}}]")
    };
    apply(&mut catalog, "topics: [{name: t, intent: realtime}]", &Options::default());
    let old = catalog.topic(&topic("/default/t")).expect("made").id;
    let refused = plan_of(&catalog, &subscribed("audit_log"), &Options::default());
    assert!(refused.items[0].why.contains("--replace /default/t"), "{}", shown(&refused));
    let replace = BTreeSet::from([topic("/default/t")]);
    let options = Options { replace, ..Options::default() };
    let manifest = parse(&subscribed("audit_log")).expect("a manifest");
    let key = ObjectKey::Topic(topic("/default/t"));
    assert_eq!(candidates(&catalog, &manifest, &options), std::slice::from_ref(&key));
    let busy = BTreeMap::from([(key, "it has 3 messages".to_owned())]);
    let kept = plan_busy(&catalog, &manifest, &options, &busy);
    expect![[r#"
        conflict topic `/default/t`
          why: it has 3 messages, which a replacement loses; give --force to replace it all the same
        conflict subscription `/default/t:s`
          why: topic `/default/t` is NonReliable: a subscription of it exists only while somebody listens, so it cannot be made ahead
    "#]]
    .assert_eq(&shown(&kept));
    let forced = Options { force: true, ..options };
    let plan = plan_busy(&catalog, &manifest, &forced, &busy);
    expect![[r#"
        replace topic `/default/t`
          intent: "realtime" -> "audit_log"
          warning: what is in the old topic, and its subscriptions, go with it
        create subscription `/default/t:s`
          type: - -> "shared"
    "#]]
    .assert_eq(&shown(&plan));
    assert!(plan.replaces(&plan.items[1].object), "so it starts where the new topic does");
    carry_out(&mut catalog, &plan);
    assert_ne!(catalog.topic(&topic("/default/t")).expect("made anew").id, old);
    // What can become what is declared is changed, never replaced.
    let changed = plan_of(&catalog, &subscribed("task_queue"), &forced);
    assert_eq!(changed.items[0].action, Action::Update, "{}", shown(&changed));
    let stranger = Options { replace: [topic("/default/u")].into(), ..Options::default() };
    assert!(stranger.check(&manifest).is_err());
}

#[test]
fn subscriptions_follow_a_new_intent_where_that_is_asked_for_and_keep_what_was_set() {
    let mut catalog = Catalog::default();
    let declared = |intent: &str| {
        format!(
            "topics: [{{name: t, intent: {intent}, subscriptions: [{{name: a}}, {{name: b, \
             failure_policy: {{ack_timeout_ms: 7}}}}]}}]"
        )
    };
    apply(&mut catalog, &declared("task_queue"), &Options::default());
    let stays = plan_of(&catalog, &declared("audit_log"), &Options::default());
    assert!(stays.items[0].warnings[0].contains("--update-subscriptions"), "{}", shown(&stays));
    let options = Options { update_subscriptions: true, ..Options::default() };
    let follows = apply(&mut catalog, &declared("audit_log"), &options);
    expect![[r#"
        update topic `/default/t`
          intent: "task_queue" -> "audit_log"
        unchanged subscription `/default/t:a`
        unchanged subscription `/default/t:b`
        update subscription `/default/t:a`
          failure_policy.base_redelivery_delay_ms: 1000 -> 500
          failure_policy.dead_letter_topic: "/default/t-dlq" -> null
          failure_policy.max_redelivery_count: 5 -> 10
          failure_policy.poison_policy: "dead_letter" -> "block"
        update subscription `/default/t:b`
          failure_policy.base_redelivery_delay_ms: 1000 -> 500
          failure_policy.dead_letter_topic: "/default/t-dlq" -> null
          failure_policy.max_redelivery_count: 5 -> 10
          failure_policy.poison_policy: "dead_letter" -> "block"
    "#]]
    .assert_eq(&shown(&follows));
    let again = plan_of(&catalog, &declared("audit_log"), &options);
    assert!(!again.has_changes(), "{}", shown(&again));
    assert!(drift(&catalog, None).is_empty());
}

#[test]
fn following_an_intent_keeps_what_the_same_manifest_declares_for_the_first_time() {
    let mut catalog = Catalog::default();
    let declared = |intent: &str, policy: &str| {
        format!("topics: [{{name: t, intent: {intent}, subscriptions: [{{name: a{policy}}}]}}]")
    };
    apply(&mut catalog, &declared("task_queue", ""), &Options::default());
    let options = Options { update_subscriptions: true, ..Options::default() };
    let second = declared("audit_log", ", failure_policy: {ack_timeout_ms: 7}");
    apply(&mut catalog, &second, &options);
    let again = plan_of(&catalog, &second, &options);
    assert!(again.items.iter().all(|item| item.step.is_none()), "nothing is left to write down");
}

#[test]
fn prune_can_be_kept_to_some_kinds() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, "namespaces: [shop]\ntopics: [{name: /shop/t}]", &Options::default());
    let topics =
        Options { prune: true, prune_kinds: ["topic".to_owned()].into(), ..Options::default() };
    let plan = apply(&mut catalog, "topics: []", &topics);
    assert_eq!(shown(&plan), "prune topic `/shop/t`\n");
    assert_eq!(plan.undeclared.len(), 1, "the namespace stays");
    let unknown = Options { prune_kinds: ["topics".to_owned()].into(), ..topics };
    let manifest = parse("topics: []").expect("a manifest");
    assert!(unknown.check(&manifest).expect_err("no such kind").message.contains("known are"));
}

#[test]
fn a_step_whose_object_changed_meanwhile_is_a_conflict_and_the_others_are_taken() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, SEED, &Options::default());
    let wanted = SEED
        .replace("intent: task_queue\n", "intent: task_queue\n    wal_sync: async\n")
        .replace("intent: agent_event_mesh\n", "intent: agent_event_mesh\n    wal_sync: async\n");
    let plan = plan_of(&catalog, &wanted, &Options::default());
    let meanwhile = ConfigureTopic {
        topic: topic("/agents/tasks"),
        set: crate::catalog::TopicOverrides { retention_bytes: Some(5), ..Default::default() },
        clear: vec![],
    };
    take(&mut catalog, meanwhile);
    let results = carry_out(&mut catalog, &plan);
    assert!(matches!(results[..], [StepResult::Done(_), StepResult::Conflict]), "{results:?}");
}

#[test]
fn two_plans_for_one_object_end_in_one_state_and_one_conflict() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, SEED, &Options::default());
    let plans = ["async", "os_cache_flush"].map(|mode| {
        let text = SEED.replace(
            "intent: task_queue\n",
            &format!("intent: task_queue\n    wal_sync: {mode}\n"),
        );
        plan_of(&catalog, &text, &Options::default())
    });
    let ends = plans.map(|plan| carry_out(&mut catalog, &plan));
    assert!(matches!(ends[0][..], [StepResult::Done(_)]) && ends[1] == [StepResult::Conflict]);
    let fields = fields(&catalog, &ObjectKey::Topic(topic("/agents/tasks"))).expect("there");
    assert_eq!(fields.get("wal_sync"), Some(&"async".into()));
}

#[test]
fn an_apply_that_was_cut_short_is_completed_by_the_next() {
    let whole = {
        let mut catalog = Catalog::default();
        apply(&mut catalog, WHOLE, &Options::default());
        catalog
    };
    let steps = plan_of(&Catalog::default(), WHOLE, &Options::default()).items.len();
    for cut in 0..steps {
        let mut catalog = Catalog::default();
        let mut plan = plan_of(&catalog, WHOLE, &Options::default());
        plan.items.truncate(cut);
        carry_out(&mut catalog, &plan);
        apply(&mut catalog, WHOLE, &Options::default());
        assert_eq!(catalog, whole, "cut after {cut} steps");
    }
}

#[test]
fn drift_says_what_moved_and_who_moved_it() {
    let mut catalog = Catalog::default();
    apply(&mut catalog, WHOLE, &Options::default());
    apply(&mut catalog, SEED, &Options::default());
    assert_eq!(drift(&catalog, None), []);
    let billing = SubscriptionName::parse("billing").expect("well formed");
    let policy = FailurePolicy { max_redelivery_count: 1, ..FailurePolicy::default() };
    take(
        &mut catalog,
        SetFailurePolicy { topic: topic("/shop/orders"), subscription: billing, policy },
    );
    take(&mut catalog, DeleteTopic { name: topic("/agents/tasks") });
    let manifest = "topics: [{name: /shop/extra, intent: audit_log}]";
    let extra = plan_of(&catalog, manifest, &Options::default());
    let steps = extra.items.iter().filter_map(|item| item.step.as_ref());
    let creations: Vec<Change> = steps.flat_map(|step| step.changes.clone()).collect();
    creations.into_iter().for_each(|change| take(&mut catalog, change));
    let mut text = String::new();
    for found in drift(&catalog, None) {
        let last = found.last.map(|line| format!("{} by {}", line.change, line.by));
        let what = match found.how {
            Drifted::Changed(fields) => {
                fields.iter().map(|field| field.field.clone()).collect::<Vec<_>>().join(", ")
            }
            other => format!("{other:?}"),
        };
        text += &format!("{} {}: {what}; {last:?}\n", found.owner, found.object);
    }
    expect![[r#"
        apply topic `/agents/tasks`: Missing; Some("delete_topic by bob from 10.0.0.7")
        shop subscription `/shop/orders:billing`: failure_policy.ack_timeout_ms, failure_policy.max_redelivery_count; Some("set_failure_policy by bob from 10.0.0.7")
         topic `/shop/extra`: Unmanaged; Some("create_topic by bob from 10.0.0.7")
    "#]].assert_eq(&text);
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    check_problems(
        "apiVersion: danube/v7
namespaces: [agents, agents]
topics:
  - name: /agents/events
    intnet: task_queue
    partitions: many
  - intent: task_queue
  - name: /agents/tasks
    intent: sometimes
    partitions: 0
    retention: {time: 7}
    subscriptions:
      - name: s
        failure_policy: {poison_policy: eat}
  - name: /agents/t-part-1
  - name: /agents/x
    intent: realtime
    delivery: reliable
    name: /agents/y
quotas: []
",
        expect![[r#"
            m.yml:20: unknown key `quotas`; known are apiVersion, metadata, namespaces, schemas, topics
            m.yml:1: `apiVersion`: `danube/v7` is not known; this version reads danube/v1
            m.yml:5: topic: unknown key `intnet`; did you mean `intent`?
            m.yml:6: topic `/agents/events`: `partitions`: `many` is not a number from 0 up that fits
            m.yml:7: topic: the entry has no `name`
            m.yml:9: topic `/agents/tasks`: `intent`: unknown intent `sometimes`; known are realtime (telemetry_firehose, firehose, telemetry, ephemeral); event_stream (agent_event_mesh, event_mesh, events, lakehouse_feed, lakehouse, custom); task_queue (agent_task_queue, tasks, work_queue); audit_log (tool_invocation_log, tool_log, audit, state_log)
            m.yml:10: topic `/agents/tasks`: `partitions`: 0 partitions; leave it out for a topic without partitions
            m.yml:11: topic `/agents/tasks`: `time`: `7` is not a duration; write for example 7d, 12h, 30m, 45s, 500ms or forever
            m.yml:14: topic `/agents/tasks`, subscription `s`: `poison_policy`: `eat` is not known; known are dead_letter, block, drop
            m.yml:15: topic: `name`: `/agents/t-part-1` is one partition; declare `/agents/t` with its number of partitions
            m.yml:19: topic: key `name` is there twice, first in line 16
            m.yml:16: topic `/agents/x`: intent `realtime` means delivery NonReliable, and Reliable is declared; leave one out
            m.yml:2: namespace `agents`: declared twice, first at m.yml:2"#]],
    );
    check_problems(
        "topics: [\n  {name: /a/b\n",
        expect![
            "m.yml:3: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'"
        ],
    );
    check_problems(
        "- a\n- b\n",
        expect![
            "m.yml:1: here is a list, where keys are wanted: apiVersion, metadata, namespaces, schemas, topics"
        ],
    );
    check_problems(
        "a: &x [1]\nb: *x\n",
        expect!["m.yml:2: aliases are not taken; write the value out"],
    );
    check_problems(
        "topics: !!set {a: b}\n",
        expect!["m.yml:1: tags such as `!name` mean nothing here; leave it out"],
    );
    let deep = "[".repeat(100_000);
    check_problems(&deep, expect!["m.yml:1: this is not YAML: recursion limit exceeded"]);
}

#[test]
fn json_and_several_documents_are_taken() {
    let json = r#"{"namespaces": ["a"], "topics": [{"name": "/a/t", "partitions": 2}]}"#;
    assert_eq!(parse(json).expect("JSON is YAML").objects.len(), 2);
    let two = "namespaces: [a]\n---\nnamespaces: [b]\n---\n";
    assert_eq!(parse(two).expect("two documents").objects.len(), 2);
    assert_eq!(parse("").expect("an empty manifest").objects.len(), 0);
}

#[test]
fn the_schema_for_editors_is_the_published_one() {
    let text = serde_json::to_string_pretty(&json_schema()).expect("plain data") + "\n";
    expect_test::expect_file!["../../../../docs/manifest.schema.json"].assert_eq(&text);
}

/// A key that is known to one of the two and not to the other is found here.
#[test]
fn the_schema_for_editors_knows_the_keys_that_are_read() {
    let schema = json_schema();
    let keys = |schema: &serde_json::Value| -> BTreeSet<String> {
        schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let known = |text: &str, line: u32| -> BTreeSet<String> {
        let problems = parse(text).expect_err("an unknown key");
        let found = problems.iter().find(|problem| {
            problem.at.as_ref().is_some_and(|at| at.line == line)
                && problem.why.contains("known are ")
        });
        let (_, known) = found.expect("told").why.split_once("known are ").expect("told");
        known.split(", ").map(str::to_owned).collect()
    };
    let topic = &schema["properties"]["topics"]["items"];
    let subscription = &topic["properties"]["subscriptions"]["items"];
    assert_eq!(known("zzzzzzzzzzzzz: 1", 1), keys(&schema));
    assert_eq!(known("topics:\n- {name: t, zzzzzzzzzzzzz: 1}", 2), keys(topic));
    let text = "topics:\n- name: t\n  subscriptions:\n  - {name: s, zzzzzzzzzzzzz: 1}";
    assert_eq!(known(text, 4), keys(subscription));
    let text =
        "topics:\n- name: t\n  subscriptions:\n  - name: s\n    failure_policy: {zzzzzzzzzzzzz: 1}";
    assert_eq!(known(text, 5), keys(&subscription["properties"]["failure_policy"]));
    let text = "schemas:\n- {subject: s, zzzzzzzzzzzzz: 1}";
    assert_eq!(known(text, 2), keys(&schema["properties"]["schemas"]["items"]));
    let text = "topics:\n- name: t\n  policies: {zzzzzzzzzzzzz: 1}";
    assert_eq!(known(text, 3), keys(&topic["properties"]["policies"]));
}
