//! U17 to U20, row by row, with version, path and reason.

use crate::{JSON_NAMES, LENIENT, STRICT, avro, json, one, proto, refusal, told};
use danube_schema::{Compatibility, Direction, SchemaType, check};
use serde_json::{Value, json as j};

use Compatibility::{Backward, Forward, Full};

#[test]
fn u17_a_field_without_default_against_all_versions() {
    let v1 =
        avro(&j!({"type": "record", "name": "R", "fields": [{"name": "f1", "type": "string"}]}));
    let with = |default: Option<&str>| {
        let mut f2 = j!({"name": "f2", "type": "string"});
        if let Some(default) = default {
            f2["default"] = j!(default);
        }
        avro(&j!({"type": "record", "name": "R", "fields": [{"name": "f1", "type": "string"}, f2]}))
    };
    let (v2, bare) = (with(Some("x")), with(None));

    let verdict = check(Backward, LENIENT, &[(1, &v1)], &bare);
    assert_eq!(verdict.breaks.len(), 1);
    let found = &verdict.breaks[0];
    assert_eq!((found.version, found.path.as_str()), (1, "R.f2"));
    assert_eq!(found.direction, Direction::NewReadsOld);
    let text = found.to_string();
    assert!(
        text.contains("f2") && text.contains("no default") && text.contains("version 1"),
        "{text}"
    );

    assert!(check(Backward, LENIENT, &[(1, &v1)], &v2).is_compatible());
    assert!(check(Backward, LENIENT, &[(2, &v2)], &bare).is_compatible());
    let verdict = check(Backward, LENIENT, &[(1, &v1), (2, &v2)], &bare);
    let versions: Vec<u32> = verdict.breaks.iter().map(|found| found.version).collect();
    assert_eq!(versions, [1], "because of version 1 alone");
}

/// Old, new, strict backward, strict forward, the witness of the direction that fails.
#[test]
fn u18_json_pairs_with_their_witnesses() {
    let open = |properties: Value| j!({"type": "object", "properties": properties});
    let closed = |properties: Value| j!({"type": "object", "properties": properties, "additionalProperties": false});
    let (a, ab) =
        (j!({"a": {"type": "string"}}), j!({"a": {"type": "string"}, "b": {"type": "number"}}));
    let string_up_to = |len: u32| j!({"type": "string", "maxLength": len});
    let p = |of: Value| j!({"properties": {"p": of}, "required": ["p"]});
    let rows = [
        (
            1,
            open(a.clone()),
            closed(a.clone()),
            false,
            true,
            "additionalProperties",
            "#/additionalProperties",
        ),
        (
            2,
            closed(a.clone()),
            open(a.clone()),
            true,
            false,
            "additionalProperties",
            "#/additionalProperties",
        ),
        (3, open(a.clone()), open(ab.clone()), false, true, "type", "#/properties/b/type"),
        (
            4,
            closed(a.clone()),
            closed(ab.clone()),
            true,
            false,
            "additionalProperties",
            "#/additionalProperties",
        ),
        (
            5,
            closed(ab.clone()),
            closed(a.clone()),
            false,
            true,
            "additionalProperties",
            "#/additionalProperties",
        ),
        (6, open(ab.clone()), open(a.clone()), true, false, "type", "#/properties/b/type"),
        (
            7,
            open(j!({"a": {"type": "integer"}})),
            open(j!({"a": {"type": "number"}})),
            true,
            false,
            "type",
            "#/properties/a/type",
        ),
        (8, string_up_to(10), string_up_to(5), false, true, "maxLength", "#/maxLength"),
        (11, p(j!(true)), p(j!({"type": "string"})), false, true, "type", "#/properties/p/type"),
    ];
    for (row, old, new, backward, forward, rule, path) in rows {
        let (old_schema, new_schema) = (json(&old), json(&new));
        for (mode, expected, writer, reader) in
            [(Backward, backward, &old, &new), (Forward, forward, &new, &old)]
        {
            let verdict = one(mode, STRICT, &old_schema, &new_schema);
            assert_eq!(verdict.is_compatible(), expected, "row {row} {mode}: {}", told(&verdict));
            for found in &verdict.breaks {
                assert_eq!((found.rule.as_str(), found.path.as_str()), (rule, path), "row {row}");
                let witness = found.witness.as_ref().expect("each row has a witness");
                assert!(jsonschema_says(writer, witness), "row {row}: {witness}");
                assert!(!jsonschema_says(reader, witness), "row {row}: {witness}");
            }
        }
        // The lenient level differs in rows 3 and 6 only.
        let full = one(Full, LENIENT, &old_schema, &new_schema).is_compatible();
        assert_eq!(full, matches!(row, 3 | 6), "row {row}");
    }
    let eight = one(Backward, STRICT, &json(&string_up_to(10)), &json(&string_up_to(5)));
    assert_eq!(eight.breaks[0].witness.as_ref().unwrap().as_str().unwrap().chars().count(), 6);
}

