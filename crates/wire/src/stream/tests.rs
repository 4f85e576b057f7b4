//! The raw types of the native streams against the generated ones, and against hostile bytes.

use super::*;
use crate::proto::stream as proto;
use crate::record::{Record, native};
use bytes::{BufMut, Bytes, BytesMut};
use danube_core::name::ProducerName;
use danube_core::{Offset, ProducerId, WallMs};
use expect_test::expect;
use proptest::prelude::*;
use prost::Message as _;
use std::collections::BTreeMap;

fn messages() -> impl Strategy<Value = Vec<proto::Message>> {
    let message = (
        prop::collection::vec(any::<u8>(), 0..40),
        any::<u64>(),
        prop::collection::btree_map("[a-z]{0,6}", "\\PC{0,8}", 0..4),
        prop::option::of((any::<u64>(), any::<u32>())),
        prop::option::of("\\PC{0,8}"),
    );
    let message = message.prop_map(|(payload, publish_time, attributes, schema, routing_key)| {
        proto::Message {
            payload: payload.into(),
            publish_time,
            producer_name: String::new(),
            attributes,
            schema_id: schema.map(|(id, _)| id),
            schema_version: schema.map(|(_, version)| version),
            routing_key,
        }
    });
    prop::collection::vec(message, 0..6)
}

fn encoded(messages: &[proto::Message]) -> EncodedMessages {
    let mut out = BytesMut::new();
    for message in messages {
        let attributes: Vec<_> = message.attributes.clone().into_iter().collect();
        let message = Message {
            payload: &message.payload,
            publish_time: WallMs(message.publish_time),
            attributes: &attributes,
            schema: message.schema_id.zip(message.schema_version),
            routing_key: message.routing_key.as_deref(),
        };
        EncodedMessages::put(&mut out, &message);
    }
    EncodedMessages::new(out.freeze(), messages.len() as u32)
}

fn decode(bytes: Vec<u8>) -> Result<PublishRequest, crate::protobuf::Broken> {
    PublishRequest::decode(Bytes::from(bytes).into())
}

fn wrapping() -> native::Wrapping {
    native::Wrapping::new(ProducerId(7), &ProducerName::parse("p").expect("well formed"))
}

/// What the log gets of a message, or why it does not get it.
fn record(message: &[u8]) -> Result<Record, String> {
    let bytes = Bytes::copy_from_slice(message);
    let range = 0..bytes.len();
    let checked = native::check(&bytes, range.clone()).map_err(|error| error.to_string())?;
    let mut out = BytesMut::new();
    wrapping().write(&bytes, range, &checked, &mut out);
    assert!(out.len() <= wrapping().record_len_max(bytes.len()));
    Ok(Record::parse(out.freeze()).expect("what is checked can be read"))
}

