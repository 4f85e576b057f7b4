//! Receiving: what the application sees, what the broker is told, and streams that end.

use crate::server::{ConsumeStream, Server, comes, delivered};
use danube_sdk::{Consumer, ConsumerBuilder, Error, FaultKind, Position};
use danube_wire::proto::stream as proto;
use futures::StreamExt;
use std::time::Duration;

/// A consumer whose stream is in the test's hands.
pub async fn subscribed(server: &mut Server) -> (Consumer, ConsumeStream) {
    subscribed_as(server, |builder| builder.prefetch(8)).await
}

/// As [`subscribed`], with settings of its own.
pub async fn subscribed_as(
    server: &mut Server,
    settings: impl FnOnce(ConsumerBuilder) -> ConsumerBuilder,
) -> (Consumer, ConsumeStream) {
    let builder = settings(server.client().consumer("/default/t", "s"));
    let subscribing = tokio::spawn(builder.subscribe());
    let mut stream = server.consume().await;
    stream.subscribe().await;
    (comes("the consumer", subscribing).await.expect("no panic").expect("subscribed"), stream)
}

#[tokio::test]
async fn a_message_is_received_with_everything() {
    let mut server = Server::start().await;
    let client = server.client();
    let subscribing = tokio::spawn(async move {
        let consumer = client.consumer("/default/t", "s").name("c").key_shared(["a*", "b"]);
        consumer.start(Position::Offset(3)).prefetch(9).subscribe().await
    });
    let mut stream = server.consume().await;
    let subscribe = stream.subscribe().await;
    let consumer = comes("the consumer", subscribing).await.expect("no panic").expect("subscribed");
    assert_eq!((subscribe.topic.as_str(), subscribe.subscription.as_str()), ("/default/t", "s"));
    assert_eq!(subscribe.consumer_name, "c");
    assert_eq!(subscribe.r#type(), proto::SubscriptionType::KeyShared);
    assert_eq!(subscribe.key_filters, ["a*", "b"]);
    assert_eq!(subscribe.start.expect("given").at, Some(proto::position::At::Offset(3)));
    assert_eq!(subscribe.credit.expect("given").messages, 9);

    stream.deliver_all(3..4, 30_000).await;
    let message = comes("a message", consumer.next()).await.expect("received");
    assert_eq!((&message.payload()[..], message.offset(), message.attempt()), (&b"m3"[..], 3, 1));
    assert_eq!((message.topic(), message.key()), ("/default/t", Some("k")));
    assert_eq!((message.producer_name(), message.publish_time_ms()), ("p", 1_700_000_000_000));
    assert_eq!((message.schema_id(), message.schema_version()), (Some(3), Some(4)));
    assert_eq!((message.attribute("a"), message.attributes().len()), (Some("1"), 1));
}

#[tokio::test]
async fn batches_and_streams_give_the_same_messages() {
    let mut server = Server::start().await;
    let (mut consumer, stream) = subscribed(&mut server).await;
    let none = consumer.next_batch(10, Duration::from_millis(1)).await.expect("no error");
    assert!(none.is_empty());
    stream.deliver_all(0..5, 30_000).await;
    let batch = comes("a batch", consumer.next_batch(3, Duration::from_secs(60))).await;
    let offsets: Vec<u64> = batch.expect("received").iter().map(|m| m.offset()).collect();
    assert_eq!(offsets, [0, 1, 2]);
    let rest: Vec<_> = (&mut consumer).take(2).collect().await;
    let rest: Vec<u64> = rest.into_iter().map(|m| m.expect("received").offset()).collect();
    assert_eq!(rest, [3, 4]);
}

#[tokio::test]
async fn credit_goes_back_as_the_application_takes() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..8, 30_000).await;
    let mut returned = 0;
    for _ in 0..8 {
        comes("a message", consumer.next()).await.expect("received");
    }
    while returned < 8 {
        let request = stream.request().await.expect("credit");
        let credit = request.credit.expect("nothing else is to be said");
        assert!(credit.messages > 0 && credit.bytes > 0);
        returned += credit.messages;
    }
    assert_eq!(returned, 8);
}

