//! What "compatible" promises, tried with random pairs and random data, by other implementations:
//! `jsonschema` for JSON, `apache-avro` and `prost-reflect` for the binary formats.

use crate::{LENIENT, STRICT, one, parse};
use danube_schema::{Compatibility, PayloadLimits, SchemaType};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json as j};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    }
}

// ---- JSON Schema ----

fn literal() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(j!({})),
        Just(j!(true)),
        Just(j!(false)),
        select(vec!["null", "boolean", "integer", "number", "string", "array", "object"])
            .prop_map(|of| j!({"type": of})),
        (0..4_i32).prop_map(|at| j!({"minimum": at})),
        (0..4_i32).prop_map(|at| j!({"type": "number", "exclusiveMaximum": at})),
        (1..4_u32).prop_map(|of| j!({"multipleOf": of})),
        Just(j!({"multipleOf": 0.5})),
        (0..3_u32).prop_map(|len| j!({"type": "string", "maxLength": len})),
        (0..3_u32).prop_map(|len| j!({"minLength": len})),
        select(vec!["^a", "b$", "^[ab]{1,2}$", "^c+$"])
            .prop_map(|pattern| j!({"pattern": pattern})),
        prop::collection::vec(
            select(vec![
                j!(0),
                j!(1),
                j!(1.5),
                j!("a"),
                j!("ab"),
                j!(null),
                j!(true),
                j!([1]),
                j!({"a": 1})
            ]),
            1..4
        )
        .prop_map(|values| j!({"enum": values})),
        (0..3_u32).prop_map(|len| j!({"minProperties": len})),
        (0..3_u32).prop_map(|len| j!({"maxItems": len})),
        Just(j!({"uniqueItems": true})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    literal().prop_recursive(3, 16, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (
                prop::collection::btree_map(select(vec!["a", "b", "x-1"]), inner.clone(), 0..3),
                prop::collection::vec(select(vec!["a", "b"]), 0..2),
                prop::option::of(inner.clone()),
                prop::option::of(inner.clone())
            )
                .prop_map(|(properties, required, rest, pattern)| {
                    let mut value =
                        j!({"type": "object", "properties": properties, "required": required});
                    if let Some(rest) = rest {
                        value["additionalProperties"] = rest;
                    }
                    if let Some(pattern) = pattern {
                        value["patternProperties"] = j!({"^x-": pattern});
                    }
                    value
                }),
            (list.clone(), prop::option::of(inner.clone()), 0..3_u32).prop_map(
                |(prefix, rest, min)| {
                    let mut value = j!({"prefixItems": prefix, "minItems": min});
                    if let Some(rest) = rest {
                        value["items"] = rest;
                    }
                    value
                }
            ),
            inner.clone().prop_map(|of| j!({"type": "array", "items": of})),
            inner.clone().prop_map(|of| j!({"contains": of})),
            inner.clone().prop_map(|of| j!({"propertyNames": of})),
            list.clone().prop_map(|of| j!({"allOf": of})),
            list.clone().prop_map(|of| j!({"anyOf": of})),
            list.prop_map(|of| j!({"oneOf": of})),
            inner.clone().prop_map(|of| j!({"not": of})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| j!({"if": a, "then": b, "else": c})),
            inner.prop_map(|of| j!({"properties": {"a": of, "b": {"$ref": "#"}}})),
        ]
    })
}

/// The old schema with one more layer or without a keyword: nearer to how people change schemas.
fn changed(old: Value, other: Value, how: usize) -> Value {
    match (how, old) {
        (0, old) => j!({"anyOf": [old, other]}),
        (1, old) => j!({"allOf": [old, other]}),
        (2, Value::Object(mut object)) => {
            let key = object.keys().next().cloned();
            key.map(|key| object.remove(&key));
            Value::Object(object)
        }
        (3, Value::Object(mut object)) => {
            if let Value::Object(more) = other {
                object.extend(more);
            }
            Value::Object(object)
        }
        (4, Value::Object(mut object)) => {
            for value in object.values_mut() {
                if let Value::Number(number) = value {
                    *value = Value::from(number.as_f64().unwrap_or(0.0) as i64 + 1);
                }
            }
            Value::Object(object)
        }
        _ => other,
    }
}

