//! Publishing to a broker that refuses, dies, moves the topic or gives it to somebody else.

use crate::server::{PublishStream, Server, comes, payloads};
use danube_sdk::{Error, FaultKind, NewMessage, Producer, Receipt};
use danube_wire::proto::stream::Refusal;
use danube_wire::stream::PublishResponse;

/// A producer whose stream is in the test's hands.
async fn attached(server: &mut Server) -> (Producer, PublishStream) {
    let client = server.client();
    let opening = tokio::spawn(async move {
        client.producer("/default/t").name("p").batch_messages(2).open().await
    });
    let mut stream = server.publish().await;
    stream.open(0).await;
    (comes("the producer", opening).await.expect("no panic").expect("opened"), stream)
}

/// Publishes `m0`, `m1`, ... in full batches of two.
async fn publish(producer: &Producer, numbers: std::ops::Range<u32>) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for n in numbers {
        receipts.push(producer.enqueue(NewMessage::new(format!("m{n}"))).await.expect("room"));
    }
    receipts
}

#[tokio::test]
async fn after_a_broken_stream_the_same_batches_come_again() {
    let mut server = Server::start().await;
    let (producer, mut stream) = attached(&mut server).await;
    let mut receipts = publish(&producer, 0..6).await;
    let batches = [stream.batch().await, stream.batch().await, stream.batch().await];
    stream.ack(&batches[0], 0).await;
    assert_eq!(receipts.remove(0).await.expect("stored").offset(), 0);
    drop(stream);

    // The broker stored the second batch, but the answer was lost.
    let mut stream = server.publish().await;
    let open = stream.open(4).await;
    assert_eq!(open.producer_name, "p");
    for expected in &batches[1..] {
        let again = stream.batch().await;
        assert_eq!(again.first_sequence, expected.first_sequence);
        assert_eq!(payloads(&again), payloads(expected));
        stream.ack(&again, again.first_sequence + 10).await;
    }
    let offsets = [1, 13, 14, 15, 16];
    for (receipt, offset) in receipts.into_iter().zip(offsets) {
        assert_eq!(receipt.await.expect("stored").offset(), offset);
    }
    let next = publish(&producer, 6..8).await;
    assert_eq!(stream.batch().await.first_sequence, 7);
    drop(next);
}

#[tokio::test]
async fn a_broker_that_dies_and_comes_back_gets_what_it_missed() {
    let mut server = Server::start().await;
    let (producer, mut stream) = attached(&mut server).await;
    let receipts = publish(&producer, 0..2).await;
    stream.batch().await;
    let address = server.address().to_owned();
    drop((stream, server));

    let mut server = Server::start_at(&address).await;
    let mut stream = server.publish().await;
    stream.open(0).await;
    let batch = stream.batch().await;
    assert_eq!((batch.first_sequence, payloads(&batch)), (1, ["m0", "m1"].map(Into::into).into()));
    stream.ack(&batch, 5).await;
    for (receipt, offset) in receipts.into_iter().zip([5, 6]) {
        assert_eq!(comes("a receipt", receipt).await.expect("stored").offset(), offset);
    }
}

#[tokio::test]
async fn what_is_refused_for_now_is_sent_again_in_order() {
    for refusal in [Refusal::Retry, Refusal::Overloaded] {
        let mut server = Server::start().await;
        let (producer, mut stream) = attached(&mut server).await;
        let receipts = publish(&producer, 0..6).await;
        let batches = [stream.batch().await, stream.batch().await, stream.batch().await];
        let number = batches[0].producer;
        stream.ack(&batches[0], 0).await;
        stream.refuse(number, (3, 2), refusal, "no room now").await;
        // What was under way behind it is refused too, and that changes nothing.
        stream.refuse(number, (5, 2), Refusal::OutOfOrder, "3 is missing").await;
        // One batch alone, until it is answered.
        let again = stream.batch().await;
        assert_eq!((again.first_sequence, payloads(&again)), (3, payloads(&batches[1])));
        stream.ack(&again, 2).await;
        let again = stream.batch().await;
        assert_eq!((again.first_sequence, payloads(&again)), (5, payloads(&batches[2])));
        stream.ack(&again, 4).await;
        for (offset, receipt) in receipts.into_iter().enumerate() {
            assert_eq!(receipt.await.expect("stored").offset(), offset as u64);
        }
    }
}

