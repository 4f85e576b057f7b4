//! Doors for fuzzing: any bytes as a definition, a payload, or two versions; no panic, no hang, and
//! what is accepted holds what it promises.
//!
//! The targets are in `fuzz/`, a workspace of its own for `cargo fuzz run TARGET`; the same functions
//! run over its corpus in the ordinary tests. Nothing else calls them.
//!
//! Law: each function accepts every input.

use crate::{Compatibility, Levels, NoReferences, PayloadLimits, Schema, SchemaType, check};

/// So that one input is quick.
const LIMITS: PayloadLimits =
    PayloadLimits { work_max: 50_000, depth_max: 50, unpacked_len_max: 1 << 20, faults_max: 3 };

const KINDS: [SchemaType; 6] = [
    SchemaType::Avro,
    SchemaType::JsonSchema,
    SchemaType::Protobuf,
    SchemaType::String,
    SchemaType::Number,
    SchemaType::Bytes,
];

/// What payloads are held against.
const SCHEMAS: [(SchemaType, &str); 8] = [
    (
        SchemaType::Avro,
        r#"{"type":"record","name":"R","fields":[
            {"name":"a","type":["null","string","long"]},
            {"name":"b","type":{"type":"array","items":["R","double","bytes"]}},
            {"name":"c","type":{"type":"map","values":{"type":"enum","name":"E","symbols":["A","B"]}}},
            {"name":"d","type":{"type":"fixed","name":"F","size":3}}]}"#,
    ),
    (SchemaType::Avro, r#"{"type":"array","items":"null"}"#),
    (
        SchemaType::JsonSchema,
        r##"{"type":"object","properties":{"k":{"$ref":"#"},"s":{"pattern":"^(a|b)+$"}},
            "additionalProperties":{"anyOf":[{"multipleOf":0.1},{"uniqueItems":true},{"$ref":"#"}]}}"##,
    ),
    (
        SchemaType::JsonSchema,
        r##"{"unevaluatedProperties":{"$ref":"#"},"oneOf":[{"minimum":1},{"items":{"$ref":"#"}}]}"##,
    ),
    (
        SchemaType::Protobuf,
        r#"syntax = "proto3"; message M { M m = 1; repeated sint64 n = 2; map<string, M> k = 3;
            oneof o { string s = 4; bytes b = 5; } fixed32 f = 6; E e = 7; enum E { Z = 0; Y = 1; } }"#,
    ),
    (SchemaType::String, ""),
    (SchemaType::Number, ""),
    (SchemaType::Bytes, ""),
];

/// The first byte says which type, the others are a definition.
pub fn definition(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    let kind = KINDS[usize::from(*kind) % KINDS.len()];
    let Ok(schema) = Schema::parse(kind, text, &NoReferences) else { return };
    let again = Schema::parse(kind, text, &NoReferences).expect("it parsed before");
    assert_eq!(schema.fingerprint(), again.fingerprint());
    for payload in [b"".as_slice(), b"{}", b"\x00\x02", text] {
        let _ = schema.validate(payload, &LIMITS);
        let _ = schema.decode(payload, &LIMITS);
    }
}

/// The first byte says which of a few schemas, the others are a payload.
pub fn payload(bytes: &[u8]) {
    let Some((which, payload)) = bytes.split_first() else { return };
    let (kind, text) = SCHEMAS[usize::from(*which) % SCHEMAS.len()];
    let schema = Schema::parse(kind, text.as_bytes(), &NoReferences).expect("our own definition");
    let valid = schema.validate(payload, &LIMITS).is_ok();
    let Ok(value) = schema.decode(payload, &LIMITS) else { return };
    // Decoding an Avro datum reads past the sizes of blocks, which validation holds against it.
    assert!(valid || kind == SchemaType::Avro, "{kind}: decoded, but not valid");
    if let Ok(encoded) = schema.encode(&value, &LIMITS) {
        assert!(schema.validate(&encoded, &LIMITS).is_ok(), "{kind}: {value} encodes to nonsense");
    }
}

/// The first byte says which type; a zero byte stands between two definitions.
pub fn pair(bytes: &[u8]) {
    let Some((kind, texts)) = bytes.split_first() else { return };
    let kind = KINDS[usize::from(*kind) % 3];
    let Some(middle) = texts.iter().position(|byte| *byte == 0) else { return };
    let parse = |text: &[u8]| Schema::parse(kind, text, &NoReferences).ok();
    let (Some(old), Some(new)) = (parse(&texts[..middle]), parse(&texts[middle + 1..])) else {
        return;
    };
    let levels = Levels::default();
    let full = check(Compatibility::Full, levels, &[(1, &old)], &new);
    let backward = check(Compatibility::Backward, levels, &[(1, &old)], &new);
    let forward = check(Compatibility::Forward, levels, &[(1, &old)], &new);
    assert!(
        full.is_compatible() == (backward.is_compatible() && forward.is_compatible())
            || [&full, &backward, &forward]
                .iter()
                .any(|verdict| verdict.breaks.iter().any(|found| found.rule == "undecided"))
    );
    let _ = full.breaks.iter().map(ToString::to_string).count();
}
