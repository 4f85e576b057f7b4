//! What passes to a topic under each policy, and when a change of it takes effect.

use super::House;
use tonic::Code;

const T: &str = "/default/t";

/// A message, and whether `enforce` refuses it with this in its sentence.
type Row<'a> = ((Option<u64>, Option<u32>), &'a [u8], Option<&'a str>);

#[tokio::test]
async fn each_policy_does_what_it_says() {
    let house = House::open().await;
    house.create_topic(T).await;
    let producer = house.producer(T, "p", None).await.expect("attaches");
    let id = house.register("s", "json_schema", r#"{"type":"integer"}"#).await.expect("registers");
    let other = house.register("o", "string", "").await.expect("registers").schema_id;
    let id = id.schema_id;
    let rows: [Row<'_>; 7] = [
        ((Some(id), Some(1)), b"5", None),
        ((Some(id), None), b"5", None),
        ((None, None), b"5", Some("no schema_id")),
        ((Some(999), Some(1)), b"5", Some("no subject of the registry has")),
        ((Some(other), Some(1)), b"5", Some("subject `o`")),
        ((Some(id), Some(2)), b"5", Some("no version 2")),
        ((Some(id), Some(1)), b"5.5", Some("5.5")),
    ];
    let outcomes = async |payload_is_checked: bool, refuses: bool| {
        for ((schema, payload, refusal), at) in rows.iter().zip(1..) {
            let sent = house.publish(T, producer, *schema, payload).await;
            let fits = refusal.is_none() || (at == rows.len() && !payload_is_checked);
            match sent {
                Ok(()) => assert!(fits || !refuses, "row {at} passes"),
                Err(status) => {
                    assert!(refuses && !fits, "row {at}: {status}");
                    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
                    let expected = refusal.expect("it is refused");
                    assert!(status.message().contains(expected), "row {at}: {status}");
                    assert!(status.message().contains(T), "{status}");
                }
            }
        }
    };
    outcomes(true, false).await;
    assert_eq!(
        house.counted("danube_schema_validation_total", ""),
        0,
        "no subject: nothing to look at"
    );
    for (policy, payload, refuses) in [
        ("none", true, false),
        ("warn", true, false),
        ("warn", false, false),
        ("enforce", false, true),
        ("enforce", true, true),
    ] {
        house.configure(T, "s", policy, payload).await.expect("is set");
        outcomes(payload, refuses).await;
    }
    let failures = |reason: &str| house.counted("danube_schema_validation_failures_total", reason);
    assert_eq!(failures("missing_schema_id"), 4);
    assert_eq!(failures("subject_mismatch"), 8);
    assert_eq!(failures("unknown_version"), 4);
    assert_eq!(failures("payload_invalid"), 2);
    assert_eq!(house.counted("danube_schema_validation_total", "warn"), 14);
    assert_eq!(house.counted("danube_schema_validation_total", "enforce"), 14);
}

#[tokio::test]
async fn a_change_takes_effect_on_producers_that_are_there() {
    let house = House::open().await;
    house.create_topic(T).await;
    let producer = house.producer(T, "p", None).await.expect("attaches");
    let id = house.register("s", "avro", "\"int\"").await.expect("registers").schema_id;
    let bare = (None, None);
    house.publish(T, producer, bare, b"x").await.expect("no subject");
    house.configure(T, "s", "enforce", true).await.expect("is set");
    house.publish(T, producer, bare, b"x").await.expect_err("refused from now on");
    house.publish(T, producer, (Some(id), Some(1)), &[2]).await.expect("fits");
    // A version that came after the policy is known, and judged by its own definition.
    house.register("s", "avro", "\"long\"").await.expect("is compatible");
    let long = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
    house.publish(T, producer, (Some(id), Some(2)), &long).await.expect("fits version 2");
    let status = house.publish(T, producer, (Some(id), Some(1)), &long).await.expect_err("an int");
    assert!(status.message().contains("version 1"), "{status}");
    house.set_policy(T, "warn", false).await.expect("is set");
    house.publish(T, producer, bare, b"x").await.expect("warned of");
    house.set_policy(T, "enforce", false).await.expect("is set");
    house.publish(T, producer, bare, b"x").await.expect_err("refused again");
    // Unloaded and loaded again, it is what it was.
    let view = house.context.meta.view();
    let topic_id = view.topic(&super::topic(T)).expect("made").id;
    house.context.topics.stop(topic_id, crate::topic::StopReason::Unloaded).await;
    house.publish(T, producer, bare, b"x").await.expect_err("refused after loading");
}

#[tokio::test]
async fn what_others_change_in_the_catalog_is_followed() {
    let house = House::open().await;
    house.create_topic(T).await;
    let producer = house.producer(T, "p", None).await.expect("attaches");
    house.register("s", "avro", "\"int\"").await.expect("registers");
    let following = tokio::spawn(crate::schema::follow(house.context.clone()));
    // As it comes from another broker: into the catalog, and nobody here is told.
    let configure = danube_core::change::ConfigureTopicSchema {
        topic: super::topic(T),
        subject: danube_core::SubjectName::parse("s").expect("well formed"),
        validation_policy: danube_core::ValidationPolicy::Enforce,
        enable_payload_validation: false,
        by: "another broker".into(),
    };
    // The follower may begin after the first change, and then sees the next one.
    let mut round = 0;
    while house.publish(T, producer, (None, None), b"x").await.is_ok() {
        let mut change = configure.clone();
        change.enable_payload_validation = round % 2 == 0;
        round += 1;
        let taken = house.context.meta.propose(change, crate::clock::Clock::wall()).await;
        taken.expect("is taken");
        tokio::task::yield_now().await;
    }
    following.abort();
}

#[tokio::test]
async fn hostile_payloads_are_refused_in_bounded_time() {
    let house = House::open().await;
    house.create_topic(T).await;
    let producer = house.producer(T, "p", None).await.expect("attaches");
    let nested = r##"{"type":"array","items":{"$ref":"#"}}"##;
    let id = house.register("s", "json_schema", nested).await.expect("registers").schema_id;
    house.configure(T, "s", "enforce", true).await.expect("is set");
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let status = house.publish(T, producer, (Some(id), Some(1)), deep.as_bytes()).await;
    let status = status.expect_err("too deep");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("nested deeper"), "{status}");
}
