//! Brings a document into the algebra: one literal per keyword, references in place, recursion as a
//! key.
//!
//! Law: what the draft at hand does not know is ignored, as a validator of that draft does; what it
//! knows and the algebra does not becomes [`Form::Opaque`], never nothing.

use super::documents::{Documents, Draft, Place, escape};
use super::node::{Form, Node, NodeBody, Pattern, Props, TypeSet, all, any, node, not, truth};
use super::ratio::Ratio;
use super::text::whole_numbers;
use crate::error::SchemaError;
use crate::fingerprint::short;
use crate::limits::NODES_MAX;
use danube_core::schema::SchemaType;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Largest compiled pattern, in bytes.
pub(crate) const PATTERN_LEN_MAX: usize = 1 << 20;

/// Most patterns in one definition; each may be as large as the bound above.
const PATTERNS_MAX: usize = 256;

pub(crate) struct Compiled {
    pub(crate) root: Node,
    pub(crate) targets: BTreeMap<u128, Node>,
}

/// Most steps from the top to the innermost schema, references followed.
const DEPTH_MAX: usize = 200;

/// `salt` stands for the whole definition: what only means something within it is named by it.
pub(crate) fn compile(documents: &Documents, salt: u128) -> Result<Compiled, SchemaError> {
    let mut compiler = Compiler {
        documents,
        salt,
        depth: 0,
        draft: documents.draft(),
        done: BTreeMap::new(),
        open: Vec::new(),
        in_place_from: 0,
        targets: BTreeMap::new(),
        recursive: BTreeSet::new(),
        patterns: BTreeMap::new(),
        nodes: 0,
    };
    let root = compiler.reference(&documents.root(), &documents.root())?;
    let targets = compiler.targets;
    let mut colours = BTreeMap::new();
    if ends_in_itself(&root, &targets, &mut colours)
        || targets.values().any(|target| ends_in_itself(target, &targets, &mut colours))
    {
        return Err(invalid(&documents.root(), NO_END));
    }
    Ok(Compiled { root, targets })
}

const NO_END: &str = "a reference leads back to itself without going into the value, so no validation \
                      would end";

/// Whether following what looks at the same value comes back to where it was. `true` in `colours`
/// is a node under way, `false` one that is finished.
fn ends_in_itself(
    node: &Node,
    targets: &BTreeMap<u128, Node>,
    colours: &mut BTreeMap<*const NodeBody, bool>,
) -> bool {
    let at = std::sync::Arc::as_ptr(node);
    if let Some(under_way) = colours.get(&at) {
        return *under_way;
    }
    colours.insert(at, true);
    let mut visit = |inner: &Node| ends_in_itself(inner, targets, colours);
    let found = match &node.form {
        Form::All(parts) => parts.iter().any(|(_, part)| visit(part)),
        Form::Any(nodes) | Form::One(nodes) => nodes.iter().any(visit),
        Form::Not(inner) => visit(inner),
        Form::Ref(key) => targets.get(key).is_some_and(visit),
        _ => false,
    };
    colours.insert(at, false);
    found
}

struct Compiler<'a> {
    documents: &'a Documents,
    salt: u128,
    depth: usize,
    draft: Draft,
    /// Targets of references that are finished.
    done: BTreeMap<Place, Node>,
    /// Targets being compiled, outermost first.
    open: Vec<Place>,
    /// Where in `open` the current value begins: what is behind it is looked at on the same value.
    in_place_from: usize,
    targets: BTreeMap<u128, Node>,
    recursive: BTreeSet<Place>,
    patterns: BTreeMap<String, Pattern>,
    nodes: usize,
}

type Compiling = Result<Node, SchemaError>;

fn invalid(place: &Place, why: impl Into<String>) -> SchemaError {
    SchemaError::invalid(SchemaType::JsonSchema, format!("#{}", place.pointer), why)
}

fn step(place: &Place, key: &str) -> Place {
    Place { document: place.document, pointer: format!("{}/{}", place.pointer, escape(key)) }
}

