//! Publishing to a broker that takes everything, and opening producers.

use crate::server::{PublishStream, Server, comes, messages, opened, payloads};
use danube_sdk::{Error, FaultKind, NewMessage, Producer};
use danube_wire::proto::stream as proto;
use danube_wire::stream::PublishResponse;
use std::collections::HashMap;
use std::time::Duration;

#[tokio::test]
async fn a_message_goes_with_everything_and_comes_back_as_an_id() {
    let mut server = Server::start().await;
    let client = server.client();
    let serving = tokio::spawn(async move {
        let mut stream = server.publish().await;
        let open = stream.open(0).await;
        let batch = stream.batch().await;
        stream.ack(&batch, 41).await;
        (open, batch, server, stream)
    });
    let producer = client.producer("/default/t").name("p").exclusive().reliable().open().await;
    let producer = producer.expect("opened");
    let attributes = HashMap::from([("source".to_string(), "app-1".to_string())]);
    let sent = producer.send(b"Important message".to_vec(), Some(attributes)).await;
    let id = sent.expect("stored");
    let (open, batch, server, _stream) =
        comes("the script's end", serving).await.expect("no panic");

    assert_eq!((open.topic.as_str(), open.producer_name.as_str()), ("/default/t", "p"));
    assert_eq!((open.exclusive, open.delivery()), (true, proto::Delivery::Reliable));
    assert_eq!((batch.producer, batch.first_sequence), (open.producer, 1));
    let [message] = &messages(&batch)[..] else { panic!("one message") };
    assert_eq!(&message.payload[..], b"Important message");
    assert_eq!(message.attributes["source"], "app-1");
    assert!(message.publish_time > 1_600_000_000_000 && message.producer_name.is_empty());
    assert_eq!((id.topic(), id.offset(), id.producer_id()), ("/default/t", 41, 77));
    assert_eq!((id.broker_url(), id.to_string()), (server.url.as_str(), "/default/t@41".into()));
}

#[tokio::test]
async fn what_waits_goes_as_one_batch_with_receipts_in_order() {
    let mut server = Server::start().await;
    let client = server.client();
    let opening = tokio::spawn(async move {
        client.producer("/default/t").linger(Duration::from_secs(60)).open().await
    });
    let mut stream = server.publish().await;
    stream.open(9).await;
    let producer = comes("the producer", opening).await.expect("no panic").expect("opened");
    let mut receipts = Vec::new();
    for n in 0..3 {
        let message = NewMessage::new(format!("m{n}")).key("k").attribute("n", n.to_string());
        receipts.push(producer.enqueue(message).await.expect("room"));
    }
    let flushed = tokio::spawn(async move { (producer.flush().await, producer) });
    let batch = stream.batch().await;
    assert_eq!(
        (batch.first_sequence, payloads(&batch)),
        (10, ["m0", "m1", "m2"].map(Into::into).into())
    );
    assert_eq!(messages(&batch)[1].routing_key.as_deref(), Some("k"));
    stream.ack(&batch, 100).await;
    let (flushed, producer) = comes("the flush", flushed).await.expect("no panic");
    flushed.expect("all stored");
    for (n, receipt) in receipts.into_iter().enumerate() {
        assert_eq!(receipt.await.expect("stored").offset(), 100 + n as u64);
    }
    producer.flush().await.expect("nothing to wait for");
}

#[tokio::test]
async fn what_is_published_together_has_one_receipt_with_ids_in_order() {
    let mut server = Server::start().await;
    let client = server.client();
    let opening = tokio::spawn(async move {
        client.producer("/default/t").linger(Duration::from_secs(60)).batch_messages(2).open().await
    });
    let mut stream = server.publish().await;
    stream.open(0).await;
    let producer = comes("the producer", opening).await.expect("no panic").expect("opened");
    let texts = ["m0", "m1", "m2", "m3", "m4"];
    let receipts = producer.enqueue_all(texts.map(NewMessage::new)).await.expect("room");
    assert_eq!((receipts.len(), receipts.is_empty()), (5, false));
    let flushed = tokio::spawn(async move { (producer.flush().await, producer) });
    let mut sent = Vec::new();
    // Each batch somewhere else, as if others published between them.
    for first_offset in [10, 20, 30] {
        let batch = stream.batch().await;
        sent.extend(payloads(&batch));
        stream.ack(&batch, first_offset).await;
    }
    assert_eq!(sent, texts);
    let ids = comes("the ids", receipts).await.expect("stored");
    let offsets: Vec<u64> = ids.iter().map(|id| id.offset()).collect();
    assert_eq!(offsets, [10, 11, 20, 21, 30]);
    let (flushed, producer) = comes("the flush", flushed).await.expect("no panic");
    flushed.expect("all stored");
    let none = producer.enqueue_all([]).await.expect("nothing to do");
    assert!(none.is_empty());
    assert_eq!(none.await.expect("nothing failed"), []);
}

