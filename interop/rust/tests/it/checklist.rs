//! What the official clients depend on without any document saying so: one test per row of the
//! checklist, named after the row's number.
//!
//! Three rows are not here: 18 (a new owner is reachable before it is announced) needs a second
//! broker, and 20 and 22 (schema calls; the text about an unregistered subject) need the registry.

use crate::broker::Broker;
use crate::wire::*;
use danube_core::proto::consumer_request::SubscriptionType;
use danube_core::proto::health_check_request::ClientType;
use danube_core::proto::health_check_response::ClientStatus;
use danube_core::proto::topic_lookup_response::LookupType;
use danube_core::proto::*;
use std::time::Duration;
use tonic::{Code, Streaming};

const TOPIC: &str = "/default/checklist";
const OK: i32 = ClientStatus::Ok as i32;
const CLOSE: i32 = ClientStatus::Close as i32;

fn exclusive(name: &str) -> ConsumerRequest {
    consumer(TOPIC, "s", SubscriptionType::Exclusive, name)
}

/// A broker, a connection, a Reliable topic with a producer, and an Exclusive consumer's id.
async fn set_up() -> (Broker, Wire, u64, u64) {
    let broker = Broker::start().await;
    let mut wire = Wire::connect(&broker).await;
    let producer = wire.create_producer(TOPIC, "p", true).await;
    let consumer = wire.subscribe(exclusive("c")).await.expect("subscribed");
    (broker, wire, producer, consumer)
}

fn offset(message: &StreamMessage) -> u64 {
    message.msg_id.as_ref().expect("present on delivery").topic_offset
}

#[tokio::test]
async fn row_01_the_answer_to_a_publish_echoes_its_request_id() {
    let (_broker, mut wire, producer, _) = set_up().await;
    for request_id in [0, 1, 77, u64::MAX] {
        let message = StreamMessage { request_id, ..message(TOPIC, producer, "p", b"m") };
        assert_eq!(wire.send(message).await.expect("sent"), request_id);
    }
}

#[tokio::test]
async fn row_02_the_same_producer_name_is_accepted_again() {
    let (broker, mut wire, producer, consumer) = set_up().await;
    let mut stream = wire.receive(consumer).await.expect("opened");
    let mut other = Wire::connect(&broker).await;
    let again = other.create_producer(TOPIC, "p", true).await;
    // Both keep working, whether or not the id is the same.
    wire.send(message(TOPIC, producer, "p", b"one")).await.expect("sent");
    other.send(message(TOPIC, again, "p", b"two")).await.expect("sent");
    assert_eq!(next(&mut stream).await.payload, "one");
    assert_eq!(next(&mut stream).await.payload, "two");
}

#[tokio::test]
async fn row_03_the_same_consumer_name_takes_over() {
    for kind in [
        SubscriptionType::Exclusive,
        SubscriptionType::Shared,
        SubscriptionType::Failover,
        SubscriptionType::KeyShared,
    ] {
        let broker = Broker::start().await;
        let mut wire = Wire::connect(&broker).await;
        let producer = wire.create_producer(TOPIC, "p", true).await;
        let id = wire.subscribe(consumer(TOPIC, "s", kind, "c")).await.expect("subscribed");
        let mut old = wire.receive(id).await.expect("opened");
        wire.send(message(TOPIC, producer, "p", b"held")).await.expect("sent");
        let held = next(&mut old).await;

        let mut other = Wire::connect(&broker).await;
        let again = other.subscribe(consumer(TOPIC, "s", kind, "c")).await.expect("taken over");
        assert_eq!(again, id, "ids are stable over a takeover");
        let mut new = other.receive(again).await.expect("opened");
        assert_eq!(
            offset(&next(&mut new).await),
            offset(&held),
            "{kind:?}: what it held comes again"
        );
        assert_eq!(end_of(&mut old).await, Code::Unavailable, "{kind:?}: the old stream ends");
        other.ack(&held, "s").await.expect("acknowledged");
        wire.send(message(TOPIC, producer, "p", b"next")).await.expect("sent");
        assert_eq!(next(&mut new).await.payload, "next");
    }
}

