//! Payloads: what fits passes, what does not is told with its place.

use crate::{avro, json, parse, proto};
use danube_schema::{PayloadLimits, Schema, SchemaType};
use serde_json::json as j;

fn verdict(schema: &Schema, payload: &[u8]) -> String {
    match schema.validate(payload, &PayloadLimits::default()) {
        Ok(()) => "fits".to_owned(),
        Err(faults) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

fn order() -> Schema {
    avro(&j!({"type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"},
        {"name": "to", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": "string"},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "USED"]}}]}}},
        {"name": "tags", "type": {"type": "map", "values": "boolean"}}]}))
}

#[test]
fn a_bare_avro_datum() {
    let schema = order();
    let good = b"\x02\x02\x04ab\x02\x02x\x02\x00\x02\x02k\x01\x00";
    assert_eq!(verdict(&schema, good), "fits");
    assert!(verdict(&schema, &good[..good.len() - 1]).contains("needs 1 bytes"));
    assert!(verdict(&schema, &[good.as_slice(), b"!"].concat()).contains("1 bytes are left over"));
    let mut bad = good.to_vec();
    bad[8] = 6;
    let text = verdict(&schema, &bad);
    assert!(text.contains("`Order.lines[].kind`") && text.contains("`3` is not below 2"), "{text}");
    let mut bad = good.to_vec();
    bad[1] = 9;
    assert!(
        verdict(&schema, &bad).contains("`Order.to`: union index `-5`"),
        "{}",
        verdict(&schema, &bad)
    );
    assert!(verdict(&schema, br#"{"id": 1}"#).starts_with("payload"));
}

#[test]
fn an_avro_container_file() {
    let of = apache_avro::Schema::parse_str(
        r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}"#,
    )
    .unwrap();
    for codec in [
        apache_avro::Codec::Null,
        apache_avro::Codec::Deflate(apache_avro::DeflateSettings::default()),
    ] {
        let mut writer = apache_avro::Writer::with_codec(&of, Vec::new(), codec).unwrap();
        for at in 0..100 {
            let mut record = apache_avro::types::Record::new(&of).unwrap();
            record.put("a", at);
            record.put("b", "text");
            writer.append_value(record).unwrap();
        }
        let file = writer.into_inner().unwrap();
        let same = avro(
            &j!({"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}),
        );
        assert_eq!(verdict(&same, &file), "fits");
        let wider = avro(&j!({"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}));
        assert_eq!(verdict(&wider, &file), "fits");
        let other = avro(&j!({"type":"record","name":"R","fields":[{"name":"c","type":"long"}]}));
        assert!(verdict(&other, &file).contains("does not resolve"), "{}", verdict(&other, &file));
        let mut torn = file.clone();
        torn.truncate(file.len() - 3);
        assert_ne!(verdict(&same, &torn), "fits");
        let at = file.len() - 1;
        torn = file;
        torn[at] ^= 1;
        assert!(verdict(&same, &torn).contains("sync marker"));
    }
}

#[test]
fn json_documents() {
    let schema = json(&j!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "array", "items": {"type": "integer"}}, "mail": {"format": "email"}}}));
    assert_eq!(verdict(&schema, br#"{"a": [1, 2.0], "mail": "no mail"}"#), "fits");
    let text = verdict(&schema, br#"{"a": [1, "x"]}"#);
    assert!(text.contains("`/a/1`") && text.contains("/properties/a/items/type"), "{text}");
    assert!(verdict(&schema, b"{}").contains("a"));
    assert!(verdict(&schema, b"nonsense").contains("is not JSON"));
}

#[test]
fn draft_07_and_registered_references() {
    let old = json(
        &j!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": false}),
    );
    assert_eq!(verdict(&old, br#"["a"]"#), "fits");
    assert_ne!(verdict(&old, br#"["a", 1]"#), "fits");
    let registry = std::collections::BTreeMap::from([(
        "item.json".to_owned(),
        br#"{"type":"string"}"#.to_vec(),
    )]);
    for reference in ["item.json", "item.json#"] {
        let definition = j!({"items": {"$ref": reference}}).to_string();
        let schema =
            Schema::parse(SchemaType::JsonSchema, definition.as_bytes(), &registry).unwrap();
        assert_eq!(verdict(&schema, br#"["a"]"#), "fits");
        assert_ne!(verdict(&schema, b"[1]"), "fits");
    }
}

#[test]
fn protobuf_messages() {
    let schema = proto(
        "syntax = \"proto3\"; message M { int32 id = 1; string name = 2; repeated int32 n = 3; I inner = 4; \
         message I { double d = 1; } map<string, I> m = 5; }",
    );
    assert_eq!(verdict(&schema, b""), "fits");
    assert_eq!(
        verdict(&schema, b"\x08\x01\x12\x02hi\x1a\x02\x01\x02\x18\x03\x22\x09\x09\0\0\0\0\0\0\0\0"),
        "fits"
    );
    assert_eq!(verdict(&schema, b"\x2a\x05\x0a\x01k\x12\x00"), "fits", "a map");
    assert_eq!(
        verdict(&schema, b"\xf8\x01\x01\x9b\x06\x08\x01\x9c\x06"),
        "fits",
        "unknown fields, a group too"
    );
    assert!(
        verdict(&schema, b"\x0a\x01x").contains("`M.id`: has wire type 2"),
        "{}",
        verdict(&schema, b"\x0a\x01x")
    );
    assert!(verdict(&schema, b"\x12\x01\xff").contains("`M.name`: string is not UTF-8"));
    assert!(verdict(&schema, b"\x22\x02\x0a\x00").contains("`M.inner.d`"));
    assert!(verdict(&schema, b"\x12\x7f").contains("needs 127 bytes"));
    assert!(verdict(&schema, br#"{"id":1}"#).starts_with("payload"));
    let two = proto(
        "syntax=\"proto2\"; message M { required int32 a = 1; optional group G = 2 { optional int32 b = 3; } }",
    );
    assert!(verdict(&two, b"").contains("required field `a`"));
    assert_eq!(verdict(&two, b"\x08\x01\x13\x18\x01\x14"), "fits");
    assert!(
        verdict(&two, b"\x08\x01\x13\x18\x01").contains("`M.g`"),
        "{}",
        verdict(&two, b"\x08\x01\x13\x18\x01")
    );
}

#[test]
fn plain_payloads() {
    assert_eq!(verdict(&parse(SchemaType::Bytes, ""), b"\xff"), "fits");
    assert_eq!(verdict(&parse(SchemaType::Number, "int64"), b"12345678"), "fits");
    assert!(verdict(&parse(SchemaType::Number, ""), b"123").contains("has 3"));
    assert!(verdict(&parse(SchemaType::String, ""), b"\xff").contains("UTF-8"));
}
