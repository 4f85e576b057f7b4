//! Runs the JSON-Schema-Test-Suite (a folder given by hand) through payload validation.
//!
//! ```text
//! pip download --no-binary :all: --no-deps jsonschema==4.23.0   # carries the suite in json/
//! cargo run -p danube-schema --example suite -- jsonschema-4.23.0/json
//! ```

use danube_schema::{
    Compatibility, JsonLevel, Levels, NoReferences, PayloadLimits, Schema, SchemaType, check,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[expect(clippy::disallowed_methods, reason = "a tool for people, not part of the crate")]
fn main() {
    let folder = std::env::args().nth(1).expect("the folder of the suite");
    let mut registry: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    gather(&format!("{folder}/remotes"), "http://localhost:1234", &mut registry);
    for (draft, uri) in [
        ("draft7", "http://json-schema.org/draft-07/schema#"),
        ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
    ] {
        let (mut right, mut wrong, mut refused) = (0, Vec::new(), Vec::new());
        let mut tally = Tally::default();
        let files =
            std::fs::read_dir(format!("{folder}/tests/{draft}")).expect("the draft's folder");
        for file in files.flatten().filter(|file| file.path().is_file()) {
            let name = file.file_name().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(file.path()).expect("a file of the suite");
            for group in serde_json::from_str::<Vec<Value>>(&text).expect("JSON") {
                let mut schema = group["schema"].clone();
                if let Value::Object(object) = &mut schema {
                    object.entry("$schema").or_insert(json!(uri));
                }
                let what = format!("{name}: {}", group["description"]);
                match Schema::parse(
                    SchemaType::JsonSchema,
                    schema.to_string().as_bytes(),
                    &registry,
                ) {
                    Err(error) => refused.push(format!("{what}: {error}")),
                    Ok(schema) => {
                        tally.group(&what, &schema, &group, uri);
                        for test in group["tests"].as_array().expect("a list") {
                            let payload = test["data"].to_string();
                            let fits =
                                schema.validate(payload.as_bytes(), &PayloadLimits::default());
                            if fits.is_ok() == (test["valid"] == json!(true)) {
                                right += 1;
                            } else {
                                wrong.push(format!("{what}: {}", test["description"]));
                            }
                        }
                    }
                }
            }
        }
        println!(
            "{draft}: {right} right, {} wrong, {} schemas refused",
            wrong.len(),
            refused.len()
        );
        wrong.iter().for_each(|line| println!("  wrong    {line}"));
        refused.iter().for_each(|line| println!("  refused  {line}"));
        let Tally { right, undecided, wrong } = tally;
        println!(
            "{draft}, as inclusion of one value: {right} right, {undecided} undecided, {} wrong",
            wrong.len()
        );
        wrong.iter().for_each(|line| println!("  wrong    {line}"));
    }
}

/// A value is valid exactly when the schema that allows only this value is included.
#[derive(Default)]
struct Tally {
    right: u32,
    undecided: u32,
    wrong: Vec<String>,
}

impl Tally {
    fn group(&mut self, what: &str, schema: &Schema, group: &Value, uri: &str) {
        let strict = Levels { json: JsonLevel::Strict, ..Levels::default() };
        for test in group["tests"].as_array().expect("a list") {
            let only = json!({"$schema": uri, "const": test["data"]}).to_string();
            let only = Schema::parse(SchemaType::JsonSchema, only.as_bytes(), &NoReferences)
                .expect("good");
            let verdict = check(Compatibility::Backward, strict, &[(1, &only)], schema);
            let valid = test["valid"] == json!(true);
            if verdict.is_compatible() == valid {
                self.right += 1;
            } else if verdict.breaks.iter().all(|found| found.rule == "undecided")
                && !verdict.is_compatible()
            {
                self.undecided += 1;
            } else {
                self.wrong.push(format!("{what}: {}", test["description"]));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a tool for people, not part of the crate")]
fn gather(folder: &str, uri: &str, registry: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("the folder of remotes").flatten() {
        let (path, uri) = (entry.path(), format!("{uri}/{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            gather(&path.to_string_lossy(), &uri, registry);
        } else {
            registry.insert(uri, std::fs::read(path).expect("a file of the suite"));
        }
    }
}