fn instance() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        j!(null),
        j!(true),
        j!(false),
        j!(0),
        j!(1),
        j!(2),
        j!(3),
        j!(6),
        j!(-1),
        j!(0.5),
        j!(1.5),
        j!(""),
        j!("a"),
        j!("b"),
        j!("ab"),
        j!("c"),
        j!("abc"),
        j!([]),
        j!({}),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(select(vec!["a", "b", "x-1", "z", "ab"]), inner, 0..4)
                .prop_map(|entries| Value::Object(
                    entries
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<Map<_, _>>()
                )),
        ]
    })
}

fn valid(schema: &danube_schema::Schema, value: &Value) -> bool {
    schema.validate(value.to_string().as_bytes(), &PayloadLimits::default()).is_ok()
}

/// Registration may refuse what the generator writes (references without an end); that is no case.
fn try_json(value: &Value) -> Option<danube_schema::Schema> {
    danube_schema::Schema::parse(
        SchemaType::JsonSchema,
        value.to_string().as_bytes(),
        &danube_schema::NoReferences,
    )
    .ok()
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn json_compatible_means_included(old in schema(), other in schema(), how in 0..6_usize, values in prop::collection::vec(instance(), 24)) {
        let new = changed(old.clone(), other, how);
        let (Some(old_schema), Some(new_schema)) = (try_json(&old), try_json(&new)) else { return Ok(()) };
        let verdict = one(Compatibility::Backward, STRICT, &old_schema, &new_schema);
        if verdict.is_compatible() {
            for value in &values {
                prop_assert!(!valid(&old_schema, value) || valid(&new_schema, value), "{old}\n{new}\n{value}");
            }
        }
        for found in &verdict.breaks {
            if let Some(witness) = &found.witness {
                prop_assert!(valid(&old_schema, witness) && !valid(&new_schema, witness), "{old}\n{new}\n{found}");
            }
            prop_assert!(found.witness.is_some() != (found.rule == "undecided"));
        }
        // The lenient level lets more through, never less.
        if verdict.is_compatible() {
            prop_assert!(one(Compatibility::Backward, LENIENT, &old_schema, &new_schema).is_compatible(), "{old}\n{new}");
        }
    }
}

/// Most of what the generator makes has to be decided, or "undecided" would be an easy way out.
#[test]
fn json_is_mostly_decided() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut undecided, mut total, mut compatible) = (Vec::new(), 0, 0);
    for round in 0..800 {
        let old = schema().new_tree(&mut runner).expect("the generator has no filter").current();
        let other = schema().new_tree(&mut runner).expect("the generator has no filter").current();
        let new = changed(old.clone(), other, round % 6);
        let (Some(old_schema), Some(new_schema)) = (try_json(&old), try_json(&new)) else {
            continue;
        };
        let verdict = one(Compatibility::Backward, STRICT, &old_schema, &new_schema);
        total += 1;
        compatible += u32::from(verdict.is_compatible());
        if !verdict.breaks.is_empty()
            && verdict.breaks.iter().all(|found| found.rule == "undecided")
        {
            undecided.push(format!("{old}\n  {new}\n  {}", verdict.breaks[0].why));
        }
    }
    assert!(compatible * 10 > total, "{compatible} of {total} compatible: too few to mean much");
    assert!(
        undecided.len() as u32 * 20 < total,
        "{} of {total}:\n{}",
        undecided.len(),
        undecided.join("\n")
    );
}

// ---- Avro ----

/// Types by a seed, so that old and new can be close relatives.
fn avro_type() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        select(vec!["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
            .prop_map(|word| j!(word)),
        prop::collection::btree_set(select(vec!["A", "B", "C"]), 1..4)
            .prop_map(|symbols| j!({"type": "enum", "name": "E", "symbols": symbols})),
        (1..3_u32).prop_map(|size| j!({"type": "fixed", "name": format!("F{size}"), "size": size})),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|of| j!({"type": "array", "items": of})),
            inner.clone().prop_map(|of| j!({"type": "map", "values": of})),
            inner.clone().prop_map(|of| j!(["null", of])),
            inner.prop_map(|of| j!([of, "string", "int"])),
        ]
    })
}

fn avro_record() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(select(vec!["a", "b", "c"]), avro_type(), 1..4).prop_map(|fields| {
        let fields: Vec<Value> =
            fields.into_iter().map(|(name, of)| j!({"name": name, "type": of})).collect();
        j!({"type": "record", "name": "R", "fields": fields})
    })
}