#[tokio::test]
async fn row_04_partitions_share_one_consumer_name() {
    let broker = Broker::start().await;
    let mut wire = Wire::connect(&broker).await;
    Admin::connect(&broker).await.create_partitioned(TOPIC, 3, true).await;
    let mut streams = Vec::new();
    let mut ids = Vec::new();
    for partition in 0..3 {
        let topic = format!("{TOPIC}-part-{partition}");
        let request = consumer(&topic, "s", SubscriptionType::Exclusive, "one-name");
        let id = wire.subscribe(request).await.expect("subscribed");
        ids.push(id);
        streams.push((topic, wire.receive(id).await.expect("opened")));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "one id for each partition");
    for (topic, stream) in &mut streams {
        let producer = wire.create_producer(topic, "p", true).await;
        wire.send(message(topic, producer, "p", topic.as_bytes())).await.expect("sent");
        assert_eq!(next(stream).await.payload, topic.as_bytes());
    }
}

#[tokio::test]
async fn row_05_partitions_of_a_plain_an_unknown_and_a_partitioned_topic() {
    let (broker, mut wire, ..) = set_up().await;
    let mut admin = Admin::connect(&broker).await;
    admin.create_partitioned("/default/many", 11, true).await;
    // Neighbours by name that are none by nature.
    admin.create_topic("/default/many-part-x", true).await;
    admin.create_topic("/default/manyfold", true).await;
    let many: Vec<String> = (0..11).map(|i| format!("/default/many-part-{i}")).collect();
    for (topic, wanted) in [
        (TOPIC, vec![TOPIC.to_owned()]),
        ("/default/unknown", vec![]),
        ("/default/many", many),
        ("/default/many-part-3", vec!["/default/many-part-3".to_owned()]),
    ] {
        let request = TopicLookupRequest { request_id: 3, topic: topic.into() };
        let answer = wire.discovery.topic_partitions(request).await.expect("answered").into_inner();
        assert_eq!((answer.request_id, answer.partitions), (3, wanted), "{topic}");
    }
}

#[tokio::test]
async fn row_06_the_first_producer_makes_the_topic() {
    let broker = Broker::start().await;
    let mut wire = Wire::connect(&broker).await;
    let request = TopicLookupRequest { request_id: 1, topic: TOPIC.into() };
    let unknown = wire.discovery.topic_lookup(request.clone()).await.expect_err("unknown");
    assert_eq!(unknown.code(), Code::NotFound);
    // One call, no retry: it answers once the topic serves.
    let producer = wire.create_producer(TOPIC, "p", true).await;
    wire.send(message(TOPIC, producer, "p", b"m")).await.expect("sent");
    wire.discovery.topic_lookup(request).await.expect("known now");
}

#[tokio::test]
async fn row_07_a_lookup_tells_all_a_client_needs_to_connect() {
    let (broker, mut wire, ..) = set_up().await;
    let request = TopicLookupRequest { request_id: 9, topic: TOPIC.into() };
    let answer = wire.discovery.topic_lookup(request).await.expect("answered").into_inner();
    assert_eq!(answer.request_id, 9);
    assert_eq!(answer.response_type(), LookupType::Connect);
    assert_eq!(
        (answer.connect_url.as_str(), answer.broker_url.as_str()),
        (broker.url(), broker.url())
    );
    assert!(!answer.proxy, "nothing stands between");
}

