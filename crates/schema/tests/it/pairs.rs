//! The stored pairs of `tests/pairs`, each with its verdict. `oracle/` judges the same files with
//! other people's tools.

use crate::{JSON_NAMES, LENIENT, STRICT, avro, json, one, proto, told};
use danube_schema::{Compatibility, Levels, Schema};
use serde::Deserialize;
use serde_json::Value;

const AVRO: &str = include_str!("../pairs/avro.json");
const JSON: &str = include_str!("../pairs/json.json");
const PROTOBUF: &str = include_str!("../pairs/protobuf.json");

#[derive(Deserialize)]
struct Pair {
    name: String,
    old: Value,
    new: Value,
    backward: Option<bool>,
    forward: Option<bool>,
    strict_backward: Option<bool>,
    strict_forward: Option<bool>,
    wire: Option<bool>,
    json: Option<bool>,
}

/// Collects disagreements, so that one run shows all of them.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn expect(
        &mut self,
        name: &str,
        (mode, levels): (Compatibility, Levels),
        old: &Schema,
        new: &Schema,
        expected: Option<bool>,
    ) {
        let Some(expected) = expected else { return };
        let verdict = one(mode, levels, old, new);
        if verdict.is_compatible() != expected {
            self.0.push(format!(
                "{name}: {mode} {levels:?}: expected {expected}, got: {}",
                told(&verdict)
            ));
        }
        // Nothing of the tables is undecided.
        for found in verdict.breaks.iter().filter(|found| found.rule == "undecided") {
            self.0.push(format!("{name}: {mode} {levels:?}: {found}"));
        }
    }

    fn nothing(self) {
        assert!(self.0.is_empty(), "{} wrong:\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn avro_pairs() {
    let mut wrong = Wrong::default();
    for pair in serde_json::from_str::<Vec<Pair>>(AVRO).unwrap() {
        let (old, new) = (avro(&pair.old), avro(&pair.new));
        let both = pair.backward.zip(pair.forward).map(|(backward, forward)| backward && forward);
        for (mode, expected) in [
            (Compatibility::Backward, pair.backward),
            (Compatibility::Forward, pair.forward),
            (Compatibility::Full, both),
            (Compatibility::None, Some(true)),
        ] {
            wrong.expect(&pair.name, (mode, LENIENT), &old, &new, expected);
        }
    }
    wrong.nothing();
}

#[test]
fn json_pairs() {
    let mut wrong = Wrong::default();
    for pair in serde_json::from_str::<Vec<Pair>>(JSON).unwrap() {
        let (old, new) = (json(&pair.old), json(&pair.new));
        for (mode, levels, expected) in [
            (Compatibility::Backward, LENIENT, pair.backward),
            (Compatibility::Forward, LENIENT, pair.forward),
            (Compatibility::Backward, STRICT, pair.strict_backward),
            (Compatibility::Forward, STRICT, pair.strict_forward),
        ] {
            wrong.expect(&pair.name, (mode, levels), &old, &new, expected);
        }
        for levels in [LENIENT, STRICT] {
            wrong.expect(
                &pair.name,
                (Compatibility::Full, levels),
                &old,
                &json(&pair.old),
                Some(true),
            );
        }
    }
    wrong.nothing();
}

#[test]
fn protobuf_pairs() {
    let mut wrong = Wrong::default();
    for pair in serde_json::from_str::<Vec<Pair>>(PROTOBUF).unwrap() {
        let (old, new) = (proto(pair.old.as_str().unwrap()), proto(pair.new.as_str().unwrap()));
        for (mode, levels, expected) in [
            (Compatibility::Backward, LENIENT, pair.backward),
            (Compatibility::Forward, LENIENT, pair.forward),
            (Compatibility::Full, LENIENT, pair.wire),
            (Compatibility::Full, JSON_NAMES, pair.json),
        ] {
            wrong.expect(&pair.name, (mode, levels), &old, &new, expected);
        }
    }
    wrong.nothing();
}