/// A producer whose messages may have 100 bytes, and its stream.
async fn limited(server: &mut Server) -> (Producer, PublishStream) {
    let client = server.client();
    let opening = tokio::spawn(async move { client.producer("/default/t").open().await });
    let mut stream = server.publish().await;
    stream.open_with(proto::ProducerOpened { message_bytes_max: 100, ..opened() }).await;
    (comes("the producer", opening).await.expect("no panic").expect("opened"), stream)
}

#[tokio::test]
async fn of_what_is_published_together_the_first_refusal_is_told() {
    let mut server = Server::start().await;
    let (producer, mut stream) = limited(&mut server).await;
    let together = [vec![1; 10], vec![2; 200], vec![3; 10]].map(NewMessage::new);
    let refused = producer.enqueue_all(together).await.expect_err("one is too large");
    assert!(refused.to_string().contains("is larger than 100"), "{refused}");
    let batch = stream.batch().await;
    assert_eq!(payloads(&batch), ["\u{1}".repeat(10)], "the one before it, and nothing after it");
    stream.ack(&batch, 0).await;
    let receipts = producer.enqueue_all(["a", "b"].map(NewMessage::new)).await.expect("room");
    let batch = stream.batch().await;
    stream.refuse(batch.producer, (3, 1), proto::Refusal::Invalid, "it is no order").await;
    let ack = proto::PublishAck {
        first_sequence: 2,
        first_offset: 1,
        count: 1,
        producer: batch.producer,
    };
    stream.answer(PublishResponse { acks: vec![ack], ..Default::default() }).await;
    let refused = comes("the ids", receipts).await.expect_err("one is not stored");
    assert!(refused.to_string().contains("it is no order"), "{refused}");
}

#[tokio::test]
async fn all_producers_share_one_stream_and_the_last_one_ends_it() {
    let mut server = Server::start().await;
    let client = server.client();
    let opening = tokio::spawn(async move {
        let first = client.producer("/default/a").open().await?;
        let second = client.producer("/default/b").open().await?;
        Ok::<_, Error>((first, second, client))
    });
    let mut stream = server.publish().await;
    let (one, other) = (stream.open(0).await, stream.open(0).await);
    assert_ne!(one.producer, other.producer);
    assert_ne!(one.producer_name, other.producer_name, "names of their own");
    let (first, second, client) = comes("both", opening).await.expect("no panic").expect("opened");

    let closing = tokio::spawn(async move { first.close().await });
    let request = stream.request().await.expect("a close");
    let closed = vec![proto::ProducerClosed { producer: request.close[0].producer }];
    stream.answer(PublishResponse { closed, ..Default::default() }).await;
    comes("the close", closing).await.expect("no panic").expect("nothing failed");

    drop(second);
    let request = stream.request().await.expect("a close");
    assert_eq!(request.close[0].producer, other.producer);
    let closed = vec![proto::ProducerClosed { producer: other.producer }];
    stream.answer(PublishResponse { closed, ..Default::default() }).await;
    assert!(stream.request().await.is_none(), "nobody is left");
    drop(client);
}

#[tokio::test]
async fn a_full_window_makes_the_application_wait() {
    let mut server = Server::start().await;
    let client = server.client();
    let opening = tokio::spawn(async move { client.producer("/default/t").open().await });
    let mut stream = server.publish().await;
    stream.open_with(proto::ProducerOpened { window_bytes: 1_000, ..opened() }).await;
    let producer = comes("the producer", opening).await.expect("no panic").expect("opened");
    let first = producer.enqueue(NewMessage::new(vec![b'a'; 900])).await.expect("room");
    let batch = stream.batch().await;
    let waiting = tokio::spawn(async move {
        let receipt = producer.enqueue(NewMessage::new(vec![b'b'; 900])).await;
        (receipt, producer)
    });
    // The second one cannot be on its way: the stream is answered before anything else comes.
    stream.ack(&batch, 0).await;
    first.await.expect("stored");
    let (second, _producer) = comes("room", waiting).await.expect("no panic");
    let batch = stream.batch().await;
    assert_eq!((batch.first_sequence, batch.messages.count()), (2, 1));
    stream.ack(&batch, 1).await;
    assert_eq!(second.expect("room").await.expect("stored").offset(), 1);
}

#[tokio::test]
async fn a_message_that_is_too_large_does_not_travel() {
    let mut server = Server::start().await;
    let (producer, _stream) = limited(&mut server).await;
    let refused = producer.send(vec![0; 200], None).await.expect_err("too large");
    assert!(matches!(&refused, Error::Refused { kind: FaultKind::Invalid, .. }), "{refused}");
    assert!(refused.to_string().contains("is larger than 100"), "{refused}");
}

