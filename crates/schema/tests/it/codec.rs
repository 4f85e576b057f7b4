//! Payloads to JSON and back, by every schema that has a JSON form.

use crate::{avro, json, parse, proto};
use apache_avro::types::Value as Avro;
use danube_schema::{PayloadLimits, SchemaType};
use serde_json::{Value, json as j};

fn limits() -> PayloadLimits {
    PayloadLimits::default()
}

/// Every type of Avro, with a value.
fn all_types() -> (Value, Value) {
    let schema = j!({"type": "record", "name": "R", "namespace": "n", "fields": [
        {"name": "nothing", "type": "null"},
        {"name": "yes", "type": "boolean"},
        {"name": "int", "type": "int"},
        {"name": "long", "type": "long"},
        {"name": "float", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "bytes", "type": "bytes"},
        {"name": "string", "type": "string"},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "enum", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "array", "type": {"type": "array", "items": "int"}},
        {"name": "empty", "type": {"type": "array", "items": "int"}},
        {"name": "map", "type": {"type": "map", "values": "long"}},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "kids", "type": {"type": "array", "items": ["null", "R"]}},
        {"name": "defaulted", "type": "string", "default": "x"},
    ]});
    let mut value = j!({
        "nothing": null, "yes": true, "int": -2_147_483_648_i64, "long": 9_007_199_254_740_993_i64,
        "float": 0.1, "double": -1.5e300, "bytes": "\u{0}ÿ", "string": "größe", "fixed": "ab",
        "enum": "B", "array": [1, -64, 64], "empty": [], "map": {"a": 1, "b": -1}, "maybe": "here",
        "kids": [], "defaulted": "y",
    });
    let kid = value.clone();
    value["kids"] = j!([null, kid]);
    (schema, value)
}

#[test]
fn avro_goes_there_and_back() {
    let (definition, value) = all_types();
    let schema = avro(&definition);
    let payload = schema.encode(&value, &limits()).expect("fits");
    schema.validate(&payload, &limits()).expect("is a datum");
    assert_eq!(schema.decode(&payload, &limits()), Ok(value.clone()));
    // The other implementation reads it as well.
    let theirs = apache_avro::Schema::parse(&definition).expect("a schema");
    let read = apache_avro::reader::datum::GenericDatumReader::builder(&theirs)
        .build()
        .and_then(|reader| reader.read_value(&mut payload.as_slice()));
    let Avro::Record(fields) = read.expect("their reader takes it") else { panic!("a record") };
    assert_eq!(fields[7].1, Avro::String("größe".into()));
    assert_eq!(fields[3].1, Avro::Long(9_007_199_254_740_993));
}

#[test]
fn avro_takes_both_spellings_of_a_union_and_fills_in_defaults() {
    let schema = avro(&j!({"type": "record", "name": "R", "fields": [
        {"name": "u", "type": ["null", "int", "string", {"type": "map", "values": "int"}]},
        {"name": "d", "type": "int", "default": 7},
    ]}));
    for (given, read) in [
        (j!({"u": null}), j!({"u": null, "d": 7})),
        (j!({"u": {"string": "5"}}), j!({"u": "5", "d": 7})),
        (j!({"u": 5, "d": 8}), j!({"u": 5, "d": 8})),
        (j!({"u": {"string": 5}}), j!({"u": {"string": 5}, "d": 7})),
    ] {
        let payload = schema.encode(&given, &limits()).expect("fits");
        assert_eq!(schema.decode(&payload, &limits()), Ok(read), "{given}");
    }
    for (wrong, told) in [
        (j!({}), "u"),
        (j!({"u": 1.5}), "1.5"),
        (j!({"u": 1, "extra": 2}), "`extra`"),
        (j!([]), "record R"),
    ] {
        let fault = schema.encode(&wrong, &limits()).expect_err("does not fit").to_string();
        assert!(fault.contains(told), "{wrong}: {fault}");
    }
}

#[test]
fn protobuf_goes_there_and_back() {
    let schema = proto(
        r#"syntax = "proto3";
        import "google/protobuf/timestamp.proto";
        message M {
          string user_name = 1; int64 big = 2; bytes raw = 3; repeated int32 list = 4;
          map<string, Kind> kinds = 5; google.protobuf.Timestamp at = 6; M inner = 7;
        }
        enum Kind { NONE = 0; GOOD = 1; }"#,
    );
    let value = j!({
        "userName": "ann", "big": "9007199254740993", "raw": "/wA=", "list": [1, -1],
        "kinds": {"a": "GOOD"}, "at": "2026-11-30T12:00:00Z", "inner": {"userName": "bob"},
    });
    let payload = schema.encode(&value, &limits()).expect("fits");
    schema.validate(&payload, &limits()).expect("is a message");
    assert_eq!(schema.decode(&payload, &limits()), Ok(value));
    let short = schema.encode(&j!({"user_name": "ann", "big": 5}), &limits());
    assert!(short.is_ok(), "names as in the file, and numbers as numbers");
    let fault = schema.encode(&j!({"username": "ann"}), &limits()).expect_err("no such name");
    assert!(fault.to_string().contains("username"), "{fault}");
}

#[test]
fn text_and_json_are_what_they_are() {
    let schema = json(&j!({"type": "object", "required": ["a"]}));
    assert_eq!(schema.encode(&j!({"a": 1}), &limits()), Ok(b"{\"a\":1}".to_vec()));
    assert_eq!(schema.decode(b"{\"a\": 1}", &limits()), Ok(j!({"a": 1})));
    assert!(schema.encode(&j!({}), &limits()).is_err());
    let text = parse(SchemaType::String, "");
    assert_eq!(text.encode(&j!("hi"), &limits()), Ok(b"hi".to_vec()));
    assert_eq!(text.decode(b"hi", &limits()), Ok(j!("hi")));
    let bytes = parse(SchemaType::Bytes, "");
    assert!(bytes.encode(&j!("hi"), &limits()).is_err() && bytes.decode(b"hi", &limits()).is_err());
}

#[test]
fn what_costs_no_bytes_is_bounded_all_the_same() {
    let schema = avro(&j!({"type": "array", "items": "null"}));
    // A block of 2^40 nulls.
    let mut payload = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0];
    let fault = schema.decode(&payload, &limits()).expect_err("too many");
    assert!(fault.to_string().contains("more work"), "{fault}");
    payload = vec![0x06, 0];
    assert_eq!(schema.decode(&payload, &limits()), Ok(j!([null, null, null])));
    // Unions in unions by way of records, each of which is tried in vain.
    let nested = avro(&j!({"type": "record", "name": "N", "fields": [
        {"name": "n", "type": ["null", "N", {"type": "record", "name": "O", "fields": [
            {"name": "n", "type": ["null", "N", "O"]}]}]}]}));
    let mut deep = j!({"n": "no branch"});
    for _ in 0..60 {
        deep = j!({"n": deep});
    }
    let few = PayloadLimits { work_max: 100_000, ..limits() };
    assert!(nested.encode(&deep, &few).is_err());
}