#[tokio::test]
async fn row_08_urls_have_a_scheme_and_no_trailing_slash() {
    let (_broker, mut wire, producer, consumer) = set_up().await;
    let request = TopicLookupRequest { request_id: 1, topic: TOPIC.into() };
    let answer = wire.discovery.topic_lookup(request).await.expect("answered").into_inner();
    let mut stream = wire.receive(consumer).await.expect("opened");
    wire.send(message(TOPIC, producer, "p", b"m")).await.expect("sent");
    let stamped = next(&mut stream).await.msg_id.expect("present on delivery").broker_addr;
    for url in [answer.connect_url, answer.broker_url, stamped] {
        assert!(url.starts_with("http://") && !url.ends_with('/'), "{url}");
        let endpoint = tonic::transport::Endpoint::from_shared(url).expect("a client can parse it");
        endpoint.connect().await.expect("a client can dial it");
    }
}

#[tokio::test]
async fn row_09_headers_of_a_stream_come_before_any_message() {
    let (_broker, mut wire, producer, consumer) = set_up().await;
    // Nothing was published: this returns only because the headers are sent at once.
    let mut stream = wire.receive(consumer).await.expect("opened");
    wire.send(message(TOPIC, producer, "p", b"m")).await.expect("sent");
    let first = next(&mut stream).await;
    assert_eq!(wire.ack(&first, "s").await.expect("acknowledged"), first.request_id);
    // The same on a NonReliable topic.
    let other = "/default/plain";
    wire.create_producer(other, "p", false).await;
    let request = consumer_of(other);
    let id = wire.subscribe(request).await.expect("subscribed");
    wire.receive(id).await.expect("opened");
}

fn consumer_of(topic: &str) -> ConsumerRequest {
    consumer(topic, "s", SubscriptionType::Shared, "c")
}

