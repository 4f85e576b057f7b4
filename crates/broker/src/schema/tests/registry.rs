//! Versions: what is refused and why, over all versions and through references; one history.

use super::House;
use danube_core::catalog::SubjectEvent;
use danube_wire::proto::{control, danube_schema as proto};
use proto::schema_registry_server::SchemaRegistry;
use std::collections::BTreeSet;
use std::sync::Arc;
use tonic::{Code, Request};

/// A record `R` with these fields, each `name: type` or `name: type = default`.
fn record(fields: &[(&str, &str, Option<&str>)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, of, default)| {
            let default = default.map_or(String::new(), |text| format!(r#","default":{text}"#));
            format!(r#"{{"name":"{name}","type":{of}{default}}}"#)
        })
        .collect();
    format!(r#"{{"type":"record","name":"R","fields":[{}]}}"#, fields.join(","))
}

/// Checks, then registers: both say the same.
async fn attempt(
    house: &House,
    subject: &str,
    kind: &str,
    definition: &str,
) -> Result<u32, String> {
    let checked = house.check(subject, kind, definition, None).await;
    match house.register(subject, kind, definition).await {
        Ok(answer) => {
            assert!(checked.is_compatible && checked.errors.is_empty(), "{checked:?}");
            Ok(answer.version)
        }
        Err(status) => {
            assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
            assert!(!checked.is_compatible, "{status}");
            for error in &checked.errors {
                assert!(status.message().contains(error), "{error}\n{}", status.message());
            }
            Err(status.message().to_owned())
        }
    }
}

#[tokio::test]
async fn u17_a_version_is_held_against_all_others() {
    let house = House::open().await;
    let string = "\"string\"";
    let v1 = record(&[("f1", string, None)]);
    let v2 = record(&[("f1", string, None), ("f2", string, Some("\"x\""))]);
    let bare = record(&[("f1", string, None), ("f2", string, None)]);
    assert_eq!(attempt(&house, "s", "avro", &v1).await, Ok(1));
    let refused = attempt(&house, "s", "avro", &bare).await.expect_err("row a");
    for part in ["`s`", "backward", "version 1", "`R.f2`", "no default"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(attempt(&house, "s", "avro", &v2).await, Ok(2), "row b");
    let refused = attempt(&house, "s", "avro", &bare).await.expect_err("row c");
    assert!(refused.contains("version 1") && !refused.contains("version 2"), "{refused}");
    // White space and documentation make no new version.
    let again = house.register("s", "avro", &v1.replace(':', " : ")).await.expect("is there");
    assert_eq!((again.version, again.is_new_version), (1, false));
}

#[tokio::test]
async fn u18_levels_are_a_named_option() {
    let house = House::open().await;
    let open = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let more = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}}}"#;
    let closed =
        r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#;
    attempt(&house, "s", "json_schema", open).await.expect("the first");
    let ask = |level: &str, definition: &str| control::CheckSchemaRequest {
        subject: "s".into(),
        schema_type: "json_schema".into(),
        schema_definition: definition.as_bytes().to_vec(),
        json_level: Some(level.into()),
        ..Default::default()
    };
    let check = |request| super::super::control::check(&house.context, request);
    assert!(check(ask("lenient", more)).await.expect("asks").compatible, "row 3, lenient");
    let strict = check(ask("strict", more)).await.expect("asks");
    let found = &strict.breaks[0];
    assert_eq!((found.path.as_str(), found.rule.as_str()), ("#/properties/b/type", "type"));
    assert_eq!((found.version, found.direction.as_str()), (1, "new_reads_old"));
    assert!(found.witness.as_deref().is_some_and(|witness| witness.contains("\"b\":")));
    let refused = attempt(&house, "s", "json_schema", closed).await.expect_err("row 1");
    assert!(
        refused.contains("#/additionalProperties") && refused.contains("for example"),
        "{refused}"
    );
    // Stored with the subject, it holds for registering as well.
    let set = control::SetCompatibilityRequest {
        subject: "s".into(),
        json_level: Some("STRICT".into()),
        ..Default::default()
    };
    let caller = crate::schema::Caller::default();
    let set = super::super::control::set_with_levels(&house.context, caller, set).await;
    assert_eq!(set.expect("is set").json_level, "strict");
    attempt(&house, "s", "json_schema", more).await.expect_err("row 3, strict");
}

#[tokio::test]
async fn u19_a_default_that_fits_no_branch_is_refused_at_once() {
    let house = House::open().await;
    let wrong = record(&[("f", r#"["int","null"]"#, Some("\"null\""))]);
    let status = house.register("s", "avro", &wrong).await.expect_err("no branch");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("`R.f`") && status.message().contains("no branch"),
        "{status}"
    );
    let fine = record(&[("f", r#"["string","null"]"#, Some("null"))]);
    house.register("s", "avro", &fine).await.expect("1.12: any branch");
}

#[tokio::test]
async fn u20_a_number_stays_taken_over_all_versions() {
    let house = House::open().await;
    let file = |body: &str| format!("syntax = \"proto3\";\n{body}");
    let v1 = file("message M { string a = 1; string x = 2; string y = 3; int32 b = 4; }");
    attempt(&house, "s", "protobuf", &v1).await.expect("the first");
    let reused = file("message M { int32 c = 1; string x = 2; string y = 3; int32 b = 4; }");
    let refused = attempt(&house, "s", "protobuf", &reused).await.expect_err("row 1");
    assert!(
        refused.contains("`M.1`") && refused.contains("string") && refused.contains("int32"),
        "{refused}"
    );
    let v2 = file("message M { reserved 1 to 3; int32 b = 4; }");
    assert_eq!(attempt(&house, "s", "protobuf", &v2).await, Ok(2), "row 2");
    let v3 = file("message M { int32 c = 1; int32 b = 4; }");
    let refused = attempt(&house, "s", "protobuf", &v3).await.expect_err("row 3");
    assert!(refused.contains("version 1") && refused.contains("version 2"), "{refused}");
    let other = file("message Z { int32 b = 4; }");
    attempt(&house, "s", "protobuf", &other).await.expect_err("row 7");
}

#[tokio::test]
async fn references_come_from_the_registry_and_keep_their_version() {
    let house = House::open().await;
    let address = |fields: &str| {
        format!(r#"{{"type":"record","name":"Address","namespace":"acme","fields":[{fields}]}}"#)
    };
    let street = r#"{"name":"street","type":"string"}"#;
    let order = record(&[("to", "\"acme.Address\"", None)]);
    let status = house.register("order", "avro", &order).await.expect_err("not there yet");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("acme.Address"), "{status}");

    house.register("acme.Address", "avro", &address(street)).await.expect("is registered");
    house.register("order", "avro", &order).await.expect("has its reference");
    let two = address(&format!(r#"{street},{{"name":"zip","type":"string","default":""}}"#));
    house.register("acme.Address", "avro", &two).await.expect("is compatible");
    // The same text now means something else, so it is another version.
    let second = house.register("order", "avro", &order).await.expect("is compatible");
    assert_eq!((second.version, second.is_new_version), (2, true));
    let view = house.context.meta.view();
    let pins = |version: u32| {
        let subject = view.subject("order").expect("registered");
        let found = subject.versions.get(&version).expect("registered");
        found.references.values().copied().collect::<Vec<u32>>()
    };
    assert_eq!((pins(1), pins(2)), (vec![1], vec![2]));
    let delete = proto::DeleteSchemaVersionRequest { subject: "acme.Address".into(), version: 1 };
    let status =
        house.registry.delete_schema_version(Request::new(delete)).await.expect_err("used");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("version 1 of `order`"), "{status}");
}

#[tokio::test]
async fn the_bytes_come_back_as_they_came() {
    let house = House::open().await;
    let text = "{ \"type\":\"string\" ,\r\n \"doc\":\"größe\" }";
    let id = house.register("s", "Avro", text).await.expect("registers").schema_id;
    let request = proto::GetSchemaRequest { schema_id: id, version: None };
    let found =
        house.registry.get_schema(Request::new(request)).await.expect("is there").into_inner();
    assert_eq!(found.schema_definition, text.as_bytes());
    assert_eq!(
        (found.schema_type.as_str(), found.compatibility_mode.as_str()),
        ("avro", "backward")
    );
    assert_eq!((found.subject.as_str(), found.created_by.as_str()), ("s", "danube-test"));
    assert!(found.created_at > 1_700_000_000 && found.created_at < 100_000_000_000, "seconds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn registrations_from_many_sides_make_one_history() {
    const CLIENTS: usize = 12;
    let house = Arc::new(House::open().await);
    house.register("s", "avro", &record(&[])).await.expect("the first");
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let house = Arc::clone(&house);
            tokio::spawn(async move {
                // Any order of these is compatible; half of the clients bring the same.
                let name = format!("f{}", client / 2);
                let own = record(&[(name.as_str(), "\"string\"", Some("\"\""))]);
                house.register("s", "avro", &own).await.expect("is compatible")
            })
        })
        .collect();
    let mut given = BTreeSet::new();
    let mut fresh = 0;
    for task in tasks {
        let answer = task.await.expect("does not panic");
        given.insert((answer.version, answer.fingerprint));
        fresh += usize::from(answer.is_new_version);
    }
    let versions: Vec<u32> = given.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (2..=1 + CLIENTS as u32 / 2).collect::<Vec<_>>(), "none twice, no hole");
    assert_eq!(fresh, CLIENTS / 2, "who came second was told that it is there");
    let view = house.context.meta.view();
    let told: Vec<u32> = view
        .subject("s")
        .expect("registered")
        .history
        .iter()
        .filter_map(|line| match line.what {
            SubjectEvent::Registered { version, .. } => Some(version),
            _ => None,
        })
        .collect();
    assert_eq!(told, (1..=1 + CLIENTS as u32 / 2).collect::<Vec<_>>());
}

/// Of two that exclude each other, one is taken, and the other is told why it is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_contradicting_registrations_one_wins() {
    let house = Arc::new(House::open().await);
    for round in 0..8 {
        let subject = format!("s{round}");
        let tasks: Vec<_> = ["\"int\"", "\"string\"", "\"boolean\""]
            .map(|definition| {
                let (house, subject) = (Arc::clone(&house), subject.clone());
                tokio::spawn(async move { house.register(&subject, "avro", definition).await })
            })
            .into();
        let mut taken = 0;
        for task in tasks {
            match task.await.expect("does not panic") {
                Ok(answer) => {
                    assert_eq!(answer.version, 1);
                    taken += 1;
                }
                Err(status) => assert_eq!(status.code(), Code::FailedPrecondition, "{status}"),
            }
        }
        assert_eq!(taken, 1);
    }
}
