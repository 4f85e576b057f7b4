//! Acks, nacks and extensions, and what the broker answers.

use crate::consume::{subscribed, subscribed_as};
use crate::server::{Server, comes, delivered_of};
use danube_sdk::{ConsumerBuilder, Error, Message};
use danube_wire::proto::stream as proto;
use std::time::Duration;

async fn receive(consumer: &danube_sdk::Consumer, count: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for _ in 0..count {
        messages.push(comes("a message", consumer.next()).await.expect("received"));
    }
    messages
}

#[tokio::test]
async fn acks_travel_as_ranges_and_stale_ones_are_told_apart() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..6, 30_000).await;
    let messages = receive(&consumer, 6).await;
    let all = consumer.ack_all(&messages[..4]);
    let request = stream.settling().await;
    assert_eq!(request.acks, [proto::Range { first: 0, count: 4, attempt: 1, epoch: 1 }]);
    stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;
    comes("the answer", all).await.expect("settled");

    let (fourth, fifth) = (consumer.ack(&messages[4]), consumer.ack(&messages[5]));
    let stale = vec![proto::Range { first: 5, count: 1, attempt: 1, epoch: 1 }];
    let mut left = 2;
    while left > 0 {
        let request = stream.settling().await;
        left -= request.acks.iter().map(|range| range.count).sum::<u32>();
        let settled = proto::Settled { id: request.id, stale: stale.clone(), ..Default::default() };
        stream.settled(settled).await;
    }
    comes("the answer", fourth).await.expect("settled");
    let lost = comes("the answer", fifth).await.expect_err("stale");
    assert!(matches!(lost, Error::LeaseLost { offset: 5, .. }), "{lost}");
}

#[tokio::test]
async fn what_comes_while_two_requests_are_unanswered_is_gathered() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..8, 30_000).await;
    let messages = receive(&consumer, 8).await;
    let mut requests = Vec::new();
    for message in &messages[..2] {
        drop(consumer.ack(message));
        requests.push(stream.settling().await);
    }
    for message in messages[2..].iter().rev() {
        drop(consumer.ack(message));
    }
    stream.settled(proto::Settled { id: requests[0].id, ..Default::default() }).await;
    let gathered = stream.settling().await;
    assert_eq!(gathered.acks, [proto::Range { first: 2, count: 6, attempt: 1, epoch: 1 }]);
}

#[tokio::test]
async fn acks_linger_until_one_is_awaited_or_something_else_is_sent() {
    let mut server = Server::start().await;
    let for_ever = Duration::from_secs(3600);
    let (consumer, mut stream) =
        subscribed_as(&mut server, |builder| builder.ack_linger(for_ever)).await;
    stream.deliver_all(0..6, 30_000).await;
    let messages = receive(&consumer, 6).await;
    drop(consumer.ack(&messages[0]));
    let awaited = tokio::spawn(consumer.ack(&messages[1]));
    let request = stream.settling().await;
    assert_eq!(request.acks, [proto::Range { first: 0, count: 2, attempt: 1, epoch: 1 }]);
    stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;
    comes("the answer", awaited).await.expect("no panic").expect("settled");

    drop(consumer.ack(&messages[2]));
    drop(consumer.nack(&messages[3], Duration::ZERO, "not now"));
    let request = stream.settling().await;
    assert_eq!(request.acks, [proto::Range { first: 2, count: 1, attempt: 1, epoch: 1 }]);
    assert_eq!(request.nacks.len(), 1);
    stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;

    drop(consumer.ack(&messages[4]));
    let closing = tokio::spawn(consumer.close());
    let request = stream.settling().await;
    assert_eq!(request.acks, [proto::Range { first: 4, count: 1, attempt: 1, epoch: 1 }]);
    assert!(request.close, "{request:?}");
    drop((stream, closing));
}

#[tokio::test]
async fn many_acks_do_not_linger() {
    let mut server = Server::start().await;
    let for_ever = Duration::from_secs(3600);
    let settings = |builder: ConsumerBuilder| builder.ack_linger(for_ever).prefetch(1_000);
    let (consumer, mut stream) = subscribed_as(&mut server, settings).await;
    stream.deliver_all(0..100, 30_000).await;
    for message in receive(&consumer, 100).await {
        drop(consumer.ack(&message));
    }
    let request = stream.settling().await;
    assert_eq!(request.acks, [proto::Range { first: 0, count: 100, attempt: 1, epoch: 1 }]);
}

