//! Values through schemas and back.

use super::*;

fn of(kind: &str, definition: &str) -> Schema {
    Schema::of(GetSchemaResponse {
        schema_id: 1,
        version: 3,
        subject: "orders".to_owned(),
        schema_type: kind.to_owned(),
        definition: Bytes::copy_from_slice(definition.as_bytes()),
        ..GetSchemaResponse::default()
    })
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.expect_err("it does not fit").to_string()
}

#[test]
fn json_is_checked_both_ways() {
    let lists = of("json_schema", r#"{"type": "array", "items": {"type": "integer"}}"#);
    let payload = lists.encode(&[1, 2]).expect("a list of integers");
    assert_eq!(payload, "[1,2]");
    assert_eq!(lists.decode::<Vec<u32>>(&payload).expect("as it was written"), [1, 2]);
}

#[cfg(feature = "schemas")]
#[test]
fn what_the_schema_does_not_allow_is_neither_written_nor_read() {
    let lists = of("json_schema", r#"{"type": "array", "items": {"type": "integer"}}"#);
    let written = refusal(lists.encode(&["no number"]));
    assert!(written.contains("version 3 of schema `orders`"), "{written}");
    refusal(lists.decode::<Vec<String>>(br#"["no number"]"#));
    let number = refusal(of("number", "").encode(&2.5));
    assert!(number.ends_with("is not made from JSON; give its bytes"), "{number}");
    assert!(refusal(of("avro", "{").encode(&1)).contains("version 3 of schema `orders`"));
}

#[cfg(feature = "schemas")]
#[test]
fn avro_protobuf_and_text_are_encoded() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Order {
        id: i32,
        note: String,
    }
    let order = Order { id: 7, note: "two".to_owned() };
    let avro = of(
        "avro",
        r#"{"type": "record", "name": "Order", "fields": [
            {"name": "id", "type": "int"}, {"name": "note", "type": "string"}]}"#,
    );
    let payload = avro.encode(&order).expect("an order");
    assert_eq!(payload, &[14, 6, b't', b'w', b'o'][..], "a bare datum");
    assert_eq!(avro.decode::<Order>(&payload).expect("as it was written"), order);
    let protobuf =
        of("protobuf", r#"syntax = "proto3"; message Order { int32 id = 1; string note = 2; }"#);
    let payload = protobuf.encode(&order).expect("an order");
    assert_eq!(payload, &[8, 7, 18, 3, b't', b'w', b'o'][..]);
    assert_eq!(protobuf.decode::<Order>(&payload).expect("as it was written"), order);
    let text = of("string", "");
    assert_eq!(text.encode("17").expect("a text"), "17");
    assert_eq!(text.decode::<String>(b"17").expect("a text"), "17");
}