#[tokio::test]
async fn a_wrong_message_fails_alone() {
    let mut server = Server::start().await;
    let (producer, mut stream) = attached(&mut server).await;
    let mut receipts = publish(&producer, 0..4).await;
    let batch = stream.batch().await;
    stream.refuse(batch.producer, (2, 1), Refusal::Invalid, "it is no order").await;
    let wrong = receipts.remove(1).await.expect_err("refused");
    assert!(
        matches!(&wrong, Error::Refused { kind: FaultKind::Invalid, reason, .. } if reason == "it is no order"),
        "{wrong}"
    );
    let ack = danube_wire::proto::stream::PublishAck {
        producer: batch.producer,
        first_sequence: 1,
        first_offset: 7,
        count: 1,
    };
    stream.answer(PublishResponse { acks: vec![ack], ..Default::default() }).await;
    assert_eq!(receipts.remove(0).await.expect("stored").offset(), 7);
    let batch = stream.batch().await;
    assert_eq!(batch.first_sequence, 3, "the number of the wrong one is used up");
    stream.ack(&batch, 8).await;
    assert_eq!(receipts.remove(0).await.expect("stored").offset(), 8);
    // Its failure is seen by who flushes while it is under way.
    let _receipts = publish(&producer, 4..6).await;
    let flushing = tokio::spawn(async move { (producer.flush().await, producer) });
    let batch = stream.batch().await;
    stream.refuse(batch.producer, (5, 2), Refusal::Invalid, "no order either").await;
    let (flushed, _producer) = comes("the flush", flushing).await.expect("no panic");
    assert!(flushed.is_err());
}

#[tokio::test]
async fn a_fenced_producer_is_over_for_good() {
    let mut server = Server::start().await;
    let (producer, mut stream) = attached(&mut server).await;
    let receipts = publish(&producer, 0..4).await;
    let batch = stream.batch().await;
    stream.refuse(batch.producer, (1, 2), Refusal::Fenced, "opened by another stream").await;
    for receipt in receipts {
        let fenced = comes("a receipt", receipt).await.expect_err("fenced");
        assert!(matches!(fenced, Error::Fenced { .. }), "{fenced}");
    }
    let fenced = producer.send("m", None).await.expect_err("fenced");
    assert!(fenced.to_string().contains("opened by another stream"), "{fenced}");
    // It does not come back.
    assert!(stream.request().await.is_none(), "the stream has no producer left");
}

#[tokio::test]
async fn a_topic_that_moved_is_followed() {
    let (mut server, mut other) = (Server::start().await, Server::start().await);
    let (producer, mut stream) = attached(&mut server).await;
    let receipts = publish(&producer, 0..2).await;
    let batch = stream.batch().await;
    let elsewhere = server.topology.elsewhere.clone();
    elsewhere.lock().expect("no panic").insert("/default/t".into(), other.url.clone());
    stream.refuse(batch.producer, (1, 2), Refusal::Moved, "it is at another broker").await;

    let mut stream = other.publish().await;
    stream.open(0).await;
    let again = stream.batch().await;
    assert_eq!(payloads(&again), payloads(&batch));
    stream.ack(&again, 0).await;
    for receipt in receipts {
        let id = comes("a receipt", receipt).await.expect("stored");
        assert_eq!(id.broker_url(), other.url);
    }
}

#[tokio::test]
async fn a_broker_that_lost_count_is_asked_what_it_has() {
    let mut server = Server::start().await;
    let (producer, mut stream) = attached(&mut server).await;
    let receipts = publish(&producer, 0..2).await;
    let batch = stream.batch().await;
    stream.refuse(batch.producer, (1, 2), Refusal::OutOfOrder, "numbers are missing").await;
    // The same stream may go on or end; the producer is opened again.
    let mut stream = server.publish().await;
    stream.open(6).await;
    let again = stream.batch().await;
    // The broker says that it has 6, so it has these; its answer tells where.
    assert_eq!((again.first_sequence, payloads(&again)), (1, payloads(&batch)));
    stream.ack(&again, 0).await;
    for receipt in receipts {
        comes("a receipt", receipt).await.expect("stored");
    }
    let _more = publish(&producer, 2..4).await;
    assert_eq!(stream.batch().await.first_sequence, 7);
}

#[tokio::test]
async fn a_topic_that_is_gone_fails_what_waits() {
    let mut server = Server::start().await;
    let (producer, mut stream) = attached(&mut server).await;
    let receipts = publish(&producer, 0..2).await;
    stream.batch().await;
    drop(stream);
    let mut stream = server.publish().await;
    let open = &stream.request().await.expect("an open").open[0];
    stream.refuse(open.producer, (0, 0), Refusal::NotFound, "the topic was deleted").await;
    for receipt in receipts {
        let gone = comes("a receipt", receipt).await.expect_err("gone");
        assert!(matches!(gone, Error::Refused { kind: FaultKind::NotFound, .. }), "{gone}");
    }
}