#[tokio::test]
async fn waiting_in_the_buffer_costs_no_lease() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(10..14, 60).await;
    let first = comes("a message", consumer.next()).await.expect("received");
    assert_eq!(first.offset(), 10);
    // Only what waits is extended; and again, as long as it waits.
    for _ in 0..2 {
        let request = stream.settling().await;
        let [extension] = &request.extensions[..] else { panic!("{request:?}") };
        let range = extension.range.expect("given");
        assert_eq!((range.first, range.count, extension.by_ms), (11, 3, 60));
        stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;
    }
    // One went to somebody else even so, and is not handed out.
    let request = stream.settling().await;
    let gone = proto::Range { first: 12, count: 1, attempt: 1, epoch: 1 };
    stream
        .settled(proto::Settled { id: request.id, stale: vec![gone], ..Default::default() })
        .await;
    // What was asked before that answer came may still name it.
    loop {
        let request = stream.settling().await;
        stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;
        let ranges = request.extensions.iter().filter_map(|extension| extension.range);
        if ranges.map(|r| (r.first, r.count)).eq([(11, 1), (13, 1)]) {
            break;
        }
    }
    for offset in [11, 13] {
        assert_eq!(comes("a message", consumer.next()).await.expect("received").offset(), offset);
    }
}

#[tokio::test]
async fn after_a_broken_stream_nothing_of_it_is_handed_out() {
    let mut server = Server::start().await;
    let (consumer, stream) = subscribed(&mut server).await;
    stream.deliver_all(0..3, 30_000).await;
    let held = comes("a message", consumer.next()).await.expect("received");
    let waiting = consumer.ack(&held);
    drop(stream);

    let mut stream = server.consume().await;
    stream.subscribe().await;
    let again = vec![delivered(0, 2), delivered(1, 2)];
    let rest = proto::ConsumeResponse { epoch: 1, lease_ms: 30_000, ..Default::default() };
    stream.deliver(again, rest).await;
    let message = comes("a message", consumer.next()).await.expect("received");
    assert_eq!((message.offset(), message.attempt()), (0, 2));
    for ack in [waiting, consumer.ack(&held)] {
        let lost = comes("an answer", ack).await.expect_err("lost");
        assert!(matches!(lost, Error::LeaseLost { offset: 0, .. }), "{lost}");
    }
}

#[tokio::test]
async fn a_consumer_that_is_taken_over_says_so_and_ends() {
    let mut server = Server::start().await;
    let (consumer, stream) = subscribed(&mut server).await;
    stream.deliver_all(0..1, 30_000).await;
    comes("a message", consumer.next()).await.expect("received");
    stream.end(proto::Refusal::Fenced, "another consumer `c` came").await;
    let fenced = comes("an error", consumer.next()).await.expect_err("fenced");
    assert!(matches!(&fenced, Error::Fenced { reason, .. } if reason.contains("came")), "{fenced}");
    let closed = comes("an error", consumer.next()).await.expect_err("closed");
    assert!(matches!(closed, Error::Closed { .. }), "{closed}");
}

#[tokio::test]
async fn a_subscription_that_moved_is_followed() {
    let (mut server, mut other) = (Server::start().await, Server::start().await);
    let (consumer, stream) = subscribed(&mut server).await;
    let elsewhere = server.topology.elsewhere.clone();
    elsewhere.lock().expect("no panic").insert("/default/t".into(), other.url.clone());
    stream.end(proto::Refusal::Moved, "it is at another broker").await;
    let mut stream = other.consume().await;
    stream.subscribe().await;
    stream.deliver_all(0..1, 30_000).await;
    comes("a message", consumer.next()).await.expect("received");
}

