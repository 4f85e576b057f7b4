//! What each call answers to what cannot be, and what the lists and histories show.

use super::House;
use danube_wire::proto::danube::schema_reference::VersionRef;
use danube_wire::proto::{control, danube_schema as proto};
use proto::schema_registry_server::SchemaRegistry;
use tonic::{Code, Request, Response, Status};

fn code<T>(answer: Result<Response<T>, Status>) -> Code {
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

#[tokio::test]
async fn every_refusal_has_its_code() {
    let house = House::open().await;
    let registry = &house.registry;
    for (subject, kind, definition) in [
        ("s", "thrift", "x"),
        ("s", "avro", "{"),
        ("", "avro", "\"int\""),
        ("a\nb", "avro", "\"int\""),
        ("s", "bytes", &"x".repeat(600 << 10)),
    ] {
        let status = house.register(subject, kind, definition).await.expect_err(kind);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
    let latest = proto::GetLatestSchemaRequest { subject: "s".into() };
    assert_eq!(
        code(registry.get_latest_schema(Request::new(latest.clone())).await),
        Code::NotFound
    );
    let by_id = |schema_id, version| Request::new(proto::GetSchemaRequest { schema_id, version });
    assert_eq!(code(registry.get_schema(by_id(1, None)).await), Code::NotFound);
    let versions = proto::ListVersionsRequest { subject: "s".into() };
    assert_eq!(code(registry.list_versions(Request::new(versions)).await), Code::NotFound);
    let mode = |subject: &str, mode: &str| {
        Request::new(proto::SetCompatibilityModeRequest {
            subject: subject.into(),
            compatibility_mode: mode.into(),
        })
    };
    assert_eq!(code(registry.set_compatibility_mode(mode("s", "full")).await), Code::NotFound);
    let delete =
        |version| Request::new(proto::DeleteSchemaVersionRequest { subject: "s".into(), version });
    assert_eq!(code(registry.delete_schema_version(delete(1)).await), Code::NotFound);
    let fresh = house.check("s", "avro", "\"int\"", None).await;
    assert!(fresh.is_compatible, "nothing to conflict with");

    let id = house.register("s", "avro", "\"int\"").await.expect("registers").schema_id;
    assert_eq!(
        code(registry.set_compatibility_mode(mode("s", "sideways")).await),
        Code::InvalidArgument
    );
    assert_eq!(code(registry.get_schema(by_id(id, Some(2))).await), Code::NotFound);
    assert_eq!(code(registry.get_schema(by_id(id, Some(1))).await), Code::Ok);
    assert_eq!(code(registry.delete_schema_version(delete(2)).await), Code::NotFound);

    house.create_topic("/default/t").await;
    let get =
        || Request::new(proto::GetTopicSchemaConfigRequest { topic_name: "/default/t".into() });
    assert_eq!(code(registry.get_topic_schema_config(get()).await), Code::NotFound);
    let failed =
        |answer: Result<(), Status>| answer.map_or_else(|status| status.code(), |()| Code::Ok);
    for (topic, subject, policy, expected) in [
        ("/default/t", "none", "warn", Code::NotFound),
        ("/default/u", "s", "warn", Code::NotFound),
        ("/default/t", "s", "panic", Code::InvalidArgument),
        ("/default", "s", "warn", Code::InvalidArgument),
    ] {
        assert_eq!(
            failed(house.configure(topic, subject, policy, false).await),
            expected,
            "{topic}"
        );
    }
    assert_eq!(
        failed(house.set_policy("/default/t", "warn", false).await),
        Code::FailedPrecondition
    );
    assert_eq!(failed(house.configure("/default/t", "s", "Enforce", true).await), Code::Ok);
    assert_eq!(failed(house.set_policy("/default/t", "panic", false).await), Code::InvalidArgument);
    let config = registry.get_topic_schema_config(get()).await.expect("is there").into_inner();
    assert_eq!(
        (config.schema_subject.as_str(), config.validation_policy.as_str()),
        ("s", "enforce")
    );
    assert_eq!((config.enable_payload_validation, config.schema_id), (true, id));
    // Its topics would have no schema left.
    assert_eq!(code(registry.delete_schema_version(delete(1)).await), Code::FailedPrecondition);
}

#[tokio::test]
async fn the_lists_show_what_is_there_and_the_history_what_was() {
    let house = House::open().await;
    house.register("b/c", "json", "true").await.expect("registers");
    house.register("a", "string", "").await.expect("registers");
    house.set_mode("a", "FULL").await;
    let listed = house.registry.list_subjects(Request::new(proto::ListSubjectsRequest {}));
    let listed: Vec<String> = listed
        .await
        .expect("lists")
        .into_inner()
        .subjects
        .into_iter()
        .map(|one| {
            format!(
                "{} {} {} {}",
                one.subject, one.schema_type, one.latest_version, one.compatibility_mode
            )
        })
        .collect();
    assert_eq!(listed, ["a string 1 FULL", "b/c json_schema 1 BACKWARD"]);

    let mut request =
        Request::new(proto::DeleteSchemaVersionRequest { subject: "a".into(), version: 1 });
    request.metadata_mut().insert("x-danube-actor", "bob".parse().expect("text"));
    house.registry.delete_schema_version(request).await.expect("is deleted");
    let latest = proto::GetLatestSchemaRequest { subject: "a".into() };
    assert_eq!(code(house.registry.get_latest_schema(Request::new(latest)).await), Code::NotFound);
    let request = control::ListSchemaHistoryRequest { subject: Some("a".into()), topic: None };
    let history = super::super::control::history(&house.context, request).await.expect("is kept");
    let told: Vec<String> =
        history.entries.iter().map(|line| format!("{} by {}", line.event, line.by)).collect();
    assert_eq!(
        told,
        ["registered by danube-test", "compatibility_set by unknown", "deleted by bob"]
    );
    assert!(history.entries[1].from.contains("backward") && history.entries[1].to.contains("full"));
    // Registered again it goes on where it was.
    let again = house.register("a", "string", "").await.expect("registers");
    assert_eq!((again.version, again.is_new_version), (2, true));
}

#[tokio::test]
async fn the_first_producer_brings_the_subject() {
    let house = House::open().await;
    let t = "/default/t";
    let latest = || VersionRef::UseLatest(true);
    let status = house.producer(t, "p", Some(("s", latest()))).await.expect_err("not registered");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("not found"), "{status}");
    assert!(house.context.meta.view().topic(&super::topic(t)).is_none(), "nothing is left behind");

    house.register("s", "avro", "\"int\"").await.expect("registers");
    house.register("s", "avro", "\"long\"").await.expect("registers");
    house.register("other", "string", "").await.expect("registers");
    for (version, expected) in [
        (VersionRef::PinnedVersion(3), Code::FailedPrecondition),
        (VersionRef::MinVersion(3), Code::FailedPrecondition),
        (VersionRef::PinnedVersion(1), Code::Ok),
        (VersionRef::MinVersion(2), Code::Ok),
        (latest(), Code::Ok),
    ] {
        let answer = house.producer(t, "p", Some(("s", version))).await;
        assert_eq!(
            answer.map_or_else(|status| status.code(), |_| Code::Ok),
            expected,
            "{version:?}"
        );
    }
    let status = house.producer(t, "q", Some(("other", latest()))).await.expect_err("another");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(
        status.message().contains("`s`") && status.message().contains("cannot use"),
        "{status}"
    );
    house.producer(t, "plain", None).await.expect("a producer without a schema may come");
    let view = house.context.meta.view();
    let record = &view.topic(&super::topic(t)).expect("made").schema.history;
    assert_eq!(record.len(), 1);
    assert_eq!(record[0].by, "producer p");
}
