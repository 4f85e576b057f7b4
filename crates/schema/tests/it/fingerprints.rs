//! Spelling does not make a version; meaning does.

use crate::{parse, proto};
use danube_schema::{NoReferences, Schema, SchemaType};
use std::collections::BTreeMap;

fn same(kind: SchemaType, spellings: &[&str]) {
    let first = parse(kind, spellings[0]);
    for other in spellings {
        assert_eq!(first.fingerprint(), parse(kind, other).fingerprint(), "{other}");
    }
}

fn different(kind: SchemaType, definitions: &[&str]) {
    let mut seen = BTreeMap::new();
    for definition in definitions {
        let fingerprint = parse(kind, definition).fingerprint().clone();
        if let Some(other) = seen.insert(fingerprint, *definition) {
            panic!("{other}\nand\n{definition}\nhave one fingerprint");
        }
    }
}

#[test]
fn avro() {
    same(
        SchemaType::Avro,
        &[
            r#"{"type":"record","name":"n.R","fields":[{"name":"a","type":"int"},{"name":"b","type":"n.R"}]}"#,
            "{ \"fields\": [ {\"type\": {\"type\":\"int\"}, \"name\":\"a\", \"doc\":\"x\"},\r\n {\"name\":\"b\",\"type\":\"R\"} ],\n\"doc\":\"words\", \"name\":\"R\", \"namespace\":\"n\", \"type\":\"record\"}",
        ],
    );
    same(
        SchemaType::Avro,
        &["\"int\"", "int", r#"{"type":"int"}"#, " {\"type\": {\"type\": \"int\"}}"],
    );
    different(
        SchemaType::Avro,
        &[
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}"#,
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":0}]}"#,
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int","aliases":["b"]}]}"#,
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"int","logicalType":"date"}}]}"#,
            r#"{"type":"record","name":"n.R","fields":[{"name":"a","type":"int"}]}"#,
            r#"{"type":"enum","name":"R","symbols":["A","B"]}"#,
            r#"{"type":"enum","name":"R","symbols":["B","A"]}"#,
        ],
    );
}

#[test]
fn json_schema() {
    same(
        SchemaType::JsonSchema,
        &[
            r#"{"type":"object","properties":{"title":{"type":"string"}},"maxProperties":2}"#,
            "{\r\n \"maxProperties\": 2.0, \"title\":\"T\", \"description\":\"d\", \"$comment\":\"c\", \"examples\":[1],\n \"properties\":{\"title\":{\"title\":\"t\",\"type\":\"string\"}}, \"type\":\"object\"}",
        ],
    );
    different(
        SchemaType::JsonSchema,
        &[
            "{}",
            "true",
            "false",
            r#"{"properties":{"title":{}}}"#,
            r#"{"properties":{"description":{}}}"#,
            r#"{"const":{"title":1}}"#,
            r#"{"const":{"title":2}}"#,
            r#"{"default":1}"#,
            r#"{"format":"email"}"#,
        ],
    );
}

#[test]
fn protobuf() {
    same(
        SchemaType::Protobuf,
        &[
            "syntax = \"proto3\";\nmessage M { string a = 1; int32 b = 2; reserved 5, 6; oneof o { int32 x = 7; int32 y = 8; } oneof q { int32 z = 3; } }\nmessage N {}",
            "// words\r\nsyntax='proto3';\r\nmessage M {\r\n oneof q { int32 z = 3; } oneof o { int32 y = 8; int32 x = 0x7; }\n int32 b = 2; /* more */ string a = 1; reserved 6, 5; } message N { }",
        ],
    );
    different(
        SchemaType::Protobuf,
        &[
            "syntax=\"proto3\"; message M { string a = 1; } message N {}",
            "syntax=\"proto3\"; message N {} message M { string a = 1; }",
            "syntax=\"proto3\"; message M { string b = 1; } message N {}",
            "syntax=\"proto3\"; message M { string a = 2; } message N {}",
            "syntax=\"proto3\"; message M { optional string a = 1; } message N {}",
            "syntax=\"proto3\"; message M { string a = 1; reserved 2; } message N {}",
            "syntax=\"proto2\"; message M { optional string a = 1; } message N {}",
        ],
    );
    assert_eq!(
        proto("// danube:root=N\nsyntax=\"proto3\"; message M {} message N {}").root_message(),
        Some("N")
    );
}

#[test]
fn plain_types_are_their_word() {
    for (kind, definition) in
        [(SchemaType::String, "x"), (SchemaType::Number, ""), (SchemaType::Bytes, "\0")]
    {
        assert_eq!(parse(kind, definition).fingerprint(), parse(kind, "").fingerprint());
    }
    assert_eq!(
        parse(SchemaType::String, "").fingerprint().as_str(),
        "sha256:473287f8298dba7163a897908958f7c0eae733e25d2e027992ea2edc9bed2fa8"
    );
}

#[test]
fn what_is_referred_to_counts() {
    let registry = |address: &str| -> BTreeMap<String, Vec<u8>> {
        let json = format!(r#"{{"type":"{address}"}}"#);
        let avro = format!(
            r#"{{"type":"record","name":"n.A","fields":[{{"name":"x","type":"{address}"}}]}}"#
        );
        let proto = format!(
            "syntax=\"proto3\"; message A {{ {} x = 1; }}",
            if address == "string" { "string" } else { "bytes" }
        );
        BTreeMap::from([
            ("address.json".to_owned(), json.into_bytes()),
            ("n.A".to_owned(), avro.into_bytes()),
            ("a.proto".to_owned(), proto.into_bytes()),
        ])
    };
    let second = |kind| if kind == SchemaType::Avro { "bytes" } else { "boolean" };
    for (kind, definition) in [
        (SchemaType::JsonSchema, r#"{"properties":{"a":{"$ref":"address.json"}}}"#),
        (
            SchemaType::Avro,
            r#"{"type":"record","name":"R","fields":[{"name":"a","type":"n.A"},{"name":"b","type":"n.A"}]}"#,
        ),
        (SchemaType::Protobuf, "syntax=\"proto3\"; import \"a.proto\"; message M { A a = 1; }"),
    ] {
        let with = |registry: &BTreeMap<String, Vec<u8>>| {
            Schema::parse(kind, definition.as_bytes(), registry).unwrap()
        };
        let (one, two) = (with(&registry("string")), with(&registry(second(kind))));
        assert_eq!(one.fingerprint(), with(&registry("string")).fingerprint());
        assert_ne!(one.fingerprint(), two.fingerprint(), "{kind}");
        let error =
            Schema::parse(kind, definition.as_bytes(), &NoReferences).unwrap_err().to_string();
        assert!(
            error.contains("registry")
                && (error.contains("address.json")
                    || error.contains("n.A")
                    || error.contains("a.proto")),
            "{error}"
        );
    }
}