fn avro_changed(mut old: Value, other: &Value, how: usize) -> Value {
    let widen = |value: &Value| match value.as_str() {
        Some("int") => j!("long"),
        Some("float") => j!("double"),
        Some("string") => j!("bytes"),
        Some("null") => j!("null"),
        Some(word) => j!(word),
        None if value.is_array() => value.clone(),
        None => j!(["null", value]),
    };
    let fields = old["fields"].as_array_mut().expect("the generator wrote it so");
    match how {
        0 => {
            for field in fields {
                field["type"] = widen(&field["type"]);
            }
        }
        1 => {
            fields.pop();
        }
        2 => fields.push(j!({"name": "d", "type": "int", "default": 7})),
        3 => fields.reverse(),
        4 => {
            for field in fields {
                let name = field["name"].as_str().expect("the generator wrote it so").to_owned();
                field["aliases"] = j!([name]);
                field["name"] = j!(format!("{name}2"));
            }
        }
        _ => return other.clone(),
    }
    old
}

/// A value of a type, drawn from numbers.
fn avro_value(of: &Value, draws: &mut dyn FnMut(usize) -> usize) -> apache_avro::types::Value {
    use apache_avro::types::Value as V;
    match of {
        Value::Array(branches) => {
            let at = draws(branches.len());
            V::Union(at as u32, Box::new(avro_value(&branches[at], draws)))
        }
        Value::Object(object) => match object["type"].as_str().unwrap_or("") {
            "array" => {
                V::Array((0..draws(3)).map(|_| avro_value(&object["items"], draws)).collect())
            }
            "map" => V::Map(
                (0..draws(3))
                    .map(|at| (format!("k{at}"), avro_value(&object["values"], draws)))
                    .collect(),
            ),
            "enum" => {
                let symbols = object["symbols"].as_array().expect("the generator wrote it so");
                let at = draws(symbols.len());
                V::Enum(
                    at as u32,
                    symbols[at].as_str().expect("the generator wrote it so").to_owned(),
                )
            }
            "fixed" => {
                let size = object["size"].as_u64().expect("the generator wrote it so") as usize;
                V::Fixed(size, vec![draws(100) as u8; size])
            }
            _ => V::Record(
                object["fields"]
                    .as_array()
                    .expect("the generator wrote it so")
                    .iter()
                    .map(|field| {
                        (
                            field["name"].as_str().expect("the generator wrote it so").to_owned(),
                            avro_value(&field["type"], draws),
                        )
                    })
                    .collect(),
            ),
        },
        word => match word.as_str().expect("the generator wrote it so") {
            "null" => V::Null,
            "boolean" => V::Boolean(draws(2) == 1),
            "int" => V::Int(draws(1000) as i32 - 500),
            "long" => V::Long(draws(1000) as i64 - 500),
            "float" => V::Float(draws(100) as f32 / 4.0),
            "double" => V::Double(draws(100) as f64 / 4.0),
            "bytes" => V::Bytes(vec![b'a'; draws(4)]),
            _ => V::String("ä".repeat(draws(4))),
        },
    }
}

proptest! {
    #![proptest_config(config(1_200))]

    #[test]
    fn avro_compatible_means_readable(old in avro_record(), other in avro_record(), how in 0..7_usize, seeds in prop::collection::vec(any::<u16>(), 64)) {
        let new = avro_changed(old.clone(), &other, how);
        let parse = |value: &Value| danube_schema::Schema::parse(SchemaType::Avro, value.to_string().as_bytes(), &danube_schema::NoReferences).ok();
        // The generator may define a name twice or repeat a branch; that is refused, and no case.
        let (Some(old_schema), Some(new_schema)) = (parse(&old), parse(&new)) else { return Ok(()) };
        let theirs = |value: &Value| apache_avro::Schema::parse_str(&value.to_string()).expect("what we accept they accept");
        let (writer, reader) = (theirs(&old), theirs(&new));
        let mut at = 0;
        let mut draws = |below: usize| { at += 1; usize::from(seeds[at % seeds.len()]) % below.max(1) };
        for _ in 0..4 {
            let value = avro_value(&old, &mut draws);
            let written = apache_avro::writer::datum::GenericDatumWriter::builder(&writer).build();
            let bytes = written.and_then(|writer| writer.write_value_to_vec(value)).expect("the value is of the type");
            prop_assert!(old_schema.validate(&bytes, &PayloadLimits::default()).is_ok(), "{old}");
            if bytes.len() > 1 {
                let torn = &bytes[..bytes.len() - 1];
                prop_assert!(old_schema.validate(torn, &PayloadLimits::default()).is_err(), "{old}");
            }
            let compatible = one(Compatibility::Backward, LENIENT, &old_schema, &new_schema).is_compatible();
            let read = apache_avro::reader::datum::GenericDatumReader::builder(&writer)
                .reader_schema(&reader)
                .build()
                .and_then(|reader| reader.read_value(&mut bytes.as_slice()));
            // apache-avro 0.22 does not look at the aliases of fields.
            if compatible && how != 4 {
                prop_assert!(read.is_ok(), "{old}\n{new}\n{read:?}");
            }
        }
    }
}