#[tokio::test]
async fn partitions_have_a_producer_each_and_keys_keep_their_partition() {
    let mut server = Server::start().await;
    let parts: Vec<String> = (0..3).map(|i| format!("/default/t-part-{i}")).collect();
    let partitions = server.topology.partitions.clone();
    partitions.lock().expect("no panic").insert("/default/t".into(), parts.clone());
    let client = server.client();
    let opening = tokio::spawn(async move { client.producer("/default/t").name("p").open().await });
    let mut stream = server.publish().await;
    let mut topics = HashMap::new();
    while topics.len() < 3 {
        let request = stream.request().await.expect("producers to open");
        for open in request.open {
            let opened = proto::ProducerOpened { producer: open.producer, ..opened() };
            stream.answer(PublishResponse { opened: vec![opened], ..Default::default() }).await;
            topics.insert(open.producer, (open.topic, open.producer_name));
        }
    }
    let producer = comes("the producer", opening).await.expect("no panic").expect("opened");
    assert_eq!(producer.partition_count(), 3);
    let mut names: Vec<_> = topics.values().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["p-0", "p-1", "p-2"]);
    for message in [NewMessage::new("k1").key("a"), NewMessage::new("k2").key("a")] {
        let _receipt = producer.enqueue(message).await.expect("room");
        let batch = stream.batch().await;
        // FNV-1a of `a` modulo 3, as the other clients have it.
        assert_eq!(topics[&batch.producer].0, "/default/t-part-1");
        stream.ack(&batch, 0).await;
    }
    let mut used = Vec::new();
    for n in 0..3 {
        let _receipt = producer.enqueue(NewMessage::new(format!("{n}"))).await.expect("room");
        let batch = stream.batch().await;
        stream.ack(&batch, 0).await;
        used.push(topics[&batch.producer].0.clone());
    }
    used.sort_unstable();
    assert_eq!(used, parts, "in turn");
}

#[tokio::test]
async fn a_schema_is_asked_for_and_put_into_every_message() {
    let mut server = Server::start().await;
    let client = server.client();
    let opening = tokio::spawn(async move {
        let schema = danube_sdk::SchemaChoice::version("orders", 4);
        client.producer("/default/t").schema(schema).open().await
    });
    let mut stream = server.publish().await;
    let with_schema =
        proto::ProducerOpened { schema_id: Some(8), schema_version: Some(4), ..opened() };
    let asked = stream.open_with(with_schema).await.schema.expect("a reference");
    assert_eq!(asked.version, Some(proto::schema_reference::Version::Pinned(4)));
    let producer = comes("the producer", opening).await.expect("no panic").expect("opened");
    let orders = producer.typed::<Vec<u32>>();
    let _receipt = orders.enqueue(&vec![1, 2], |message| message.key("k")).await.expect("room");
    let batch = stream.batch().await;
    let [message] = &messages(&batch)[..] else { panic!("one message") };
    assert_eq!((message.schema_id, message.schema_version), (Some(8), Some(4)));
    assert_eq!(&message.payload[..], b"[1,2]");
}

#[tokio::test]
async fn a_refused_open_is_an_error_with_the_brokers_sentence() {
    let mut server = Server::start().await;
    for (refusal, kind) in [
        (proto::Refusal::NotFound, FaultKind::NotFound),
        (proto::Refusal::Precondition, FaultKind::Precondition),
        (proto::Refusal::Invalid, FaultKind::Invalid),
    ] {
        let client = server.client();
        let opening = tokio::spawn(async move { client.producer("/default/t").open().await });
        let mut stream = server.publish().await;
        let open = &stream.request().await.expect("an open").open[0];
        stream.refuse(open.producer, (0, 0), refusal, "no such thing").await;
        let refused = comes("the refusal", opening).await.expect("no panic").expect_err("refused");
        match refused {
            Error::Refused { kind: found, reason, .. } => {
                assert_eq!((found, reason.as_str()), (kind, "no such thing"));
            }
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let mut server = Server::start().await;
    let hasty = |ms| server.builder().call_timeout(Duration::from_millis(ms)).build();
    let client = hasty(2_000).expect("a URL");
    // The open is never answered.
    let late = comes("an error", client.producer("/default/t").open()).await.expect_err("late");
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    let client = hasty(2_000).expect("a URL");
    let mut silent = server.publish().await;
    assert_eq!(silent.request().await.expect("an open").open.len(), 1);

    // The message is never answered.
    let opening = tokio::spawn(async move { client.producer("/default/t").open().await });
    let mut stream = server.publish().await;
    stream.open(0).await;
    let producer = comes("the producer", opening).await.expect("no panic").expect("opened");
    let late = comes("an error", producer.send("m", None)).await.expect_err("late");
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    // And nobody is there at all.
    let address = server.address().to_owned();
    drop((server, stream, silent));
    let client = danube_sdk::Client::builder(address).call_timeout(Duration::from_millis(100));
    let client = client.build().expect("a URL");
    let gone = comes("an error", client.producer("/default/t").open()).await.expect_err("gone");
    assert!(matches!(gone, Error::Unreachable { .. } | Error::Timeout { .. }), "{gone}");
}

#[tokio::test]
async fn a_name_that_cannot_be_is_refused_here() {
    let client = danube_sdk::Client::builder("127.0.0.1:1").build().expect("a URL");
    let refused = client.producer("orders").open().await.expect_err("no namespace");
    assert!(matches!(refused, Error::Refused { kind: FaultKind::Invalid, .. }), "{refused}");
}