#[tokio::test]
async fn nacks_and_extensions_say_what_was_asked() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..2, 30_000).await;
    let messages = receive(&consumer, 2).await;
    let nack = consumer.nack(&messages[0], Duration::from_millis(1_500), "out of paper");
    let request = stream.settling().await;
    let [asked] = &request.nacks[..] else { panic!("{request:?}") };
    assert_eq!((asked.delay_ms, asked.reason.as_str()), (1_500, "out of paper"));
    stream.settled(proto::Settled { id: request.id, ..Default::default() }).await;
    comes("the answer", nack).await.expect("settled");

    let extension = consumer.extend(&messages[1], Duration::from_secs(120));
    let request = stream.settling().await;
    let [asked] = &request.extensions[..] else { panic!("{request:?}") };
    assert_eq!(asked.by_ms, 120_000);
    let granted = proto::Extension { by_ms: 60_000, ..*asked };
    let settled = proto::Settled { id: request.id, extended: vec![granted], ..Default::default() };
    stream.settled(settled).await;
    let granted = comes("the answer", extension).await.expect("granted");
    assert_eq!(granted, Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn an_ack_that_could_not_be_written_down_may_be_asked_for_again() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..1, 30_000).await;
    let messages = receive(&consumer, 1).await;
    let ack = consumer.ack(&messages[0]);
    let id = stream.settling().await.id;
    let failure = "the disk is full".to_owned();
    stream.settled(proto::Settled { id, failure, ..Default::default() }).await;
    let failed = comes("the answer", ack).await.expect_err("not settled");
    assert!(matches!(&failed, Error::NotSettled { .. }) && failed.is_retryable(), "{failed}");
    let ack = consumer.ack(&messages[0]);
    let id = stream.settling().await.id;
    stream.settled(proto::Settled { id, ..Default::default() }).await;
    comes("the answer", ack).await.expect("settled");
}

#[tokio::test]
async fn nothing_is_acked_where_nothing_is_kept() {
    let mut server = Server::start().await;
    let (consumer, stream) = subscribed(&mut server).await;
    stream.deliver_all(0..1, 0).await;
    let messages = receive(&consumer, 1).await;
    comes("the answer", consumer.ack(&messages[0])).await.expect("nothing to do");
    let extended = consumer.extend(&messages[0], Duration::from_secs(1));
    assert_eq!(comes("the answer", extended).await.expect("nothing to do"), None);
}

#[tokio::test]
async fn a_broker_that_never_answers_an_ack_is_left() {
    let mut server = Server::start().await;
    let client = server.builder().call_timeout(Duration::from_secs(2)).build().expect("a URL");
    let subscribing =
        tokio::spawn(async move { client.consumer("/default/t", "s").subscribe().await });
    let mut stream = server.consume().await;
    stream.subscribe().await;
    let consumer = comes("the consumer", subscribing).await.expect("no panic").expect("subscribed");
    stream.deliver_all(0..1, 30_000).await;
    let messages = receive(&consumer, 1).await;
    let lost = comes("an answer", consumer.ack(&messages[0])).await.expect_err("never answered");
    assert!(matches!(lost, Error::LeaseLost { .. }), "{lost}");
    server.consume().await.subscribe().await;
}

#[tokio::test]
async fn a_payload_that_is_no_value_can_still_be_settled() {
    let mut server = Server::start().await;
    let (consumer, mut stream) = subscribed(&mut server).await;
    stream.deliver_all(0..1, 30_000).await;
    let numbers = consumer.typed::<u32>();
    let message = comes("a message", numbers.next()).await.expect("received");
    let error = message.value().expect_err("`m0` is no number");
    assert!(matches!(error, Error::Payload { doing: "read", .. }), "{error}");
    drop(numbers.nack(&message, Duration::ZERO, "no number"));
    assert_eq!(stream.settling().await.nacks[0].reason, "no number");
}

#[tokio::test]
async fn a_message_is_read_as_its_schema_says_which_is_fetched_once() {
    let mut server = Server::start().await;
    let (consumer, stream) = subscribed(&mut server).await;
    let deliveries = vec![
        delivered_of(0, 1, (3, 4), "[1,2]"),
        delivered_of(1, 1, (3, 4), "[3]"),
        delivered_of(2, 1, (9, 1), "[4]"),
    ];
    let rest = proto::ConsumeResponse { epoch: 1, lease_ms: 30_000, ..Default::default() };
    stream.deliver(deliveries, rest).await;
    let lists = consumer.typed::<Vec<u32>>();
    let first = comes("a message", lists.next()).await.expect("received");
    assert_eq!(first.schema().expect("named").subject(), "orders");
    assert_eq!(first.into_value().expect("a list"), [1, 2]);
    let second = comes("a message", lists.next()).await.expect("received");
    assert_eq!(second.value().expect("a list"), &[3]);
    let third = comes("a message", lists.next()).await.expect("received");
    let error = third.value().expect_err("a number, in the bytes of Avro, is no list");
    assert!(error.to_string().contains("version 1 of schema `orders`"), "{error}");
    let asked = server.topology.schemas_asked.lock().expect("no panic").clone();
    assert_eq!(asked, [(3, Some(4)), (9, Some(1))]);
}