#[tokio::test]
async fn a_refused_subscribe_is_an_error_with_the_brokers_sentence() {
    let mut server = Server::start().await;
    let client = server.client();
    let subscribing =
        tokio::spawn(
            async move { client.consumer("/default/t", "s").exclusive().subscribe().await },
        );
    let mut stream = server.consume().await;
    stream.request().await.expect("a subscribe");
    stream.end(proto::Refusal::Precondition, "it has a consumer already").await;
    let refused = comes("an error", subscribing).await.expect("no panic").expect_err("refused");
    assert!(
        matches!(&refused, Error::Refused { kind: FaultKind::Precondition, .. })
            && refused.to_string().ends_with("it has a consumer already"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_subscribe_that_is_never_answered_ends() {
    let mut server = Server::start().await;
    let client = server.builder().call_timeout(Duration::from_millis(100)).build().expect("a URL");
    let late = comes("an error", client.consumer("/default/t", "s").subscribe()).await;
    let late = late.expect_err("late");
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    let mut stream = server.consume().await;
    assert!(stream.request().await.expect("it did ask").subscribe.is_some());
}

#[tokio::test]
async fn closing_gives_back_what_is_held() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..3, 30_000).await;
    let message = comes("a message", consumer.next()).await.expect("received");
    let ack = consumer.ack(&message);
    let closing = tokio::spawn(consumer.close());
    // The ack may go before the close or with it.
    let mut request = stream.settling().await;
    let (id, acked) = (request.id, request.acks[0]);
    assert_eq!((acked.first, acked.count), (0, 1));
    while !request.close {
        request = stream.request().await.expect("a close");
    }
    stream.settled(proto::Settled { id, ..Default::default() }).await;
    comes("the answer", ack).await.expect("settled");
    drop(stream);
    comes("the close", closing).await.expect("no panic");
}

#[tokio::test]
async fn a_dropped_consumer_closes_too() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    drop(consumer);
    assert!(stream.request().await.expect("a close").close);
    assert!(stream.request().await.is_none(), "nothing behind it");
}

#[tokio::test]
async fn all_partitions_are_received() {
    let mut server = Server::start().await;
    let parts: Vec<String> = (0..2).map(|i| format!("/default/t-part-{i}")).collect();
    let partitions = server.topology.partitions.clone();
    partitions.lock().expect("no panic").insert("/default/t".into(), parts);
    let client = server.client();
    let subscribing =
        tokio::spawn(async move { client.consumer("/default/t", "s").subscribe().await });
    let (mut one, mut other) = (server.consume().await, server.consume().await);
    let mut topics = vec![one.subscribe().await.topic, other.subscribe().await.topic];
    topics.sort_unstable();
    assert_eq!(topics, ["/default/t-part-0", "/default/t-part-1"]);
    let consumer = comes("the consumer", subscribing).await.expect("no panic").expect("subscribed");
    one.deliver_all(0..1, 30_000).await;
    other.deliver_all(0..1, 30_000).await;
    let first = comes("a message", consumer.next()).await.expect("received");
    let second = comes("a message", consumer.next()).await.expect("received");
    assert_ne!(first.topic(), second.topic());
    // Acks find the partition that they belong to.
    let ack = consumer.ack_all([&first, &second]);
    for stream in [&mut one, &mut other] {
        let request = stream.settling().await;
        assert_eq!(request.acks.len(), 1);
        stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;
    }
    comes("the answers", ack).await.expect("settled");
}

#[tokio::test]
async fn a_topic_that_is_not_there_says_how_to_make_it() {
    let server = Server::start().await;
    let partitions = server.topology.partitions.clone();
    partitions.lock().expect("no panic").insert("/default/t".into(), Vec::new());
    let missing = server.client().consumer("/default/t", "s").subscribe().await.expect_err("none");
    assert!(missing.to_string().contains("danube ctl topics create /default/t"), "{missing}");
}
