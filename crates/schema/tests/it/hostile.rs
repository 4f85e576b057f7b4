//! Definitions and payloads by somebody who means harm: every one ends, within bounds.
//!
//! No clock is read here; a bound that does not hold shows as a test that does not end, or as a
//! stack that overflows (tests have the stack of a broker's worker thread).

use crate::{LENIENT, STRICT, json, one, parse, proto, refusal, told};
use danube_schema::{Compatibility, NoReferences, PayloadLimits, Schema, SchemaType, check};
use proptest::prelude::*;
use serde_json::{Value, json as j};

fn limits() -> PayloadLimits {
    PayloadLimits { work_max: 200_000, ..PayloadLimits::default() }
}

#[test]
fn deep_definitions_are_refused() {
    for (kind, open, close) in [
        (SchemaType::Avro, r#"{"type":"array","items":"#, "}"),
        (SchemaType::JsonSchema, r#"{"items":"#, "}"),
        (SchemaType::JsonSchema, "[", ""),
        (SchemaType::Protobuf, "syntax=\"proto3\"; message M { ", "}"),
        (SchemaType::Protobuf, "syntax=\"proto3\"; option (x) = { a: ", "}"),
        (SchemaType::Protobuf, "message M { map<", ">"),
        (SchemaType::Protobuf, "(", ")"),
    ] {
        let text = format!("{}\"int\"{}", open.repeat(5_000), close.repeat(5_000));
        let refused = refusal(kind, &text);
        assert!(refused.contains("nesting"), "{kind}: {refused}");
    }
    let long = "x".repeat(600 * 1024);
    for kind in [SchemaType::Avro, SchemaType::JsonSchema, SchemaType::Protobuf, SchemaType::String]
    {
        assert!(refusal(kind, &long).contains("the limit is 524288"));
    }
}

#[test]
fn a_nesting_just_within_the_bound_is_fine() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("{}\"int\"{}", open.repeat(times), close.repeat(times))
    };
    parse(SchemaType::Avro, &deep(r#"{"type":"array","items":"#, "}", 98));
    let schema = deep(r#"{"items":"#, "}", 98).replace("\"int\"", r#"{"type":"integer"}"#);
    let (a, b) = (parse(SchemaType::JsonSchema, &schema), schema.replace("integer", "number"));
    let verdict = one(Compatibility::Backward, STRICT, &a, &parse(SchemaType::JsonSchema, &b));
    // Deeper than a witness may nest: undecided, and it says so.
    assert!(
        !verdict.is_compatible() && told(&verdict).contains("nest too deeply"),
        "{}",
        told(&verdict)
    );
}

#[test]
fn references_that_multiply() {
    // 2^40 paths through 40 definitions.
    let mut defs = serde_json::Map::new();
    for at in 0..40 {
        let next = j!({"$ref": format!("#/$defs/d{}", at + 1)});
        defs.insert(
            format!("d{at}"),
            j!({"allOf": [next, next], "properties": {"p": next, "q": next}}),
        );
    }
    defs.insert("d40".into(), j!({"type": ["object", "integer"]}));
    let mut new = defs.clone();
    new.insert("d40".into(), j!({"type": ["object", "number"]}));
    let (old, new) = (
        json(&j!({"$ref": "#/$defs/d0", "$defs": defs})),
        json(&j!({"$ref": "#/$defs/d0", "$defs": new})),
    );
    for mode in [Compatibility::Backward, Compatibility::Forward] {
        one(mode, STRICT, &old, &new);
    }
    let mut value = j!(1);
    for _ in 0..30 {
        value = j!({"p": value, "q": 2});
    }
    let faults = old.validate(value.to_string().as_bytes(), &limits()).unwrap_err();
    assert!(faults[0].to_string().contains("more work"), "{}", faults[0]);
}

#[test]
fn references_without_an_end() {
    for schema in [
        j!({"$ref": "#"}),
        j!({"allOf": [{"$ref": "#"}]}),
        j!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        j!({"properties": {"x": {"$ref": "#/$defs/c"}}, "allOf": [{"$ref": "#/$defs/c"}], "$defs": {"c": {"not": {"$ref": "#"}}}}),
    ] {
        let refused = refusal(SchemaType::JsonSchema, &schema.to_string());
        assert!(refused.contains("back to itself"), "{refused}");
    }
    let chain: serde_json::Map<String, Value> = (0..5_000)
        .map(|at| (format!("d{at}"), j!({"$ref": format!("#/$defs/d{}", at + 1)})))
        .chain([("d5000".to_owned(), j!(true))])
        .collect();
    let refused =
        refusal(SchemaType::JsonSchema, &j!({"$ref": "#/$defs/d0", "$defs": chain}).to_string());
    assert!(refused.contains("nesting"), "{refused}");
}

#[test]
fn recursion_from_two_places_multiplies_with_the_payload() {
    let schema = json(&j!({"anyOf": [
        {"properties": {"l": {"$ref": "#"}, "k": {"const": 1}}, "required": ["k"]},
        {"properties": {"l": {"$ref": "#"}, "k": {"const": 2}}, "required": ["k"]},
        {"type": "integer"}]}));
    let mut value = j!("no");
    for _ in 0..45 {
        value = j!({"l": value, "k": 3});
    }
    let faults = schema.validate(value.to_string().as_bytes(), &limits()).unwrap_err();
    assert!(faults[0].to_string().contains("more work"), "{}", faults[0]);
}

#[test]
fn combinators_that_multiply_are_given_up() {
    let cases = |offset: u32| -> Value {
        let one = |at: u32| j!({"oneOf": (0..12).map(|case| j!({"multipleOf": at + case + offset, "minimum": case})).collect::<Vec<_>>()});
        j!({"allOf": (2..14).map(one).collect::<Vec<_>>()})
    };
    let (old, new) = (json(&cases(0)), json(&cases(1)));
    // Against very many versions the bound is that of the whole check, not of each comparison.
    let existing: Vec<(u32, &Schema)> = (1..=60).map(|version| (version, &old)).collect();
    let verdict = check(Compatibility::Full, STRICT, &existing, &new);
    let mut versions: Vec<u32> = verdict.breaks.iter().map(|found| found.version).collect();
    versions.dedup();
    assert!(verdict.truncated || versions.len() == 60, "what is not looked at is not compatible");
    let alternatives = |at: u32| j!({"anyOf": [{"required": [format!("a{at}")]}, {"required": [format!("b{at}")]}]});
    let (old, new) = (
        j!({"allOf": (0..30).map(alternatives).collect::<Vec<_>>()}),
        j!({"allOf": (0..30).map(|at| alternatives(at + 1)).collect::<Vec<_>>()}),
    );
    let verdict = one(Compatibility::Backward, STRICT, &json(&old), &json(&new));
    assert!(!verdict.is_compatible());
}

#[test]
fn patterns_that_explode() {
    for pattern in ["(a+)+$", "(a|a)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
        let schema = json(&j!({"type": "string", "pattern": pattern}));
        let text = Value::from("a".repeat(100_000)).to_string();
        let _ = schema.validate(text.as_bytes(), &PayloadLimits::default());
    }
    for pattern in ["(?=a)b", r"(a)\1", "(?<!x)y", "((((((a{90}){90}){90}){90}){90}){90})", "("] {
        let refused = refusal(SchemaType::JsonSchema, &j!({"pattern": pattern}).to_string());
        assert!(refused.contains("pattern"), "{refused}");
    }
    let (old, new) = (
        json(&j!({"pattern": "^(a|b)*a(a|b){12}$"})),
        json(&j!({"pattern": "^(a|b)*b(a|b){12}$"})),
    );
    assert!(!one(Compatibility::Backward, STRICT, &old, &new).is_compatible());
}

#[test]
fn large_enums_and_wide_objects() {
    let letters: Vec<String> = (0..20_000).map(|at| format!("v{at}")).collect();
    let mut more = letters.clone();
    more.push("w".into());
    let (old, new) = (json(&j!({"enum": letters})), json(&j!({"enum": more})));
    assert!(one(Compatibility::Backward, STRICT, &old, &new).is_compatible());
    let forward = one(Compatibility::Forward, STRICT, &old, &new);
    assert_eq!(forward.breaks[0].witness, Some(j!("w")));
    let avro = |symbols: &[String]| {
        parse(SchemaType::Avro, &j!({"type": "enum", "name": "E", "symbols": symbols}).to_string())
    };
    assert!(one(Compatibility::Backward, LENIENT, &avro(&letters), &avro(&more)).is_compatible());
    let wide = |of: &str| {
        json(
            &j!({"type": "object", "properties": (0..4_000).map(|at| (format!("p{at}"), j!({"type": of}))).collect::<serde_json::Map<_, _>>()}),
        )
    };
    let verdict = one(Compatibility::Backward, LENIENT, &wide("integer"), &wide("string"));
    assert_eq!((verdict.breaks.len(), verdict.truncated), (danube_schema::FAULTS_MAX, false));
}

#[test]
fn avro_payloads_that_claim_too_much() {
    let nulls = parse(SchemaType::Avro, r#"{"type":"array","items":"null"}"#);
    let huge = [&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F][..], &[0]].concat();
    assert!(nulls.validate(&huge, &limits()).unwrap_err()[0].why.contains("more work"));
    let list = parse(
        SchemaType::Avro,
        r#"{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}"#,
    );
    let deep = vec![2; 1_000_000];
    assert!(list.validate(&deep, &limits()).unwrap_err()[0].why.contains("nested deeper"));
    let bytes = parse(SchemaType::Avro, "bytes");
    assert!(bytes.validate(&huge, &limits()).is_err());
    // A million nulls in one byte of deflate, over and over.
    let endless = parse(SchemaType::Avro, "null");
    let mut file = b"Obj\x01\x02\x16avro.schema\x0c\"null\"\x00".to_vec();
    file.extend([7; 16]);
    for _ in 0..50 {
        file.extend(b"\x80\x89\x0f\x00");
        file.extend([7; 16]);
    }
    assert!(endless.validate(&file, &limits()).is_err());
}

#[test]
fn protobuf_payloads_that_nest() {
    let schema = proto("syntax=\"proto3\"; message M { M m = 1; }");
    let mut payload = Vec::new();
    for _ in 0..2_000 {
        let mut outer = vec![0x0A];
        let mut len = payload.len();
        loop {
            let byte = u8::try_from(len & 0x7F).unwrap();
            len >>= 7;
            outer.push(if len == 0 { byte } else { byte | 0x80 });
            if len == 0 {
                break;
            }
        }
        outer.extend(payload);
        payload = outer;
    }
    assert!(schema.validate(&payload, &limits()).unwrap_err()[0].why.contains("nested deeper"));
    let groups = vec![0x13; 100_000];
    assert!(schema.validate(&groups, &limits()).unwrap_err()[0].why.contains("nested deeper"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_definition_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..6_usize) {
        let kinds = [SchemaType::Avro, SchemaType::JsonSchema, SchemaType::Protobuf, SchemaType::String, SchemaType::Number, SchemaType::Bytes];
        let _ = Schema::parse(kinds[at], &bytes, &NoReferences);
    }

    #[test]
    fn no_text_that_looks_right_panics(words in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", "\"type\"", ":", ",", "\"record\"", "\"name\"", "\"fields\"", "\"int\"", "\"R\"",
        "\"$ref\"", "\"#\"", "\"items\"", "\"enum\"", "\"symbols\"", "message", "M", "=", "1", ";", "string", "a",
        "reserved", "to", "max", "oneof", "enum", "-1", "\"\"", "1e999", "null", "syntax", "\"proto3\"", "option", "(", ")",
    ]), 0..40)) {
        let text = words.join(" ");
        for kind in [SchemaType::Avro, SchemaType::JsonSchema, SchemaType::Protobuf] {
            let _ = Schema::parse(kind, text.as_bytes(), &NoReferences);
        }
    }

    #[test]
    fn no_payload_panics(payload in prop::collection::vec(any::<u8>(), 0..120), container in any::<bool>()) {
        let mut bytes = if container { b"Obj\x01".to_vec() } else { Vec::new() };
        bytes.extend(payload);
        thread_local!(static SCHEMAS: Vec<Schema> = vec![
            parse(SchemaType::Avro, r#"{"type":"record","name":"R","fields":[{"name":"a","type":["null","R","string"]},{"name":"b","type":{"type":"map","values":{"type":"array","items":"double"}}}]}"#),
            json(&j!({"items": {"$ref": "#"}})),
            proto("syntax=\"proto2\"; message M { optional M m = 1; repeated sint64 n = 2; optional string s = 3; optional group G = 4 { optional M m = 1; } }"),
        ]);
        SCHEMAS.with(|schemas| for schema in schemas {
            let _ = schema.validate(&bytes, &limits());
        });
    }
}