// ---- Protobuf ----

const SCALARS: [&str; 15] = [
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
    "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
];

fn proto_fields() -> impl Strategy<Value = Vec<(u32, bool, &'static str)>> {
    prop::collection::btree_map(1..8_u32, (any::<bool>(), select(SCALARS.to_vec())), 1..6).prop_map(
        |fields| {
            fields.into_iter().map(|(number, (repeated, of))| (number, repeated, of)).collect()
        },
    )
}

fn proto_text(fields: &[(u32, bool, &str)]) -> String {
    let fields: String = fields
        .iter()
        .map(|(number, repeated, of)| {
            format!("  {}{of} f{number} = {number};\n", if *repeated { "repeated " } else { "" })
        })
        .collect();
    format!("syntax = \"proto3\";\nmessage M {{\n{fields}}}\n")
}

fn pool(text: &str) -> prost_reflect::MessageDescriptor {
    let file = protox_file(text);
    let set = prost_types::FileDescriptorSet { file: vec![file] };
    let pool = prost_reflect::DescriptorPool::from_file_descriptor_set(set)
        .expect("the generator wrote it so");
    pool.get_message_by_name("M").expect("the generator wrote it so")
}

fn protox_file(text: &str) -> prost_types::FileDescriptorProto {
    protox::file::File::from_source("m.proto", text)
        .expect("the generator wrote it so")
        .file_descriptor_proto()
        .clone()
}

fn proto_value(of: &str, draw: usize) -> prost_reflect::Value {
    use prost_reflect::Value as V;
    match of {
        "double" => V::F64(draw as f64),
        "float" => V::F32(draw as f32),
        "int32" | "sint32" | "sfixed32" => V::I32(draw as i32 - 100),
        "int64" | "sint64" | "sfixed64" => V::I64(draw as i64 - 100),
        "uint32" | "fixed32" => V::U32(draw as u32),
        "uint64" | "fixed64" => V::U64(draw as u64),
        "bool" => V::Bool(draw % 2 == 1),
        "string" => V::String("ü".repeat(draw % 5)),
        _ => V::Bytes(vec![b'x'; draw % 5].into()),
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn protobuf_compatible_means_decodable(old in proto_fields(), mut new in proto_fields(), keep in any::<u8>(), seeds in prop::collection::vec(0..250_usize, 24)) {
        use prost_reflect::prost::Message as _;
        for field in &old {
            if keep >> field.0 & 1 == 1 {
                new.retain(|(number, ..)| *number != field.0);
                new.push(*field);
            }
        }
        let (old_text, new_text) = (proto_text(&old), proto_text(&new));
        let (old_schema, new_schema) = (parse(SchemaType::Protobuf, &old_text), parse(SchemaType::Protobuf, &new_text));
        let descriptor = pool(&old_text);
        let mut message = prost_reflect::DynamicMessage::new(descriptor.clone());
        let mut at = 0;
        let mut draw = || { at += 1; seeds[at % seeds.len()] };
        for (number, repeated, of) in &old {
            let value = if *repeated {
                prost_reflect::Value::List((0..draw() % 4).map(|_| proto_value(of, draw())).collect())
            } else {
                proto_value(of, draw())
            };
            message.set_field_by_number(*number, value);
        }
        let bytes = message.encode_to_vec();
        prop_assert!(old_schema.validate(&bytes, &PayloadLimits::default()).is_ok(), "{old_text}");
        if one(Compatibility::Backward, LENIENT, &old_schema, &new_schema).is_compatible() {
            let read = prost_reflect::DynamicMessage::decode(pool(&new_text), bytes.as_slice());
            prop_assert!(read.is_ok(), "{old_text}{new_text}{read:?}");
            prop_assert!(new_schema.validate(&bytes, &PayloadLimits::default()).is_ok(), "{old_text}{new_text}");
        }
        // Whatever the other decoder refuses we refuse, and the other way round.
        let theirs = prost_reflect::DynamicMessage::decode(pool(&new_text), bytes.as_slice()).is_ok();
        prop_assert_eq!(theirs, new_schema.validate(&bytes, &PayloadLimits::default()).is_ok(), "{}{}", old_text, new_text);
    }
}
