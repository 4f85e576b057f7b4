//! How fast: payload validation and a check against many versions. Figures for people, run by hand.
//!
//! ```text
//! cargo run --release -p danube-schema --example speed
//! ```

use danube_schema::{
    Compatibility, Levels, NoReferences, PayloadLimits, Schema, SchemaType, check,
};
use serde_json::{Map, Value, json};
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a tool for people, not part of the crate")]
fn per_second(what: &str, times: u32, mut work: impl FnMut()) {
    let start = Instant::now();
    (0..times).for_each(|_| work());
    println!("{what}: {:.0} per second", f64::from(times) / start.elapsed().as_secs_f64());
}

#[expect(clippy::disallowed_methods, reason = "a tool for people, not part of the crate")]
fn main() {
    let parse = |kind, value: &Value| {
        Schema::parse(kind, value.to_string().as_bytes(), &NoReferences).expect("a good definition")
    };
    let fields: Vec<Value> = (0..20)
        .map(|at| json!({"name": format!("f{at}"), "type": if at % 2 == 0 { json!("string") } else { json!(["null", "long"]) }}))
        .collect();
    let avro = parse(SchemaType::Avro, &json!({"type": "record", "name": "R", "fields": fields}));
    let mut payload = Vec::new();
    for _ in 0..10 {
        payload.extend([0xBC, 0x01]);
        payload.extend([b'x'; 94]);
        payload.extend([2, 0x80, 0x80, 1]);
    }
    let limits = PayloadLimits::default();
    per_second(&format!("avro, {} bytes", payload.len()), 300_000, || {
        avro.validate(&payload, &limits).expect("fits")
    });

    let properties: Map<String, Value> =
        (0..20).map(|at| (format!("f{at}"), json!({"type": "string", "maxLength": 100}))).collect();
    let object = json!({"type": "object", "properties": properties, "required": ["f1"]});
    let document: Map<String, Value> =
        (0..20).map(|at| (format!("f{at}"), json!("x".repeat(40)))).collect();
    let (schema, text) =
        (parse(SchemaType::JsonSchema, &object), Value::from(document).to_string());
    per_second(&format!("json, {} bytes", text.len()), 50_000, || {
        schema.validate(text.as_bytes(), &limits).expect("fits")
    });

    for kind in [SchemaType::Avro, SchemaType::JsonSchema, SchemaType::Protobuf] {
        let version = |count: usize| match kind {
            SchemaType::Avro => {
                let fields: Vec<Value> = (0..count)
                    .map(|at| json!({"name": format!("f{at}"), "type": ["null", "string"], "default": null}))
                    .collect();
                json!({"type": "record", "name": "R", "fields": fields}).to_string()
            }
            SchemaType::JsonSchema => {
                let properties: Map<String, Value> = (0..count)
                    .map(|at| (format!("f{at}"), json!({"type": "string", "maxLength": 100 + at})))
                    .collect();
                json!({"type": "object", "properties": properties, "required": ["f1", "f2"]})
                    .to_string()
            }
            _ => {
                let fields: String =
                    (1..=count).map(|at| format!("string f{at} = {at};")).collect();
                format!("syntax = \"proto3\"; message M {{ {fields} }}")
            }
        };
        let make =
            |count| Schema::parse(kind, version(count).as_bytes(), &NoReferences).expect("good");
        let versions: Vec<Schema> = (100..200).map(make).collect();
        let existing: Vec<(u32, &Schema)> = (1..).zip(&versions).collect();
        let start = Instant::now();
        let new = make(200);
        let parsed = start.elapsed();
        let start = Instant::now();
        let verdict = check(Compatibility::Backward, Levels::default(), &existing, &new);
        println!(
            "{kind}: 200 fields against 100 versions: {:?} ({}), parsing one: {parsed:?}",
            start.elapsed(),
            verdict.is_compatible()
        );
    }
}
