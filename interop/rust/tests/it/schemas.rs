//! Schemas through the official client: registering, evolving, following a subject, enforcing one.

use crate::broker::Broker;
use crate::clients::*;
use danube_client::{
    CompatibilityMode, DanubeClient, Producer, ProducerBuilder, SchemaType, SubType,
};
use danube_core::proto::danube_schema::schema_registry_client::SchemaRegistryClient;
use danube_core::proto::danube_schema::{
    ConfigureTopicSchemaRequest, GetTopicSchemaConfigRequest, ListSubjectsRequest,
    UpdateTopicValidationPolicyRequest,
};

const TOPIC: &str = "/default/schemas";
const V1: &str = r#"{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}"#;
const V2: &str = r#"{"type":"record","name":"User","fields":[{"name":"id","type":"long"},
    {"name":"name","type":"string","default":""}]}"#;
const BREAKING: &str =
    r#"{"type":"record","name":"User","fields":[{"name":"id","type":"string"}]}"#;

async fn register(client: &DanubeClient, subject: &str, data: &str) -> Result<u64, String> {
    let schemas = client.schema();
    let registering = schemas
        .register_schema(subject)
        .with_type(SchemaType::Avro)
        .with_schema_data(data.as_bytes())
        .execute();
    within("an id", registering).await.map_err(|error| error.to_string())
}

async fn follow(
    client: &DanubeClient,
    name: &str,
    how: impl FnOnce(ProducerBuilder) -> ProducerBuilder,
) -> Result<Producer, String> {
    let builder = client.new_producer().with_topic(TOPIC).with_name(name);
    let mut producer = how(builder).build().expect("all that is required is set");
    let created = within("the producer", producer.create()).await;
    created.map(|_| producer).map_err(|error| error.to_string())
}

#[tokio::test]
async fn versions_and_compatibility() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let schemas = client.schema();
    let id = register(&client, "users", V1).await.expect("the first");
    assert_eq!(register(&client, "users", &V1.replace(':', ": ")).await, Ok(id), "the same");
    let latest = schemas.get_latest_schema("users").await.expect("is there");
    assert_eq!((latest.schema_id, latest.version), (id, 1));
    assert_eq!(latest.schema_definition, V1.as_bytes(), "byte for byte");

    let checked = |data: &str, mode| {
        schemas.check_compatibility("users", data.as_bytes().to_vec(), SchemaType::Avro, mode)
    };
    assert!(checked(V2, None).await.expect("answers").is_compatible);
    let breaking = checked(BREAKING, None).await.expect("answers");
    assert!(!breaking.is_compatible && breaking.errors[0].contains("User.id"), "{breaking:?}");
    let refused = register(&client, "users", BREAKING).await.expect_err("breaks");
    assert!(refused.contains("User.id"), "{refused}");
    assert_eq!(register(&client, "users", V2).await, Ok(id));
    assert_eq!(schemas.list_versions("users").await.expect("lists"), [1, 2]);
    let first = schemas.get_schema_version(id, Some(1)).await.expect("is there");
    assert_eq!(first.schema_definition, V1.as_bytes());
    assert_eq!(schemas.get_schema_by_id(id).await.expect("is there").version, 2);

    schemas.set_compatibility_mode("users", CompatibilityMode::None).await.expect("is set");
    assert_eq!(register(&client, "users", BREAKING).await, Ok(id));
    let mut raw = SchemaRegistryClient::new(broker.channel().await);
    let listed = raw.list_subjects(ListSubjectsRequest {}).await.expect("lists").into_inner();
    let listed: Vec<(&str, u32, &str)> = listed
        .subjects
        .iter()
        .map(|one| (one.subject.as_str(), one.latest_version, one.compatibility_mode.as_str()))
        .collect();
    assert_eq!(listed, [("users", 3, "NONE")]);
}

#[tokio::test]
async fn producers_follow_latest_pinned_and_minimum() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let refused = follow(&client, "p", |p| p.with_schema_subject("users")).await;
    let refused = refused.err().expect("not registered");
    assert!(refused.contains("not found"), "{refused}");
    let id = register(&client, "users", V1).await.expect("registers");
    register(&client, "users", V2).await.expect("registers");
    let latest =
        follow(&client, "latest", |p| p.with_schema_subject("users")).await.expect("latest");
    let pinned =
        follow(&client, "pinned", |p| p.with_schema_version("users", 1)).await.expect("pinned");
    let minimum =
        follow(&client, "min", |p| p.with_schema_min_version("users", 2)).await.expect("min");
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    crate::wire::Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;
    for (producer, version) in [(&latest, 2), (&pinned, 1), (&minimum, 2)] {
        send(producer, &[2, 0]).await;
        let message = inbox.take().await;
        assert_eq!((message.schema_id, message.schema_version), (Some(id), Some(version)));
    }
    register(&client, "other", "\"int\"").await.expect("registers");
    let refused = follow(&client, "q", |p| p.with_schema_subject("other")).await;
    let refused = refused.err().expect("another subject");
    assert!(refused.contains("users"), "{refused}");
}

#[tokio::test]
async fn a_topic_enforces_on_connected_producers() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    register(&client, "users", V1).await.expect("registers");
    let plain = producer(&client, TOPIC, "plain", true, None).await;
    send(&plain, b"anything").await;
    let mut raw = SchemaRegistryClient::new(broker.channel().await);
    let configure = ConfigureTopicSchemaRequest {
        topic_name: TOPIC.into(),
        schema_subject: "users".into(),
        validation_policy: "enforce".into(),
        enable_payload_validation: true,
    };
    assert!(raw.configure_topic_schema(configure).await.expect("is set").into_inner().success);
    let refused = within("a refusal", plain.send(vec![14], None)).await;
    assert!(refused.expect_err("has no id").to_string().contains("schema_id"));
    let tagged =
        follow(&client, "tagged", |p| p.with_schema_subject("users")).await.expect("attaches");
    send(&tagged, &[14]).await;
    let refused = within("a refusal", tagged.send(vec![0xFF], None)).await;
    assert!(refused.expect_err("is no datum").to_string().contains("User"));
    let update = UpdateTopicValidationPolicyRequest {
        topic_name: TOPIC.into(),
        validation_policy: "warn".into(),
        enable_payload_validation: true,
    };
    raw.update_topic_validation_policy(update).await.expect("is set");
    send(&tagged, &[0xFF]).await;
    send(&plain, b"anything").await;
    let get = GetTopicSchemaConfigRequest { topic_name: TOPIC.into() };
    let config = raw.get_topic_schema_config(get).await.expect("is there").into_inner();
    assert_eq!((config.validation_policy.as_str(), config.schema_id > 0), ("warn", true));
}