impl Compiler<'_> {
    /// The node for the target of a reference.
    fn reference(&mut self, target: &Place, from: &Place) -> Compiling {
        if let Some(done) = self.done.get(target) {
            return Ok(done.clone());
        }
        let key =
            short(format!("{:x} {}#{}", self.salt, target.document, target.pointer).as_bytes());
        if let Some(at) = self.open.iter().position(|open| open == target) {
            if at >= self.in_place_from {
                return Err(invalid(from, NO_END));
            }
            self.recursive.insert(target.clone());
            return self.count(node(Form::Ref(key)));
        }
        self.open.push(target.clone());
        self.depth += 1;
        let compiled = self.schema(target)?;
        self.depth -= 1;
        self.open.pop();
        self.done.insert(target.clone(), compiled.clone());
        if self.recursive.contains(target) {
            self.targets.insert(key, compiled.clone());
        }
        Ok(compiled)
    }

    fn count(&mut self, node: Node) -> Compiling {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(SchemaError::TooLarge {
                kind: SchemaType::JsonSchema,
                what: "its number of keywords",
                got: self.nodes,
                max: NODES_MAX,
            });
        }
        Ok(node)
    }

    /// A schema that is looked at on a part of the value.
    fn below(&mut self, place: &Place) -> Compiling {
        let outer = std::mem::replace(&mut self.in_place_from, self.open.len());
        let compiled = self.schema(place);
        self.in_place_from = outer;
        compiled
    }

    /// A schema, looked at on the current value.
    fn schema(&mut self, place: &Place) -> Compiling {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SchemaError::TooLarge {
                kind: SchemaType::JsonSchema,
                what: "its nesting, references followed,",
                got: self.depth,
                max: DEPTH_MAX,
            });
        }
        let compiled = self.keywords(place);
        self.depth -= 1;
        compiled
    }

    fn keywords(&mut self, place: &Place) -> Compiling {
        let object = match self.documents.value(place) {
            Some(Value::Bool(holds)) => return Ok(truth(*holds)),
            Some(Value::Object(object)) => object,
            _ => return Err(invalid(place, "a schema is an object, `true` or `false`")),
        };
        let mut parts = Vec::new();
        if let Some(target) = object.get("$ref") {
            let compiled = self.follow(place, "$ref", target)?;
            parts.push(("/$ref".to_owned(), compiled));
            if self.draft.is_old() {
                return self.count(all(parts));
            }
        }
        self.any_value(object, place, &mut parts)?;
        self.numbers_and_strings(object, place, &mut parts)?;
        self.arrays(object, place, &mut parts)?;
        self.objects(object, place, &mut parts)?;
        self.combinators(object, place, &mut parts)?;
        self.unmodelled(object, place, &mut parts)?;
        self.count(all(parts))
    }

    fn follow(&mut self, place: &Place, key: &str, reference: &Value) -> Compiling {
        let here = step(place, key);
        let Some(text) = reference.as_str() else {
            return Err(invalid(&here, format!("`{key}` is not a string")));
        };
        match self.documents.resolve(place, text) {
            Some(target) => self.reference(&target, &here),
            None if text.contains("json-schema.org/draft") => self.count(node(Form::Opaque {
                keyword: format!("$ref {text}"),
                inner: Vec::new(),
                children: false,
            })),
            None => Err(SchemaError::UnknownReference {
                kind: SchemaType::JsonSchema,
                path: format!("#{}", here.pointer),
                name: text.to_owned(),
            }),
        }
    }

    fn literal(
        &mut self,
        parts: &mut Vec<(String, Node)>,
        key: &str,
        form: Form,
    ) -> Result<(), SchemaError> {
        let made = self.count(node(form))?;
        parts.push((format!("/{}", escape(key)), made));
        Ok(())
    }

    fn any_value(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        if let Some(types) = object.get("type") {
            let words: Vec<&Value> = match types {
                Value::Array(words) => words.iter().collect(),
                word => vec![word],
            };
            let mut set = TypeSet(0);
            for word in words {
                let one = word.as_str().and_then(TypeSet::parse);
                set = set.or(one.ok_or_else(|| {
                    invalid(&step(place, "type"), format!("`{word}` is not a type of JSON"))
                })?);
            }
            self.literal(parts, "type", Form::Types(set))?;
        }
        if let Some(values) = object.get("enum") {
            let Some(values) = values.as_array() else {
                return Err(invalid(&step(place, "enum"), "`enum` is not a list"));
            };
            let values = values.iter().map(whole_numbers).collect();
            self.literal(parts, "enum", Form::Values(values))?;
        }
        if let Some(value) = object.get("const") {
            self.literal(parts, "const", Form::Values(vec![whole_numbers(value)]))?;
        }
        Ok(())
    }

    fn numbers_and_strings(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        for key in ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"] {
            let Some(value) = object.get(key) else { continue };
            if !value.is_number() {
                return Err(invalid(&step(place, key), format!("`{value}` is not a number")));
            }
            let Some(at) = Ratio::of_value(value) else {
                // Too long for exact arithmetic: equal ones are equal, others undecided.
                self.literal(parts, key, opaque(format!("{key} {value}")))?;
                continue;
            };
            let exclusive = key.starts_with("exclusive");
            let form = match key {
                "minimum" | "exclusiveMinimum" => Form::Min { at, exclusive },
                "maximum" | "exclusiveMaximum" => Form::Max { at, exclusive },
                _ if at.is_positive() => Form::MultipleOf(at),
                _ => return Err(invalid(&step(place, key), "`multipleOf` is not above 0")),
            };
            self.literal(parts, key, form)?;
        }
        if let Some(len) = size(object, "minLength", place)?.filter(|len| *len > 0) {
            self.literal(parts, "minLength", Form::MinLength(len))?;
        }
        if let Some(len) = size(object, "maxLength", place)? {
            self.literal(parts, "maxLength", Form::MaxLength(len))?;
        }
        if let Some(text) = object.get("pattern").and_then(Value::as_str) {
            let pattern = self.pattern(text, &step(place, "pattern"))?;
            if !matches!(text, "" | "^" | ".*" | "^.*") {
                self.literal(parts, "pattern", Form::Pattern(pattern))?;
            }
        }
        Ok(())
    }

    fn pattern(&mut self, text: &str, place: &Place) -> Result<Pattern, SchemaError> {
        if let Some(known) = self.patterns.get(text) {
            return Ok(known.clone());
        }
        if self.patterns.len() >= PATTERNS_MAX {
            return Err(SchemaError::TooLarge {
                kind: SchemaType::JsonSchema,
                what: "its number of patterns",
                got: self.patterns.len() + 1,
                max: PATTERNS_MAX,
            });
        }
        let rust = jsonschema_regex::to_rust_regex(text).map_err(|()| {
            invalid(
                place,
                format!(
                    "pattern `{text}` does not parse, or uses look-around or back-references, which are \
                     refused because matching them can take for ever"
                ),
            )
        })?;
        let regex = regex::RegexBuilder::new(&rust)
            .size_limit(PATTERN_LEN_MAX)
            .dfa_size_limit(PATTERN_LEN_MAX)
            .build()
            .map_err(|error| {
                invalid(place, format!("pattern `{text}` does not compile: {error}"))
            })?;
        let pattern = Pattern { text: text.into(), regex, rust: rust.as_ref().into() };
        self.patterns.insert(text.to_owned(), pattern.clone());
        Ok(pattern)
    }

    fn arrays(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        if let Some(len) = size(object, "minItems", place)?.filter(|len| *len > 0) {
            self.literal(parts, "minItems", Form::MinItems(len))?;
        }
        if let Some(len) = size(object, "maxItems", place)? {
            self.literal(parts, "maxItems", Form::MaxItems(len))?;
        }
        if object.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.literal(parts, "uniqueItems", Form::Unique)?;
        }
        let listed_items =
            self.draft.has_item_lists() && object.get("items").is_some_and(Value::is_array);
        let (prefix_key, rest_key) = match (self.draft.has_item_lists(), listed_items) {
            (false, _) => ("prefixItems", "items"),
            (true, true) => ("items", "additionalItems"),
            (true, false) => ("", "items"),
        };
        let mut prefix = Vec::new();
        if let Some(Value::Array(listed)) = object.get(prefix_key) {
            for at in 0..listed.len() {
                prefix.push(self.below(&step(&step(place, prefix_key), &at.to_string()))?);
            }
        }
        let rest = match object.get(rest_key) {
            Some(_) => self.below(&step(place, rest_key))?,
            None => truth(true),
        };
        let says_nothing = |node: &Node| matches!(node.form, Form::True);
        if !(prefix.iter().all(says_nothing) && says_nothing(&rest)) {
            self.literal(parts, rest_key, Form::Items { prefix, rest })?;
        }
        if object.contains_key("contains") {
            let of = self.below(&step(place, "contains"))?;
            let (mut min, mut max) = (1, None);
            if !self.draft.is_old() {
                min = size(object, "minContains", place)?.unwrap_or(1);
                max = size(object, "maxContains", place)?;
            }
            if min > 0 || max.is_some() {
                self.literal(parts, "contains", Form::Contains { of, min, max })?;
            }
        }
        Ok(())
    }

    fn objects(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        if let Some(len) = size(object, "minProperties", place)?.filter(|len| *len > 0) {
            self.literal(parts, "minProperties", Form::MinProps(len))?;
        }
        if let Some(len) = size(object, "maxProperties", place)? {
            self.literal(parts, "maxProperties", Form::MaxProps(len))?;
        }
        if let Some(names) = object.get("required").and_then(Value::as_array) {
            for name in names.iter().filter_map(Value::as_str) {
                self.literal(parts, "required", Form::Required(name.to_owned()))?;
            }
        }
        let mut named = Vec::new();
        if let Some(Value::Object(properties)) = object.get("properties") {
            for name in properties.keys() {
                named.push((name.clone(), self.below(&step(&step(place, "properties"), name))?));
            }
        }
        let mut patterns = Vec::new();
        if let Some(Value::Object(properties)) = object.get("patternProperties") {
            for text in properties.keys() {
                let here = step(&step(place, "patternProperties"), text);
                let pattern = self.pattern(text, &here)?;
                patterns.push((pattern, self.below(&here)?));
            }
        }
        let mut rest = truth(true);
        if object.contains_key("additionalProperties") {
            rest = self.below(&step(place, "additionalProperties"))?;
        }
        if !(named.is_empty() && patterns.is_empty() && matches!(rest.form, Form::True)) {
            named.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.literal(parts, "properties", Form::Props(Props { named, patterns, rest }))?;
        }
        if object.contains_key("propertyNames") {
            let names = self.below(&step(place, "propertyNames"))?;
            self.literal(parts, "propertyNames", Form::Names(names))?;
        }
        self.dependencies(object, place, parts)
    }

    fn dependencies(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        let keys: &[&str] = match self.draft {
            Draft::Draft6 | Draft::Draft7 => &["dependencies"],
            Draft::Draft201909 | Draft::Draft202012 => &["dependentRequired", "dependentSchemas"],
        };
        for key in keys {
            let Some(Value::Object(dependencies)) = object.get(*key) else { continue };
            for (name, then) in dependencies {
                let here = step(&step(place, key), name);
                let then = match then {
                    Value::Array(names) => {
                        let names = names.iter().filter_map(Value::as_str);
                        all(names
                            .map(|name| (String::new(), node(Form::Required(name.to_owned()))))
                            .collect())
                    }
                    _ => self.schema(&here)?,
                };
                let absent = node(Form::Not(node(Form::Required(name.clone()))));
                let made = self.count(any(vec![absent, then]))?;
                parts.push((format!("/{key}/{}", escape(name)), made));
            }
        }
        Ok(())
    }

    fn combinators(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(listed)) = object.get(key) else { continue };
            let mut nodes = Vec::with_capacity(listed.len());
            for at in 0..listed.len() {
                nodes.push(self.schema(&step(&step(place, key), &at.to_string()))?);
            }
            if key == "allOf" {
                for (at, node) in nodes.into_iter().enumerate() {
                    parts.push((format!("/allOf/{at}"), node));
                }
                continue;
            }
            let made = match (nodes.len(), key) {
                (1, _) => nodes.remove(0),
                (_, "anyOf") => any(nodes),
                _ => node(Form::One(nodes)),
            };
            let made = self.count(made)?;
            parts.push((format!("/{key}"), made));
        }
        if object.contains_key("not") {
            let inner = self.schema(&step(place, "not"))?;
            let made = self.count(not(inner))?;
            parts.push(("/not".to_owned(), made));
        }
        if object.contains_key("if") {
            let condition = self.schema(&step(place, "if"))?;
            if object.contains_key("then") {
                let then = self.schema(&step(place, "then"))?;
                let made = self.count(any(vec![not(condition.clone()), then]))?;
                parts.push(("/then".to_owned(), made));
            }
            if object.contains_key("else") {
                let otherwise = self.schema(&step(place, "else"))?;
                let made = self.count(any(vec![condition, otherwise]))?;
                parts.push(("/else".to_owned(), made));
            }
        }
        Ok(())
    }

    /// Keywords whose meaning depends on what other keywords have looked at, or on the way here.
    fn unmodelled(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        parts: &mut Vec<(String, Node)>,
    ) -> Result<(), SchemaError> {
        if self.draft.is_old() {
            return Ok(());
        }
        for (key, plain) in
            [("unevaluatedProperties", "additionalProperties"), ("unevaluatedItems", "items")]
        {
            if !object.contains_key(key) {
                continue;
            }
            let inner = self.below(&step(place, key))?;
            if matches!(inner.form, Form::True)
                || object.contains_key(plain) && !object.get("items").is_some_and(Value::is_array)
            {
                continue;
            }
            // Alone, it says what `additionalProperties` says.
            let alone = ![
                "allOf",
                "anyOf",
                "oneOf",
                "not",
                "if",
                "$ref",
                "$dynamicRef",
                "$recursiveRef",
                "dependentSchemas",
                "contains",
            ]
            .iter()
            .any(|other| object.contains_key(*other));
            if alone && key == "unevaluatedProperties" {
                let at = parts.iter().position(|(step, _)| step == "/properties");
                let (named, patterns) = match at.map(|at| parts.remove(at).1) {
                    Some(node) => match &node.form {
                        Form::Props(props) => (props.named.clone(), props.patterns.clone()),
                        _ => (Vec::new(), Vec::new()),
                    },
                    None => (Vec::new(), Vec::new()),
                };
                self.literal(
                    parts,
                    "properties",
                    Form::Props(Props { named, patterns, rest: inner }),
                )?;
                continue;
            }
            // What counts as evaluated depends on the whole schema, so equality does too.
            let whole = all(parts.clone()).id;
            let form = Form::Opaque {
                keyword: format!("{key} in {whole:x}"),
                inner: vec![inner],
                children: true,
            };
            self.literal(parts, key, form)?;
        }
        for key in ["$dynamicRef", "$recursiveRef"] {
            let Some(reference) = object.get(key).and_then(Value::as_str) else { continue };
            let target = if key == "$dynamicRef" {
                self.documents.resolve_dynamic(place, reference)
            } else {
                self.documents.resolve_recursive(place)
            };
            let made = match target {
                Some(target) => self.reference(&target, &step(place, key))?,
                None => node(Form::Opaque {
                    keyword: format!("{key} {reference} in {:x}", self.salt),
                    inner: Vec::new(),
                    children: true,
                }),
            };
            parts.push((format!("/{key}"), made));
        }
        Ok(())
    }
}

fn opaque(keyword: String) -> Form {
    Form::Opaque { keyword, inner: Vec::new(), children: false }
}

fn size(object: &Map<String, Value>, key: &str, place: &Place) -> Result<Option<u64>, SchemaError> {
    let Some(value) = object.get(key) else { return Ok(None) };
    match whole_numbers(value).as_u64() {
        Some(size) => Ok(Some(size)),
        None => {
            Err(invalid(&step(place, key), format!("`{value}` is not a whole number from 0 up")))
        }
    }
}
