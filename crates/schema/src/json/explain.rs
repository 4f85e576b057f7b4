//! From "not included" to a list of what is not: every part of the reader's schema that the writer
//! can break, with its place and a document that breaks it.
//!
//! A schema is an intersection, so it is taken apart along `allOf`, references, properties and
//! items, and each part is asked alone. Law: a witness is shown only when the writer's validator
//! accepts it and the reader's refuses it; without one the part is reported as undecided.

use super::JsonSchema;
use super::documents::escape;
use super::node::{Form, Node, Props, node, truth};
use super::solve::{Found, Goal, Side, Solver};
use crate::limits::{COMPARE_WORK_MAX, FAULTS_MAX};
use crate::verdict::Findings;
use danube_core::schema::JsonLevel;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Parts that are looked at.
const PARTS_MAX: usize = 1_500;
/// Steps for one part, once the whole is known to be wrong.
const PART_WORK_MAX: u64 = COMPARE_WORK_MAX / 4;
/// Steps for all parts together.
const PARTS_WORK_MAX: u64 = COMPARE_WORK_MAX;

pub(crate) fn read(
    reader: &JsonSchema,
    writer: &JsonSchema,
    level: JsonLevel,
    findings: &mut Findings<'_>,
) {
    let targets = vec![&reader.targets, &writer.targets];
    let mut solver = Solver::new(targets.clone(), level == JsonLevel::Lenient);
    let allowed = COMPARE_WORK_MAX.min(*findings.work_left());
    solver.allow(allowed);
    let whole = solver.solve(vec![
        Goal::new(&writer.root, true, Side::Writer),
        Goal::new(&reader.root, false, Side::Reader),
    ]);
    *findings.work_left() -= allowed - solver.left();
    if whole.is_no() {
        return;
    }
    let work_left = PARTS_WORK_MAX.min(*findings.work_left());
    let mut parts = Parts {
        reader,
        writer,
        targets,
        solver,
        findings,
        steps: Vec::new(),
        followed: BTreeSet::new(),
        looked_at: 0,
        work_left,
        reported: 0,
    };
    if !parts.part(&reader.root, "#") {
        parts.report(&whole, "#", "");
    }
}

/// One step into the value.
#[derive(Clone)]
enum Step {
    Property(String),
    Item(usize),
    ItemsFrom(usize),
}

struct Parts<'a, 'f> {
    reader: &'a JsonSchema,
    writer: &'a JsonSchema,
    targets: Vec<&'a BTreeMap<u128, Node>>,
    solver: Solver<'a>,
    findings: &'a mut Findings<'f>,
    steps: Vec<Step>,
    /// Recursive references that are being looked into.
    followed: BTreeSet<u128>,
    looked_at: usize,
    work_left: u64,
    reported: usize,
}

impl Parts<'_, '_> {
    /// Looks at one part of the reader's schema; says whether something was reported.
    fn part(&mut self, part: &Node, location: &str) -> bool {
        if matches!(part.form, Form::True) {
            return false;
        }
        let found = self.ask(part);
        if found.is_no() {
            return false;
        }
        let before = self.reported;
        match &part.form {
            Form::All(parts) => {
                for (step, inner) in parts {
                    self.part(inner, &format!("{location}{step}"));
                }
            }
            Form::Ref(key) => {
                let target = self.targets.iter().find_map(|table| table.get(key)).cloned();
                if let Some(target) = target
                    && self.followed.insert(*key)
                {
                    self.part(&target, location);
                    self.followed.remove(key);
                }
            }
            Form::Props(props) => self.properties(props, location),
            Form::Items { prefix, rest } => self.items(prefix, rest, location),
            _ => {}
        }
        if self.reported == before {
            let detail = match &part.form {
                Form::Required(name) => name.as_str(),
                _ => "",
            };
            self.report(&found, location, detail);
        }
        true
    }

    fn properties(&mut self, props: &Props, location: &str) {
        let base = location.strip_suffix("/properties").unwrap_or(location).to_owned();
        for (name, inner) in &props.named {
            self.steps.push(Step::Property(name.clone()));
            self.part(inner, &format!("{base}/properties/{}", escape(name)));
            self.steps.pop();
        }
        for (pattern, inner) in &props.patterns {
            let alone = Props {
                named: Vec::new(),
                patterns: vec![(pattern.clone(), inner.clone())],
                rest: truth(true),
            };
            self.leaf(alone, &format!("{base}/patternProperties/{}", escape(&pattern.text)));
        }
        let open = |nodes: &[(String, Node)]| {
            nodes.iter().map(|(name, _)| (name.clone(), truth(true))).collect()
        };
        let rest = Props {
            named: open(&props.named),
            patterns: props
                .patterns
                .iter()
                .map(|(pattern, _)| (pattern.clone(), truth(true)))
                .collect(),
            rest: props.rest.clone(),
        };
        if !matches!(rest.rest.form, Form::True) {
            self.leaf(rest, &format!("{base}/additionalProperties"));
        }
    }

