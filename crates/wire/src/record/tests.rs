//! The layout byte by byte, and what becomes of bytes that are not a record.

use super::*;
use expect_test::expect;
use proptest::prelude::*;

fn topic() -> TopicName {
    TopicName::parse("/default/jobs-part-1").expect("well formed")
}

fn subscription() -> SubscriptionName {
    SubscriptionName::parse("workers").expect("well formed")
}

fn full() -> StreamMessage {
    StreamMessage {
        request_id: 300,
        msg_id: Some(MsgId { producer_id: 9, topic_name: "/forged/t".into(), ..MsgId::default() }),
        payload: Bytes::from_static(b"hi"),
        publish_time: 1_700_000_000_000,
        producer_name: "p".into(),
        subscription_name: "forged".into(),
        attributes: [("b", "2"), ("a", "1")].map(|(k, v)| (k.into(), v.into())).into(),
        schema_id: Some(0),
        schema_version: Some(7),
        routing_key: Some("k".into()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The example of docs/formats/record.md.
#[test]
fn the_layout_is_pinned() {
    let record = encode(ProducerId(0x0102_0304_0506_0708), &full());
    expect![[r#"
        header 01 08 07 06 05 04 03 02 01
        body   08 ac 02 1a 02 68 69 20 80 d0 95 ff bc 31 2a 01 70 3a 06 0a 01 61 12 01 31 3a 06 0a 01 62 12 01 32 40 00 48 07 52 01 6b
    "#]]
    .assert_eq(&format!(
        "header {}\nbody   {}\n",
        hex(&record[..HEADER_LEN]),
        hex(&record[HEADER_LEN..])
    ));
}

#[test]
fn every_field_comes_back_and_the_delivery_says_where() {
    let record = Record::parse(encode(ProducerId(5), &full())).expect("our own");
    assert_eq!(record.producer_id(), ProducerId(5));
    assert_eq!(record.publish_time(), WallMs(1_700_000_000_000));
    assert_eq!((record.producer_name(), record.routing_key()), ("p", Some("k")));
    assert_eq!(record.key(), "k");
    assert_eq!(record.payload(), "hi");
    assert_eq!((record.attribute("a"), record.attribute("c")), (Some("1"), None));
    assert_eq!(record.attributes(), full().attributes);
    let delivered = record.to_message(&topic(), "http://b:6650", Offset(41), Some(&subscription()));
    let msg_id = MsgId {
        producer_id: 5,
        topic_name: "/default/jobs-part-1".into(),
        broker_addr: "http://b:6650".into(),
        topic_offset: 41,
    };
    let expected =
        StreamMessage { msg_id: Some(msg_id), subscription_name: "workers".into(), ..full() };
    assert_eq!(delivered, expected);
}

#[test]
fn without_a_routing_key_the_producer_is_the_key() {
    let parse = |message| Record::parse(encode(ProducerId(1), &message)).expect("our own");
    assert_eq!(parse(StreamMessage { routing_key: None, ..full() }).key(), "p");
    // A key that was given counts, also when it is empty.
    assert_eq!(parse(StreamMessage { routing_key: Some(String::new()), ..full() }).key(), "");
    assert_eq!(parse(StreamMessage::default()).key(), "");
}

#[test]
fn clients_cannot_forge_where_a_message_has_been() {
    let forged = [
        "x-original-topic",
        "x-delivery-attempt",
        "x-poison-policy",
        "x-failure-reason",
        "x-replayed-from",
        "x-replay-count",
        "x-task-path",
    ];
    let kept = ["x-task-path-2", "original-x-original-", "x-Original-topic"];
    let attributes = forged.iter().chain(&kept).map(|k| ((*k).to_owned(), "v".to_owned()));
    let message = StreamMessage { attributes: attributes.collect(), ..full() };
    let keys = |bytes| {
        let record = Record::parse(bytes).expect("our own");
        record.attributes().into_keys().collect::<Vec<_>>()
    };
    assert_eq!(
        keys(encode(ProducerId(1), &message)),
        ["original-x-original-", "x-Original-topic", "x-task-path-2"]
    );
    assert_eq!(keys(encode_trusted(ProducerId(1), &message)).len(), forged.len() + kept.len());
}

#[test]
fn damage_is_named() {
    let good = encode(ProducerId(1), &full()).to_vec();
    let with = |tail: &[u8]| [&good[..], tail].concat();
    let mut version = good.clone();
    version[0] = 2;
    let broken = [
        vec![],
        version,
        good[..good.len() - 1].to_vec(),
        with(&[0x12, 0]),
        with(&[0x32, 1, b's']),
        with(&[0x2a, 1, 0xff]),
        with(&[0x3a, 3, 0x0a, 1, 0xff]),
        with(&[0x3a, 2, 0x08, 1]),
        with(&[0x18, 1]),
    ];
    let errors = broken.map(|bytes| Record::parse(bytes.into()).expect_err("damaged").to_string());
    expect![[r#"
        a record of `0` bytes is shorter than its header of 9
        record version `2` is not known; this broker reads 1, start a newer one
        damaged record: a field that is longer than the rest at byte `48`
        damaged record: it contains field `2`, which is written on delivery only
        damaged record: it contains field `6`, which is written on delivery only
        damaged record: text that is not UTF-8 at byte `51`
        damaged record: text that is not UTF-8 at byte `53`
        damaged record: an attribute that is not text at byte `51`
        damaged record: field `3` has the wire type of another"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn a_field_of_a_later_contract_is_passed_on() {
    let mut bytes = encode(ProducerId(1), &full()).to_vec();
    bytes.extend([0xa2, 0x06, 1, 7]);
    let record = Record::parse(bytes.clone().into()).expect("an unknown field is no damage");
    assert_eq!(record.body(), &bytes[HEADER_LEN..]);
    assert_eq!(record.attributes(), full().attributes);
}

pub(crate) fn any_message() -> impl Strategy<Value = StreamMessage> {
    let attributes = prop::collection::btree_map("(x-original-|x-task-path)?.{0,5}", ".*", 0..4);
    (
        (any::<u64>(), any::<u64>(), ".*", attributes),
        prop::collection::vec(any::<u8>(), 0..200),
        (any::<Option<u64>>(), any::<Option<u32>>(), prop::option::of(".*")),
    )
        .prop_map(|((request_id, publish_time, producer_name, attributes), payload, rest)| {
            StreamMessage {
                request_id,
                payload: payload.into(),
                publish_time,
                producer_name,
                attributes,
                schema_id: rest.0,
                schema_version: rest.1,
                routing_key: rest.2,
                ..StreamMessage::default()
            }
        })
}

proptest! {
    #[test]
    fn the_body_is_what_prost_would_write(message in any_message(), id in any::<u64>()) {
        let trusted = encode_trusted(ProducerId(id), &message);
        prop_assert_eq!(&trusted[HEADER_LEN..], message.encode_to_vec());

        let mut stripped = message.clone();
        stripped.attributes.retain(|key, _| !header::is_reserved(key));
        let bytes = encode(ProducerId(id), &message);
        prop_assert_eq!(bytes.len(), HEADER_LEN + body_len(&message));
        prop_assert_eq!(&bytes[HEADER_LEN..], stripped.encode_to_vec());

        let record = Record::parse(bytes).expect("our own");
        prop_assert_eq!(record.producer_id(), ProducerId(id));
        let back = record.to_message(&topic(), "", Offset(0), None);
        prop_assert_eq!(StreamMessage { msg_id: None, ..back }, stripped);
    }

    /// Whatever is let through, prost decodes; nothing panics on the way.
    #[test]
    fn any_bytes_are_refused_or_can_be_delivered(
        message in any_message(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        tail in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut bytes = encode(ProducerId(1), &message).to_vec();
        bytes.extend(tail);
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(record) = Record::parse(bytes.into()) {
            let decoded = record.to_message(&topic(), "", Offset(0), None);
            prop_assert_eq!(&decoded.payload, &record.payload());
            prop_assert_eq!(&decoded.attributes, &record.attributes());
            for (key, value) in &decoded.attributes {
                prop_assert_eq!(record.attribute(key), Some(value.as_str()));
            }
            prop_assert_eq!(decoded.routing_key.as_deref(), record.routing_key());
            prop_assert_eq!(decoded.producer_name.as_str(), record.producer_name());
            prop_assert_eq!(WallMs(decoded.publish_time), record.publish_time());
        }
    }
}