#[tokio::test]
async fn row_10_every_delivery_has_a_msg_id_with_the_exact_topic() {
    let broker = Broker::start().await;
    let mut wire = Wire::connect(&broker).await;
    for (topic, reliable) in [
        ("/default/plain", false),
        ("/default/durable", true),
        ("/default/größe_ß-1", true),
        ("/default/split-part-0", true),
    ] {
        let producer = wire.create_producer(topic, "p", reliable).await;
        let id = wire.subscribe(consumer_of(topic)).await.expect("subscribed");
        let mut stream = wire.receive(id).await.expect("opened");
        wire.send(message(topic, producer, "p", b"m")).await.expect("sent");
        let delivered = next(&mut stream).await;
        let msg_id = delivered.msg_id.expect("present on delivery");
        assert_eq!(msg_id.topic_name, topic);
        assert_eq!(msg_id.producer_id, producer);
        // Nor can a publisher bring one without into the topic.
        let no_id = StreamMessage { msg_id: None, ..message(topic, producer, "p", b"n") };
        let refusal = wire.send(no_id).await.expect_err("nobody knows whose it is");
        assert_eq!(refusal.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn row_11_unknown_is_unavailable() {
    let (broker, mut wire, producer, consumer) = set_up().await;
    let mut stream = wire.receive(consumer).await.expect("opened");
    // A consumer id nobody ever gave out: the open itself fails, so that the client counts it.
    let refusal = wire.receive(1 << 40).await.expect_err("never given out");
    assert_eq!(refusal.code(), Code::Unavailable, "{refusal}");
    // A producer id nobody ever gave out: the client makes its producer anew, and goes on.
    let refusal = wire.send(message(TOPIC, 1 << 40, "late", b"m")).await.expect_err("unknown");
    assert_eq!(refusal.code(), Code::Unavailable, "{refusal}");
    let id = wire.create_producer(TOPIC, "late", true).await;
    wire.send(message(TOPIC, id, "late", b"m")).await.expect("sent");
    assert_eq!(next(&mut stream).await.producer_name, "late");
    // A topic that is gone, and one that came back under its name, which is another one.
    let mut admin = Admin::connect(&broker).await;
    admin.delete_topic(TOPIC).await;
    let refusal = wire.send(message(TOPIC, producer, "p", b"m")).await.expect_err("deleted");
    assert_eq!(refusal.code(), Code::Unavailable, "{refusal}");
    let refusal = wire.receive(consumer).await.expect_err("deleted");
    assert_eq!(refusal.code(), Code::Unavailable, "{refusal}");
    admin.create_topic(TOPIC, true).await;
    let refusal = wire.send(message(TOPIC, producer, "p", b"m")).await.expect_err("another one");
    assert_eq!(refusal.code(), Code::Unavailable, "{refusal}");
}

#[tokio::test]
async fn row_12_streams_end_with_unavailable_when_the_topic_goes() {
    for reliable in [true, false] {
        let broker = Broker::start().await;
        let mut wire = Wire::connect(&broker).await;
        let mut admin = Admin::connect(&broker).await;
        wire.create_producer(TOPIC, "p", reliable).await;
        let id = wire.subscribe(exclusive("c")).await.expect("subscribed");
        let mut stream = wire.receive(id).await.expect("opened");
        admin.unload_topic(TOPIC).await;
        assert_eq!(end_of(&mut stream).await, Code::Unavailable, "unload");
        let mut stream = reopened(&mut wire, id).await;
        admin.delete_topic(TOPIC).await;
        assert_eq!(end_of(&mut stream).await, Code::Unavailable, "delete");
    }
}

#[tokio::test]
async fn row_12_streams_end_with_unavailable_when_the_broker_stops() {
    let (mut broker, mut wire, _, consumer) = set_up().await;
    let mut stream = wire.receive(consumer).await.expect("opened");
    broker.ask_to_stop().await;
    assert_eq!(end_of(&mut stream).await, Code::Unavailable);
    assert!(broker.ended().await.success());
}

/// Opens a stream as the official clients do: again and again while it is UNAVAILABLE.
async fn reopened(wire: &mut Wire, id: u64) -> Streaming<StreamMessage> {
    for _ in 0..600 {
        match wire.receive(id).await {
            Ok(stream) => return stream,
            Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("consumer {id} cannot be opened again");
}

#[tokio::test]
async fn row_13_close_and_the_end_of_the_stream_come_together() {
    let (broker, mut wire, producer, consumer) = set_up().await;
    let mut admin = Admin::connect(&broker).await;
    let mut stream = wire.receive(consumer).await.expect("opened");
    admin.connected(TOPIC, "s", &["c"]).await;
    assert_eq!(wire.health(ClientType::Consumer, consumer).await.expect("answered"), OK);
    assert_eq!(wire.health(ClientType::Producer, producer).await.expect("answered"), OK);

    admin.unload_topic(TOPIC).await;
    assert_eq!(end_of(&mut stream).await, Code::Unavailable);
    assert_eq!(wire.health(ClientType::Consumer, consumer).await.expect("answered"), CLOSE);
    // What the client does then: subscribe again. The id is the same, so its old poll is no zombie.
    assert_eq!(wire.subscribe(exclusive("c")).await.expect("subscribed"), consumer);
    let mut stream = reopened(&mut wire, consumer).await;
    assert_eq!(wire.health(ClientType::Consumer, consumer).await.expect("answered"), OK);

    admin.delete_topic(TOPIC).await;
    assert_eq!(end_of(&mut stream).await, Code::Unavailable);
    assert_eq!(wire.health(ClientType::Consumer, consumer).await.expect("answered"), CLOSE);
    assert_eq!(wire.health(ClientType::Producer, producer).await.expect("answered"), CLOSE);
}

#[tokio::test]
async fn row_14_an_old_consumer_id_is_valid_after_a_restart() {
    for kind in [SubscriptionType::Exclusive, SubscriptionType::KeyShared] {
        let mut broker = Broker::start().await;
        let mut wire = Wire::connect(&broker).await;
        let producer = wire.create_producer(TOPIC, "p", true).await;
        let id = wire.subscribe(consumer(TOPIC, "s", kind, "c")).await.expect("subscribed");
        let mut stream = wire.receive(id).await.expect("opened");
        wire.send(message(TOPIC, producer, "p", b"before")).await.expect("sent");
        next(&mut stream).await;
        broker.kill().await;
        broker.restart().await;
        // No Subscribe: the Python client never sends one again.
        let mut wire = Wire::connect(&broker).await;
        let mut stream = wire.receive(id).await.expect("the id is known");
        let again = next(&mut stream).await;
        assert_eq!(again.payload, "before");
        wire.ack(&again, "s").await.expect("acknowledged");
        // Nor CreateProducer.
        wire.send(message(TOPIC, producer, "p", b"after")).await.expect("sent");
        assert_eq!(next(&mut stream).await.payload, "after");
        assert_eq!(wire.health(ClientType::Consumer, id).await.expect("answered"), OK);
    }
}

#[tokio::test]
async fn row_15_ids_fit_into_a_positive_signed_number() {
    let broker = Broker::start().await;
    let mut wire = Wire::connect(&broker).await;
    for i in 0..20 {
        let topic = format!("/default/t{}", i % 4);
        let producer = wire.create_producer(&topic, &format!("p{i}"), i % 2 == 0).await;
        let name = format!("c{i}");
        let request = consumer(&topic, &format!("s{i}"), SubscriptionType::Shared, &name);
        let consumer = wire.subscribe(request).await.expect("subscribed");
        for id in [producer, consumer] {
            assert!(i64::try_from(id).is_ok_and(|id| id > 0), "{id}");
        }
    }
}

/// As much as decisions allow on topics that official clients can reach: 4 MiB less 64 KiB.
const MESSAGE_LEN_MAX: usize = (4 << 20) - (64 << 10);

#[tokio::test]
async fn row_16_what_is_accepted_can_be_delivered() {
    for reliable in [true, false] {
        let broker = Broker::start().await;
        let mut wire = Wire::connect(&broker).await;
        let producer = wire.create_producer(TOPIC, "p", reliable).await;
        let consumer = wire.subscribe(exclusive("c")).await.expect("subscribed");
        let mut stream = wire.receive(consumer).await.expect("opened");
        Admin::connect(&broker).await.connected(TOPIC, "s", &["c"]).await;
        // The largest payload that is accepted lies within a few hundred bytes of the limit, and
        // the stub here keeps the default limit of 4 MiB, as all official clients do.
        let largest = vec![b'x'; MESSAGE_LEN_MAX - 512];
        wire.send(message(TOPIC, producer, "p", &largest)).await.expect("just small enough");
        assert_eq!(next(&mut stream).await.payload.len(), largest.len());
    }
}

#[tokio::test]
async fn row_17_every_unary_call_is_answered() {
    let (_broker, wire, ..) = set_up().await;
    macro_rules! answered {
        ($client:path, $($method:ident: $request:expr),+ $(,)?) => {{
            $(
                let mut client = <$client>::new(wire.channel.clone());
                let what = stringify!($method);
                // Whatever the answer is: an empty request must not hang, and not look like a bug.
                if let Err(status) = crate::clients::within(what, client.$method($request)).await {
                    let ours = matches!(status.code(), Code::Internal | Code::Unknown);
                    assert!(!ours, "{what}: {status}");
                }
            )+
        }};
    }
    use consumer_service_client::ConsumerServiceClient;
    use danube_schema::schema_registry_client::SchemaRegistryClient;
    use danube_schema::*;
    use discovery_client::DiscoveryClient;
    use health_check_client::HealthCheckClient;
    use producer_service_client::ProducerServiceClient;
    use storage_service_client::StorageServiceClient;
    type Channel = tonic::transport::Channel;
    answered!(ProducerServiceClient<Channel>,
        create_producer: ProducerRequest::default(),
        send_message: StreamMessage::default());
    answered!(ConsumerServiceClient<Channel>,
        subscribe: ConsumerRequest::default(),
        receive_messages: ReceiveRequest::default(),
        ack: AckRequest::default(),
        nack: NackRequest::default());
    answered!(DiscoveryClient<Channel>,
        topic_lookup: TopicLookupRequest::default(),
        topic_partitions: TopicLookupRequest::default());
    answered!(HealthCheckClient<Channel>,
        health_check: HealthCheckRequest::default());
    answered!(StorageServiceClient<Channel>,
        list_segment_descriptors: ListSegmentDescriptorsRequest::default());
    answered!(SchemaRegistryClient<Channel>,
        register_schema: RegisterSchemaRequest::default(),
        get_schema: GetSchemaRequest::default(),
        get_latest_schema: GetLatestSchemaRequest::default(),
        list_versions: ListVersionsRequest::default(),
        check_compatibility: CheckCompatibilityRequest::default(),
        list_subjects: ListSubjectsRequest::default(),
        get_topic_schema_config: GetTopicSchemaConfigRequest::default());
}

#[tokio::test]
async fn row_19_many_streams_on_one_connection() {
    const SUBSCRIPTIONS: usize = 10;
    const CONSUMERS: usize = 50;
    let broker = Broker::start().await;
    let mut wire = Wire::connect(&broker).await;
    let producer = wire.create_producer(TOPIC, "p", true).await;
    let mut streams = Vec::new();
    for subscription in 0..SUBSCRIPTIONS {
        for name in 0..CONSUMERS {
            let (subscription, name) = (format!("s{subscription}"), format!("c{name}"));
            let request = consumer(TOPIC, &subscription, SubscriptionType::Shared, &name);
            let id = wire.subscribe(request).await.expect("subscribed");
            streams.push((subscription, wire.receive(id).await.expect("opened")));
        }
    }
    let mut admin = Admin::connect(&broker).await;
    admin
        .until(TOPIC, "all are connected", |d| {
            let consumers = d.subscriptions.iter().flat_map(|s| &s.consumers);
            consumers.filter(|c| c.connected).count() == SUBSCRIPTIONS * CONSUMERS
        })
        .await;
    // One message for each consumer of each subscription: they take turns, so each gets one.
    for _ in 0..CONSUMERS {
        wire.send(message(TOPIC, producer, "p", b"m")).await.expect("sent");
    }
    for (subscription, stream) in &mut streams {
        let message = next(stream).await;
        wire.ack(&message, subscription).await.expect("acknowledged");
    }
}

#[tokio::test]
async fn row_21_a_rejected_publish_is_an_invalid_argument() {
    for reliable in [true, false] {
        let broker = Broker::start().await;
        let mut wire = Wire::connect(&broker).await;
        let producer = wire.create_producer(TOPIC, "p", reliable).await;
        for len in [MESSAGE_LEN_MAX + 1, (4 << 20) - 1_000, (4 << 20) + 1, 6 << 20] {
            let oversize = message(TOPIC, producer, "p", &vec![b'x'; len]);
            let refusal = wire.send(oversize).await.expect_err("too large");
            assert_eq!(refusal.code(), Code::InvalidArgument, "{len} bytes: {refusal}");
            let text = refusal.message();
            assert!(text.contains(&MESSAGE_LEN_MAX.to_string()), "names the limit: {text}");
        }
        // It harmed nothing.
        wire.send(message(TOPIC, producer, "p", b"small")).await.expect("sent");
    }
}

#[tokio::test]
async fn row_23_another_delivery_strategy_is_no_error_and_changes_nothing() {
    let (broker, mut wire, _, consumer) = set_up().await;
    let plain = wire.create_producer(TOPIC, "unaware", false).await;
    let mut stream = wire.receive(consumer).await.expect("opened");
    wire.send(message(TOPIC, plain, "unaware", b"kept")).await.expect("sent");
    next(&mut stream).await;
    drop(stream);
    // The topic is Reliable still: unacknowledged comes again.
    let mut stream = wire.receive(consumer).await.expect("opened");
    assert_eq!(next(&mut stream).await.payload, "kept");
    assert_eq!(Admin::connect(&broker).await.describe(TOPIC).await.delivery, "Reliable");
}