fn jsonschema_says(schema: &Value, value: &Value) -> bool {
    json(schema)
        .validate(value.to_string().as_bytes(), &danube_schema::PayloadLimits::default())
        .is_ok()
}

#[test]
fn u18_rows_without_a_witness() {
    let (string, number) = (j!({"type": "string"}), j!({"type": "number"}));
    let nine = (json(&j!({"oneOf": [string, number]})), json(&j!({"oneOf": [number, string]})));
    let node = j!({"type": "object", "properties": {
        "name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}}});
    let mut titled = node.clone();
    titled["required"] = j!([]);
    let mutual = |extra: &str| {
        j!({"$ref": "#/$defs/a", "x": extra, "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
            "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}})
    };
    for (old, new) in [nine, (json(&node), json(&titled)), (json(&mutual("1")), json(&mutual("2")))]
    {
        for levels in [LENIENT, STRICT] {
            assert!(one(Full, levels, &old, &new).is_compatible());
        }
    }
    let remote = refusal(SchemaType::JsonSchema, r#"{"$ref": "https://example.com/other.json"}"#);
    assert!(
        remote.contains("https://example.com/other.json")
            && remote.contains("nothing is ever fetched"),
        "{remote}"
    );
}

#[test]
fn u19_alias_enum_promotion_union() {
    let record = |field: Value| avro(&j!({"type": "record", "name": "R", "fields": [field]}));
    let of = |word: &str| avro(&j!(word));
    let letters = |symbols: &[&str], default: Option<&str>| {
        let mut value = j!({"type": "enum", "name": "E", "symbols": symbols});
        if let Some(default) = default {
            value["default"] = j!(default);
        }
        avro(&value)
    };
    let rows = [
        (
            record(j!({"name": "cust", "type": "string"})),
            record(j!({"name": "customer", "type": "string", "aliases": ["cust"]})),
            true,
            false,
            "R.cust",
            "field_without_default",
        ),
        (
            letters(&["A", "B"], None),
            letters(&["A", "B", "C"], None),
            true,
            false,
            "",
            "enum_symbols_missing",
        ),
        (letters(&["A", "B"], Some("A")), letters(&["A", "B", "C"], Some("A")), true, true, "", ""),
        (of("int"), of("long"), true, false, "the top", "type_changed"),
        (of("int"), of("double"), true, false, "the top", "type_changed"),
        (of("string"), of("bytes"), true, true, "", ""),
        (of("long"), of("int"), false, true, "the top", "type_changed"),
        (of("double"), of("float"), false, true, "the top", "type_changed"),
        (of("int"), of("string"), false, false, "the top", "type_changed"),
        (
            avro(&j!(["null", "int"])),
            avro(&j!(["null", "long"])),
            true,
            false,
            "<long>",
            "union_branch_missing",
        ),
    ];
    for (at, (old, new, backward, forward, path, rule)) in rows.into_iter().enumerate() {
        for (mode, expected) in [(Backward, backward), (Forward, forward)] {
            let verdict = one(mode, LENIENT, &old, &new);
            assert_eq!(verdict.is_compatible(), expected, "row {at} {mode}: {}", told(&verdict));
            for found in &verdict.breaks {
                assert_eq!((found.path.as_str(), found.rule.as_str()), (path, rule), "row {at}");
            }
        }
    }
}

#[test]
fn u19_defaults_are_checked_at_registration() {
    let field = |of: Value, default: Value| j!({"type": "record", "name": "R", "fields": [{"name": "f", "type": of, "default": default}]});
    let refused = refusal(SchemaType::Avro, &field(j!(["int", "null"]), j!("null")).to_string());
    assert!(
        refused.contains("`R.f`")
            && refused.contains("no branch")
            && refused.contains("[int, null]"),
        "{refused}"
    );
    // Allowed from 1.12: any branch.
    avro(&field(j!(["string", "null"]), Value::Null));
    for (of, default) in [
        (j!("int"), j!(1.5)),
        (j!("int"), j!(3_000_000_000_u64)),
        (j!("string"), Value::Null),
        (j!("boolean"), j!("true")),
        (j!({"type": "array", "items": "int"}), j!([1, "2"])),
        (j!({"type": "map", "values": "int"}), j!([])),
        (j!({"type": "enum", "name": "E", "symbols": ["A"]}), j!("B")),
        (j!({"type": "fixed", "name": "F", "size": 2}), j!("abc")),
        (j!({"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}), j!({})),
    ] {
        let refused = refusal(SchemaType::Avro, &field(of, default).to_string());
        assert!(refused.contains("`R.f`"), "{refused}");
    }
}

#[test]
fn u20_protobuf_number_reuse_over_versions() {
    let file = |body: &str| proto(&format!("syntax = \"proto3\";\n{body}"));
    let v1 = file("message M { string a = 1; string x = 2; string y = 3; int32 b = 4; }");
    let v2 = file("message M { reserved 1 to 3; int32 b = 4; }");

    let reused = file("message M { int32 c = 1; string x = 2; string y = 3; int32 b = 4; }");
    let verdict = one(Backward, LENIENT, &v1, &reused);
    let found = &verdict.breaks[0];
    assert_eq!(
        (found.path.as_str(), found.old.as_str(), found.new.as_str()),
        ("M.1", "string", "int32")
    );

    let verdict = one(Full, LENIENT, &v1, &v2);
    assert!(verdict.is_compatible() && verdict.warnings.is_empty(), "{}", told(&verdict));
    let unreserved = one(Full, LENIENT, &v1, &file("message M { int32 b = 4; }"));
    assert!(unreserved.is_compatible());
    let warned: Vec<&str> =
        unreserved.warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(warned, ["M.1", "M.2", "M.3"], "deleted without a reservation");

    let v3 = file("message M { int32 c = 1; int32 b = 4; }");
    let verdict = check(Backward, LENIENT, &[(1, &v1), (2, &v2)], &v3);
    let told: Vec<(u32, &str)> =
        verdict.breaks.iter().map(|found| (found.version, found.rule.as_str())).collect();
    assert_eq!(told, [(1, "type_changed"), (2, "reserved_number_used")]);

    for (old, new, compatible) in [
        ("message M { int32 a = 1; }", "message M { int64 a = 1; }", true),
        ("message M { string a = 1; }", "message M { bytes a = 1; }", true),
        ("message M { int32 a = 1; }", "message M { sint32 a = 1; }", false),
        ("message M { string a = 1; }", "message Z { string a = 1; }", false),
    ] {
        let verdict = one(Full, LENIENT, &file(old), &file(new));
        assert_eq!(verdict.is_compatible(), compatible, "{old} -> {new}");
        assert!(!compatible || !verdict.warnings.is_empty(), "truncation is told: {old} -> {new}");
    }
    let messages = "message P { int32 v = 1; } message Q { int32 v = 1; }";
    let with = |of: &str| file(&format!("message M {{ {of} p = 5; }} {messages}"));
    let verdict = one(Backward, LENIENT, &with("P"), &with("Q"));
    assert_eq!(
        (verdict.breaks[0].path.as_str(), verdict.breaks[0].rule.as_str()),
        ("M.5", "message_type_changed")
    );

    let (a, a2) = (file("message M { string a = 1; }"), file("message M { string a2 = 1; }"));
    assert!(one(Full, LENIENT, &a, &a2).is_compatible());
    let verdict = one(Full, JSON_NAMES, &a, &a2);
    assert_eq!(
        (verdict.breaks[0].path.as_str(), verdict.breaks[0].rule.as_str()),
        ("M.1", "json_name_changed")
    );
}

#[test]
fn the_type_of_a_subject_does_not_change() {
    let (string, avro_string) = (crate::parse(SchemaType::String, ""), avro(&j!("string")));
    let verdict = one(Backward, LENIENT, &string, &avro_string);
    assert_eq!(verdict.breaks[0].rule, "schema_type");
    assert!(one(Compatibility::None, LENIENT, &string, &avro_string).is_compatible());
}