proptest! {
    #[test]
    fn a_request_is_what_a_generated_client_would_send(
        open in prop::collection::vec("[a-z]{1,5}", 0..3),
        batches in prop::collection::vec((any::<u32>(), any::<u64>(), messages()), 0..3),
    ) {
        let open: Vec<_> = open
            .into_iter()
            .map(|topic| proto::OpenProducer { topic, producer: 3, ..Default::default() })
            .collect();
        let ours = PublishRequest {
            open: open.clone(),
            batches: batches
                .iter()
                .map(|(producer, first_sequence, messages)| Batch {
                    producer: *producer,
                    first_sequence: *first_sequence,
                    messages: encoded(messages),
                })
                .collect(),
            close: vec![proto::CloseProducer { producer: 9 }],
        };
        let theirs = proto::PublishRequest {
            open,
            batches: batches
                .into_iter()
                .map(|(producer, first_sequence, messages)| proto::Batch {
                    producer,
                    first_sequence,
                    messages,
                })
                .collect(),
            close: ours.close.clone(),
        };
        let mut bytes = BytesMut::new();
        ours.write(&mut bytes);
        prop_assert_eq!(bytes.len(), ours.encoded_len());
        prop_assert_eq!(&proto::PublishRequest::decode(&bytes[..]).expect("ours"), &theirs);
        let again = decode(theirs.encode_to_vec()).expect("theirs");
        prop_assert_eq!(again.open, ours.open);
        prop_assert_eq!(again.close, ours.close);
        for (read, written) in again.batches.iter().zip(&theirs.batches) {
            prop_assert_eq!(read.messages.count() as usize, written.messages.len());
            let bytes = read.messages.bytes();
            let found: Vec<_> = read.messages.ranges().map(|range| &bytes[range]).collect();
            let sent: Vec<_> = written.messages.iter().map(|m| m.encode_to_vec()).collect();
            prop_assert_eq!(found, sent);
        }
    }

    #[test]
    fn a_delivery_is_what_a_generated_client_reads(sent in messages(), offset: u64) {
        let deliveries: Vec<_> = (offset..)
            .zip(&sent)
            .map(|(offset, message)| Delivered {
                offset: Offset(offset),
                attempt: 3,
                record: record(&message.encode_to_vec()).expect("well formed"),
            })
            .collect();
        let settled = proto::Settled { id: 8, ..Default::default() };
        let rest = proto::ConsumeResponse {
            epoch: 2,
            lease_ms: 30_000,
            settled: vec![settled],
            ..Default::default()
        };
        let ours = ConsumeResponse { deliveries, rest };
        let mut bytes = BytesMut::new();
        ours.write(&mut bytes);
        prop_assert_eq!(bytes.len(), ours.encoded_len());
        let theirs = proto::ConsumeResponse::decode(&bytes[..]).expect("ours");
        prop_assert_eq!(theirs.deliveries.len(), sent.len());
        for (delivered, mut message) in theirs.deliveries.into_iter().zip(sent) {
            message.producer_name = "p".to_owned();
            prop_assert_eq!(delivered.message, Some(message));
        }
        let again = ConsumeResponse::decode(bytes.freeze()).expect("ours");
        prop_assert_eq!(again.rest, ours.rest);
        for (read, written) in again.deliveries.iter().zip(&ours.deliveries) {
            prop_assert_eq!((read.offset, read.attempt), (written.offset, written.attempt));
            prop_assert_eq!(read.record.body(), written.record.body());
            prop_assert_eq!(read.record.payload(), written.record.payload());
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        if let Ok(request) = decode(bytes.to_vec()) {
            for batch in &request.batches {
                prop_assert_eq!(batch.messages.ranges().count() as u32, batch.messages.count());
            }
        }
        let _ = ConsumeResponse::decode(bytes.clone());
        // What is stored can be read, or `record` panics.
        let _ = record(&bytes);
    }
}

#[test]
fn nobody_forges_what_the_broker_says() {
    let forged = proto::Message {
        payload: Bytes::from_static(b"hello"),
        attributes: BTreeMap::from([
            ("x-original-topic".to_owned(), "/default/other".to_owned()),
            ("mine".to_owned(), "stays".to_owned()),
        ]),
        routing_key: Some("k".to_owned()),
        ..Default::default()
    };
    let kept = record(&forged.encode_to_vec()).expect("well formed");
    assert_eq!(kept.attributes(), BTreeMap::from([("mine".to_owned(), "stays".to_owned())]));
    assert_eq!((kept.payload(), kept.routing_key()), (forged.payload.clone(), Some("k")));
    assert_eq!((kept.producer_name(), kept.producer_id()), ("p", ProducerId(7)));
}

#[test]
fn a_field_of_the_broker_or_of_another_type_is_refused() {
    let named = proto::Message { producer_name: "somebody".into(), ..Default::default() };
    let mut refusals = vec![record(&named.encode_to_vec()).expect_err("a name")];
    for bytes in [&[0x08, 1][..], &[0x12, 0], &[0x32, 0], &[0x18, 1], &[0x22, 0], &[0x52, 1, 255]] {
        refusals.push(record(bytes).expect_err("refused"));
    }
    expect![[r#"
        damaged record: it contains field `5`, which is written on delivery only
        damaged record: it contains field `1`, which is written on delivery only
        damaged record: it contains field `2`, which is written on delivery only
        damaged record: it contains field `6`, which is written on delivery only
        damaged record: field `3` has the wire type of another
        damaged record: field `4` has the wire type of another
        damaged record: text that is not UTF-8 at byte `2`"#]]
    .assert_eq(&refusals.join("\n"));
}

#[test]
fn messages_that_do_not_lie_together_are_gathered() {
    let mut bytes = BytesMut::new();
    let inner = |out: &mut BytesMut, payload: u8| out.put_slice(&[0x1a, 3, 0x1a, 1, payload]);
    let mut batch = BytesMut::new();
    inner(&mut batch, b'a');
    batch.put_slice(&[0x08, 5]);
    inner(&mut batch, b'b');
    inner(&mut batch, b'c');
    batch.put_slice(&[0x10, 9]);
    bytes.put_slice(&[0x12, batch.len() as u8]);
    bytes.put_slice(&batch);
    let request = decode(bytes.to_vec()).expect("well formed");
    let read = &request.batches[0];
    assert_eq!((read.producer, read.first_sequence, read.messages.count()), (5, 9, 3));
    let all = read.messages.bytes();
    let found: Vec<_> = read.messages.ranges().map(|range| all[range][2]).collect();
    assert_eq!(found, b"abc");
}