    fn leaf(&mut self, props: Props, location: &str) {
        let found = self.ask(&node(Form::Props(props)));
        if !found.is_no() {
            self.report(&found, location, "");
        }
    }

    fn items(&mut self, prefix: &[Node], rest: &Node, location: &str) {
        let listed = match location.strip_suffix("/additionalItems") {
            Some(base) => format!("{base}/items"),
            None => format!("{}/prefixItems", location.strip_suffix("/items").unwrap_or(location)),
        };
        for (at, inner) in prefix.iter().enumerate() {
            self.steps.push(Step::Item(at));
            self.part(inner, &format!("{listed}/{at}"));
            self.steps.pop();
        }
        self.steps.push(Step::ItemsFrom(prefix.len()));
        self.part(rest, location);
        self.steps.pop();
    }

    /// Whether the writer allows a value that breaks `part` at the place that `steps` lead to.
    fn ask(&mut self, part: &Node) -> Found {
        self.looked_at += 1;
        if self.looked_at > PARTS_MAX || self.reported >= FAULTS_MAX || self.work_left == 0 {
            return Found::No;
        }
        let mut wrapped = part.clone();
        for step in self.steps.iter().rev() {
            wrapped = node(match step {
                Step::Property(name) => Form::Props(Props {
                    named: vec![(name.clone(), wrapped)],
                    patterns: Vec::new(),
                    rest: truth(true),
                }),
                Step::Item(at) => {
                    let mut prefix = vec![truth(true); *at];
                    prefix.push(wrapped);
                    Form::Items { prefix, rest: truth(true) }
                }
                Step::ItemsFrom(at) => {
                    Form::Items { prefix: vec![truth(true); *at], rest: wrapped }
                }
            });
        }
        let allowed = PART_WORK_MAX.min(self.work_left);
        self.solver.allow(allowed);
        let found = self.solver.solve(vec![
            Goal::new(&self.writer.root, true, Side::Writer),
            Goal::new(&wrapped, false, Side::Reader),
        ]);
        let spent = allowed - self.solver.left();
        self.work_left -= spent;
        *self.findings.work_left() -= spent;
        found
    }

    fn report(&mut self, found: &Found, location: &str, detail: &str) {
        self.reported += 1;
        let (candidate, reason) = match found {
            Found::Yes(value) => (Some(value), "the comparison and the validators disagree"),
            Found::Unsure(reason, value) => (value.as_ref(), *reason),
            Found::No => (None, ""),
        };
        let witness = candidate
            .filter(|value| self.writer.accepts(value) && !self.reader.accepts(value))
            .cloned();
        let keyword = keyword(location);
        let (rule, why) = match &witness {
            Some(_) => (keyword.to_owned(), sentence(keyword, detail)),
            None => (
                "undecided".to_owned(),
                format!(
                    "whether the reader takes everything that the writer allows could not be decided: {reason}"
                ),
            ),
        };
        let show = |schema: &JsonSchema| {
            lookup(&schema.definition, location)
                .map(|value| shorten(&value.to_string()))
                .unwrap_or_default()
        };
        let (reader, writer) = (show(self.reader), show(self.writer));
        self.findings.reader_writer(location, &rule, reader, writer, why, witness);
    }
}

/// The keyword that a location ends in.
fn keyword(location: &str) -> &str {
    let mut steps = location.rsplit('/');
    let last = steps.next().unwrap_or("");
    match steps.next() {
        Some(
            map @ ("properties" | "patternProperties" | "$defs" | "definitions" | "prefixItems"
            | "allOf"),
        ) => map,
        Some("dependentRequired" | "dependentSchemas" | "dependencies") => "dependencies",
        _ if last == "#" => "schema",
        _ => last,
    }
}

fn sentence(keyword: &str, detail: &str) -> String {
    match keyword {
        "required" => format!(
            "the reader requires property `{detail}`, which the writer may leave out; make it optional"
        ),
        "additionalProperties" => {
            "the reader refuses properties that the writer allows; leave its objects \
                                   open, or stop writing such properties first"
                .to_owned()
        }
        "type" => "the writer allows types that the reader refuses; keep them".to_owned(),
        "enum" | "const" => {
            "the writer allows values that the reader does not list; keep them".to_owned()
        }
        "properties" | "schema" => "the reader refuses values that the writer allows".to_owned(),
        other => format!(
            "the writer allows values that the reader's `{other}` refuses; keep it as wide as it was"
        ),
    }
}

/// What stands at a keyword location, local references followed.
fn lookup<'v>(definition: &'v Value, location: &str) -> Option<&'v Value> {
    let mut at = definition;
    for step in location.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = match (step.as_str(), at) {
            ("$ref", Value::Object(object)) => {
                let reference = object.get("$ref")?.as_str()?.strip_prefix('#')?;
                definition.pointer(reference)?
            }
            (step, Value::Array(items)) => items.get(step.parse::<usize>().ok()?)?,
            (step, value) => value.get(step)?,
        };
    }
    Some(at)
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 160 {
        return text.to_owned();
    }
    text.chars().take(160).chain(['…']).collect()
}
